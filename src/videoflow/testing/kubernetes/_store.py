"""What is stored, its versions, and what happened: the part of an API server that makes it one authority."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from videoflow.testing.kubernetes._applying import updated
from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._kinds import Kind, Object

Key = tuple[str, str, str]
"""Plural, namespace, name."""


class Part(StrEnum):
    """What of an object a write can change: all but the status, the status, or everything."""

    MAIN = "main"
    STATUS = "status"
    WHOLE = "whole"


class Refused(Exception):
    """A request that the server refuses, by status and reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class Event:
    """One change."""

    version: int
    type: str
    key: Key
    value: Object


@dataclass
class Store:
    """All objects, under one lock and one counter of versions; what is stored is never changed in place.

    Attributes:
        objects: What there is; only read it from outside.
        events: Every change that a watch can still be told.
        version: Of the last change.
        compacted: Changes up to this version are forgotten.
        owners: Whether it keeps who owns which field, which only server-side apply asks.
    """

    objects: dict[Key, Object] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    version: int = 100
    compacted: int = 0
    changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    owners: bool = True
    _uids: int = 0

    def get(self, key: Key) -> Object:
        """Returns an object, which is not to be changed.

        Raises:
            Refused: 404.
        """
        with self.changed:
            if key not in self.objects:
                raise Refused(404, "NotFound", f'{key[0]} "{key[2]}" not found')
            return self.objects[key]

    def create(self, kind: Kind, namespace: str, body: Object, manager: str) -> Object:
        """Stores a new object.

        Raises:
            Refused: 409, it exists; 422, it has no name.
        """
        with self.changed:
            made = copied(body)
            metadata = made.setdefault("metadata", {})
            self._uids += 1
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = f"{metadata['generateName']}{self._uids:05x}"
            if not metadata.get("name"):
                raise Refused(422, "Invalid", "metadata.name: Required value")
            key = (kind.plural, namespace, metadata["name"])
            if key in self.objects:
                raise Refused(409, "AlreadyExists", f'{kind.plural} "{key[2]}" already exists')
            made.setdefault("apiVersion", kind.api_version)
            made.setdefault("kind", kind.kind)
            if kind.namespaced:
                metadata["namespace"] = namespace
            metadata["uid"] = f"00000000-0000-4000-8000-{self._uids:012x}"
            metadata["creationTimestamp"] = "2026-11-30T00:00:00Z"
            metadata["generation"] = 1
            metadata.pop("resourceVersion", None)
            if self.owners and "managedFields" not in metadata:
                made = updated({}, made, manager)
            return self._write("ADDED", key, made)

    def change(
        self,
        key: Key,
        make: Callable[[Object], Object],
        manager: str | None,
        *,
        expected: str = "",
        part: Part = Part.MAIN,
    ) -> Object:
        """Stores what `make` makes of an object.

        Args:
            key: Which object.
            make: Gets a copy.
            manager: Who then owns what changed; None: `make` has written the owners.
            expected: The version that the writer has read; empty: any.
            part: What of it can change.

        Raises:
            Refused: 404; 409, the version is another one.
        """
        with self.changed:
            old = self.get(key)
            metadata = old["metadata"]
            made = make(copied(old))
            expected = expected or made.get("metadata", {}).get("resourceVersion", "")
            if expected and expected != metadata["resourceVersion"]:
                raise Refused(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {key[0]} "{key[2]}": the object has been modified',
                )
            made = _kept(old, made, part)
            if manager is not None and self.owners:
                made = updated(old, made, manager)
            if made == old:
                return old
            if made.get("spec") != old.get("spec"):
                made["metadata"]["generation"] = metadata["generation"] + 1
            if made["metadata"].get("deletionTimestamp") and not made["metadata"].get("finalizers"):
                return self._remove(key, made)
            return self._write("MODIFIED", key, made)

    def delete(self, key: Key, *, uid: str = "", version: str = "") -> Object:
        """Removes an object, or marks it where finalizers hold it.

        Raises:
            Refused: 404; 409, a precondition does not hold.
        """
        with self.changed:
            old = self.get(key)
            for name, wanted, found in (
                ("UID", uid, old["metadata"]["uid"]),
                ("ResourceVersion", version, old["metadata"]["resourceVersion"]),
            ):
                if wanted and wanted != found:
                    raise Refused(409, "Conflict", f"Precondition failed: {name} {wanted} is {found}")
            if old["metadata"].get("finalizers"):
                marked = copied(old)
                marked["metadata"].setdefault("deletionTimestamp", "2026-11-30T00:00:00Z")
                return self._write("MODIFIED", key, marked)
            return self._remove(key, old)

    def compact(self) -> None:
        """Forgets all changes, so that a watch from before is told 410."""
        with self.changed:
            self.events.clear()
            self.compacted = self.version

    def _remove(self, key: Key, old: Object) -> Object:
        del self.objects[key]
        return self._told("DELETED", key, copied(old))

    def _write(self, type_: str, key: Key, value: Object) -> Object:
        self.objects[key] = value
        return self._told(type_, key, value)

    def _told(self, type_: str, key: Key, value: Object) -> Object:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self.events.append(Event(self.version, type_, key, value))
        self.changed.notify_all()
        return value


def _kept(old: Object, made: Object, part: Part) -> Object:
    """Returns the new object with all that its writer may not change as it was."""
    if part is Part.STATUS:
        result: dict[str, Any] = copied(old)
        if "status" in made:
            result["status"] = made["status"]
        result["metadata"]["managedFields"] = made.get("metadata", {}).get("managedFields", [])
        return result
    if part is Part.MAIN and "status" in old:
        made["status"] = old["status"]
    elif part is Part.MAIN:
        made.pop("status", None)
    metadata, was = made.setdefault("metadata", {}), old["metadata"]
    fixed = ("name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion")
    for name in (*fixed, "deletionTimestamp"):
        if name in was:
            metadata[name] = was[name]
        else:
            metadata.pop(name, None)
    metadata.setdefault("managedFields", was.get("managedFields", []))
    made.setdefault("apiVersion", old.get("apiVersion"))
    made.setdefault("kind", old.get("kind"))
    return made
