"""Server-side apply: who owns which field, what an application changes, and where two disagree.

Ownership is kept as the server keeps it, in `metadata.managedFields`. Lists whose items have names
(containers, environment, volumes) are merged by name; every other list is one value.
"""

import json
from collections.abc import Iterator

from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._kinds import Json, Object

Path = tuple[str, ...]
_NAMED = frozenset({"containers", "initContainers", "env", "volumes", "resourceClaims", "volumeMounts"})
_UNOWNED = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "name", "namespace"}
)
_ABSENT = object()


class ApplyConflict(Exception):
    """Fields that another manager owns with another value."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self.fields = fields
        told = "; ".join(f'conflict with "{manager}": {path}' for path, manager in fields)
        super().__init__(f"Apply failed with {len(fields)} conflicts: {told}")


def leaves(found: Object) -> dict[Path, Json]:
    """Returns every field that can be owned, with its value."""
    return dict(_leaves(found, ()))


def _leaves(value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    if _by_name(path, value):
        for item in value:
            yield from _leaves(item, (*path, f"k:{json.dumps({'name': item['name']})}"))
    elif isinstance(value, dict):
        for key, inner in value.items():
            if path or key not in ("apiVersion", "kind"):
                if path == ("f:metadata",) and key in _UNOWNED:
                    continue
                yield from _leaves(inner, (*path, f"f:{key}"))
    else:
        yield path, value


def _by_name(path: Path, value: Json) -> bool:
    return (
        bool(path)
        and isinstance(value, list)
        and path[-1].removeprefix("f:") in _NAMED
        and all(isinstance(item, dict) and "name" in item for item in value)
    )


def applied(old: Object, wanted: Object, manager: str, force: bool) -> Object:
    """Returns an object after an application, with the owners of its fields.

    Raises:
        ApplyConflict: Other managers own fields with other values, and `force` is not set.
    """
    owned, mine = owners(old), (manager, "Apply")
    now, asked = leaves(old), leaves(wanted)
    conflicts = [
        (_told(path), other[0])
        for path, value in asked.items()
        for other, paths in owned.items()
        if other != mine and path in paths and now.get(path, _ABSENT) != value
    ]
    if conflicts and not force:
        raise ApplyConflict(conflicts)
    result = copied(old)
    for path, value in asked.items():
        if now.get(path, _ABSENT) != value:
            _put(result, path, copied(value))
    lost = {path for path, _ in conflicts}
    for other in list(owned):
        if other != mine:
            owned[other] = {path for path in owned[other] if _told(path) not in lost}
    shared = set().union(*(paths for other, paths in owned.items() if other != mine))
    for path in owned.get(mine, set()) - set(asked) - shared:
        _drop(result, path)
    owned[mine] = set(asked)
    _write_owners(result, owned)
    return result


def updated(old: Object, new: Object, manager: str) -> Object:
    """Returns an object after a write that is no application; its writer now owns what it changed."""
    result = copied(new)
    owned, before, now = owners(old), leaves(old), leaves(result)
    changed = {path for path, value in now.items() if before.get(path, _ABSENT) != value}
    for key, paths in owned.items():
        owned[key] = {path for path in paths if path in now and path not in changed}
    mine = (manager, "Update")
    owned[mine] = owned.get(mine, set()) | changed
    _write_owners(result, owned)
    return result


def owners(found: Object) -> dict[tuple[str, str], set[Path]]:
    """Returns (manager, operation) → the fields that it owns."""
    entries = found.get("metadata", {}).get("managedFields", [])
    return {
        (entry["manager"], entry["operation"]): set(_read(entry.get("fieldsV1", {}), ())) for entry in entries
    }


def _read(fields: Object, path: Path) -> Iterator[Path]:
    if not fields and path:
        yield path
    for key, inner in fields.items():
        if key != ".":
            yield from _read(inner, (*path, key))


def _write_owners(found: Object, owned: dict[tuple[str, str], set[Path]]) -> None:
    entries = []
    for (manager, operation), paths in sorted(owned.items()):
        tree: Object = {}
        for path in sorted(paths):
            place = tree
            for part in path:
                place = place.setdefault(part, {})
        if tree:
            entries.append(
                {
                    "manager": manager,
                    "operation": operation,
                    "apiVersion": found.get("apiVersion", ""),
                    "fieldsType": "FieldsV1",
                    "fieldsV1": tree,
                }
            )
    found.setdefault("metadata", {})["managedFields"] = entries


def _step(holder: Json, part: str, make: bool) -> Json:
    if part.startswith("k:"):
        name = json.loads(part[2:])["name"]
        found = next((item for item in holder if item.get("name") == name), None)
        if found is None and make:
            found = {"name": name}
            holder.append(found)
        return found
    key = part[2:]
    if make and not isinstance(holder.get(key), dict | list):
        holder[key] = [] if key in _NAMED else {}
    return holder.get(key)


def _put(result: Object, path: Path, value: Json) -> None:
    holder: Json = result
    for part in path[:-1]:
        holder = _step(holder, part, True)
    holder[path[-1][2:]] = value


def _drop(result: Object, path: Path) -> None:
    trail: list[tuple[Json, str]] = []
    holder: Json = result
    for part in path[:-1]:
        trail.append((holder, part))
        holder = _step(holder, part, False)
        if holder is None:
            return
    holder.pop(path[-1][2:], None)
    for parent, part in reversed(trail):
        inner = _step(parent, part, False)
        named = part.startswith("k:") and list(inner) == ["name"]
        if named:
            parent.remove(inner)
        elif not inner and part.startswith("f:"):
            parent.pop(part[2:], None)
        else:
            return


def _told(path: Path) -> str:
    return "".join(f".{part[2:]}" if part.startswith("f:") else f"[{part[2:]}]" for part in path)
