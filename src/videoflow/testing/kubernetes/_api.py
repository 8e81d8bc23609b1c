"""The API of the fake server, as a function from request to response."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from videoflow.testing.kubernetes._applying import ApplyConflict, applied
from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._faults import Decide, Ending, Request, Response
from videoflow.testing.kubernetes._kinds import KINDS, Address, Kind, Object, address, discovery
from videoflow.testing.kubernetes._patching import PatchFailed, json_patch, merge_patch
from videoflow.testing.kubernetes._selecting import BadSelector, fields_match, labels_match
from videoflow.testing.kubernetes._store import Key, Part, Refused, Store

_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCHES = ("application/apply-patch+yaml", "application/apply-patch+cbor")
Allows = Callable[[Mapping[str, str]], bool]
"""Whether an access (`verb`, `group`, `resource`, `namespace`, `name`) is granted."""


class FakeCluster:
    """A Kubernetes API without a cluster behind it: what is written is kept, and nothing acts on it.

    Whoever plays kubelet or controller reads and writes `store`, or uses the functions beside it. Everything
    else goes through `handle`, in this process or over HTTP (`FakeApiServer`).

    Args:
        kinds: What is served.
        owners: Whether it keeps who owns which field; without, nothing can be applied, and writes cost less.

    Attributes:
        kinds: What is served.
        store: What is stored.
        decide: Asked before each request what becomes of it; None: each is answered.
        allows: What an access review answers; nothing is enforced by it.
        requests: All requests so far, in order.
    """

    def __init__(self, kinds: tuple[Kind, ...] = KINDS, *, owners: bool = True) -> None:
        self.kinds = kinds
        self.store = Store(owners=owners)
        self.decide: Decide | None = None
        self.allows: Allows = lambda access: True
        self.requests: list[Request] = []
        self._addresses: dict[str, Address | None] = {}

    def add(self, *objects: Mapping[str, Any]) -> None:
        """Puts objects in place, status included, as if they had always been there."""
        for found in objects:
            kind = self.kind(str(found["kind"]))
            body = copied(dict(found))
            namespace = body["metadata"].setdefault("namespace", "default") if kind.namespaced else ""
            self.store.create(kind, namespace, body, "test")

    def kind(self, name: str) -> Kind:
        """Returns a kind by its name in objects.

        Raises:
            LookupError: It is not served.
        """
        return next(kind for kind in self.kinds if kind.kind == name)

    def find(self, plural: str, name: str, namespace: str = "") -> Object | None:
        """Returns a copy of an object, or None; no request."""
        with self.store.changed:
            found = self.store.objects.get((plural, namespace, name))
            return None if found is None else copied(found)

    def every(self, plural: str) -> list[Object]:
        """Returns copies of all objects of a kind, in order of namespace and name; no request."""
        with self.store.changed:
            keys = sorted(key for key in self.store.objects if key[0] == plural)
            return [copied(self.store.objects[key]) for key in keys]

    def edit(self, plural: str, name: str, change: Callable[[Object], None], namespace: str = "") -> None:
        """Changes an object in place, status and all, as a controller of the cluster would; no request."""

        def whole(found: Object) -> Object:
            change(found)
            return found

        self.store.change((plural, namespace, name), whole, "controller", part=Part.WHOLE)

    def handle(self, request: Request) -> Response:
        """Returns the answer to one request; a watch is not answered here but by `watch`."""
        ending = Ending.ANSWERED if self.decide is None else self.decide(request)
        self.requests.append(request)
        match ending:
            case Ending.UNHEARD:
                return Response(0, None, dropped=True)
            case Ending.HANGS:
                return Response(0, None, hangs=True)
            case Ending.BROKEN:
                return _failure(500, "InternalError", "the server is broken")
            case Ending.BUSY:
                return _failure(429, "TooManyRequests", "try again later")
            case Ending.DENIED:
                return _failure(403, "Forbidden", f"{request.client or 'the client'} may not")
            case _:
                return _after(ending, self._answered(request))

    def watch(self, request: Request, stopped: Callable[[], bool]) -> Iterator[Object]:
        """Yields the events of a watch, until `stopped` or its time-out says so; blocks in between."""
        if request.path not in self._addresses:
            self._addresses[request.path] = address(request.path, self.kinds)
        where = self._addresses[request.path]
        if where is None:
            yield {"type": "ERROR", "object": _failure(404, "NotFound", request.path).body}
            return
        version = int(request.query.get("resourceVersion") or 0)
        if version == 0:
            version = self.store.version
            for found in self._matching(where, request):
                yield {"type": "ADDED", "object": found}
        elif version < self.store.compacted:
            yield {"type": "ERROR", "object": _failure(410, "Expired", "too old resource version").body}
            return
        while not stopped():
            with self.store.changed:
                events = [event for event in self.store.events if event.version > version]
                if not events:
                    self.store.changed.wait(0.05)
                    continue
            for event in events:
                version = event.version
                if _in(where, event.key) and _selected(request, event.value):
                    yield {"type": event.type, "object": event.value}

    def _answered(self, request: Request) -> Response:
        if (found := discovery(request.path, self.kinds)) is not None:
            return Response(200, found)
        where = address(request.path, self.kinds)
        if where is None:
            return _failure(404, "NotFound", f"the server could not find {request.path}")
        try:
            return self._served(where, request)
        except Refused as refused:
            return _failure(refused.status, refused.reason, str(refused))
        except PatchFailed as failed:
            return _failure(422, "Invalid", str(failed))
        except ApplyConflict as conflict:
            return _failure(409, "Conflict", str(conflict))
        except BadSelector as bad:
            return _failure(400, "BadRequest", f"unable to parse {bad}")

    def _served(self, where: Address, request: Request) -> Response:
        key = (where.kind.plural, where.namespace, where.name)
        match request.method:
            case "GET" if where.name:
                return Response(200, self.store.get(key))
            case "GET":
                return self._listed(where, request)
            case "POST" if where.kind.kind == "SelfSubjectAccessReview":
                return Response(201, self._reviewed(request.body))
            case "POST":
                manager = _manager(request)
                return Response(201, self.store.create(where.kind, where.namespace, request.body, manager))
            case "PUT":
                body = request.body
                made = self.store.change(key, lambda old: copied(body), _manager(request), part=_part(where))
                return Response(200, made)
            case "PATCH":
                return self._patched(where, key, request)
            case "DELETE":
                wanted = (request.body or {}).get("preconditions") or {}
                gone = self.store.delete(
                    key, uid=wanted.get("uid", ""), version=wanted.get("resourceVersion", "")
                )
                return Response(200, gone)
            case _:
                return _failure(405, "MethodNotAllowed", request.method)

    def _patched(self, where: Address, key: Key, request: Request) -> Response:
        patch = request.body
        if request.content_type in _APPLY_PATCHES:
            return self._applied(where, key, request)
        make = {_JSON_PATCH: json_patch, _MERGE_PATCH: merge_patch}.get(request.content_type)
        if make is None:
            return _failure(
                415, "UnsupportedMediaType", f"patches of type {request.content_type} are not served"
            )
        return Response(
            200, self.store.change(key, lambda old: make(old, patch), _manager(request), part=_part(where))
        )

    def _applied(self, where: Address, key: Key, request: Request) -> Response:
        manager, wanted = request.query.get("fieldManager", ""), copied(request.body)
        if not manager:
            return _failure(400, "BadRequest", "fieldManager is required for apply patch")
        force = request.query.get("force") == "true"
        with self.store.changed:
            if key not in self.store.objects:
                head = {name: wanted[name] for name in ("apiVersion", "kind", "metadata") if name in wanted}
                made = applied(head, wanted, manager, force)
                created = self.store.create(where.kind, where.namespace, {**wanted, **made}, manager)
                return Response(201, created)
            made = self.store.change(
                key,
                lambda old: applied(old, wanted, manager, force),
                None,
                expected=wanted.get("metadata", {}).get("resourceVersion", ""),
                part=_part(where),
            )
            return Response(200, made)

    def _matching(self, where: Address, request: Request) -> list[Object]:
        with self.store.changed:
            keys = sorted(key for key in self.store.objects if _in(where, key))
            found = [self.store.objects[key] for key in keys]
            return [value for value in found if _selected(request, value)]

    def _listed(self, where: Address, request: Request) -> Response:
        version, start = str(self.store.version), 0
        if token := request.query.get("continue"):
            # A page is of the moment of the first: a server that cannot give that any more says so.
            version, _, place = token.partition(":")
            start = int(place or 0)
            if int(version) < self.store.version:
                return _failure(410, "Expired", "The provided continue parameter is too old")
        found = self._matching(where, request)
        limit = int(request.query.get("limit") or 0)
        page = found[start : start + limit] if limit else found[start:]
        metadata: Object = {"resourceVersion": version}
        if limit and start + limit < len(found):
            metadata["continue"] = f"{version}:{start + limit}"
            metadata["remainingItemCount"] = len(found) - start - limit
        kind = where.kind
        body = {
            "kind": f"{kind.kind}List",
            "apiVersion": kind.api_version,
            "metadata": metadata,
            "items": page,
        }
        return Response(200, body)

    def _reviewed(self, body: Object) -> Object:
        asked = body.get("spec", {}).get("resourceAttributes", {})
        return {**copied(body), "status": {"allowed": self.allows(asked)}}


def _part(where: Address) -> Part:
    return Part.STATUS if where.subresource == "status" else Part.MAIN


def _in(where: Address, key: Key) -> bool:
    return key[0] == where.kind.plural and where.namespace in ("", key[1]) and where.name in ("", key[2])


def _selected(request: Request, found: Object) -> bool:
    labels = found["metadata"].get("labels") or {}
    query = request.query
    return labels_match(query.get("labelSelector", ""), labels) and fields_match(
        query.get("fieldSelector", ""), found
    )


def _manager(request: Request) -> str:
    return request.query.get("fieldManager") or request.client.partition("/")[0] or "unknown"


def _failure(status: int, reason: str, message: str) -> Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    return Response(status, body)


def _after(ending: Ending, response: Response) -> Response:
    match ending:
        case Ending.LOST:
            return Response(0, None, dropped=True)
        case Ending.HANGS_AFTER:
            return Response(0, None, hangs=True)
        case Ending.BROKEN_AFTER:
            return _failure(500, "InternalError", "the server broke")
        case Ending.TRUNCATED:
            return _truncated(response)
        case _:
            return response


def _truncated(response: Response) -> Response:
    body = response.body
    if not isinstance(body, dict) or "items" not in body or not body["items"]:
        return Response(response.status, body, cut=True)
    half = body["items"][: len(body["items"]) // 2]
    metadata = {**body["metadata"], "continue": f"0:{len(half)}"}
    return Response(response.status, {**body, "items": half, "metadata": metadata})


def encoded(response: Response) -> bytes:
    """Returns the bytes of an answer; of one that is cut, their first half."""
    data = json.dumps(response.body, separators=(",", ":")).encode()
    return data[: len(data) // 2] if response.cut else data
