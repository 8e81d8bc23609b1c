"""The cluster side's protocol straight to a fake cluster, without HTTP: for thousands of histories."""

from collections.abc import Iterator, Mapping, Sequence

from videoflow.adapters.kubernetes import Change, Listing, Refusal, Refused, ResourceKind
from videoflow.backends.outcomes import UnknownReason
from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._faults import Request, Response
from videoflow.testing.kubernetes._kinds import Json, Object

_PATCH, _APPLY = "application/json-patch+json", "application/apply-patch+yaml"


class DirectApi:
    """A `KubernetesApi` over a `FakeCluster`; `client` is whom its requests are from."""

    def __init__(self, cluster: FakeCluster, client: str = "direct") -> None:
        self._cluster = cluster
        self._client = client

    def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Object | Refused:
        """Returns an object."""
        found: Object | Refused = self._ask("GET", kind, namespace, name)
        return found

    def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Listing | Refused:
        """Returns all objects, or why not."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        found = self._ask("GET", kind, namespace, "", query=query)
        if isinstance(found, Refused):
            return found
        if found["metadata"].get("continue"):
            return Refused(Refusal.AMBIGUOUS, UnknownReason.MALFORMED, "the list ends in its middle")
        return Listing(tuple(found["items"]), found["metadata"]["resourceVersion"])

    def watch(
        self, kind: ResourceKind, version: str, namespace: str = "", *, timeout_seconds: int
    ) -> Iterator[Change | Refused]:
        """Yields what has changed so far, and does not wait."""
        request = Request("GET", _path(kind, namespace, ""), {"resourceVersion": version})
        known = [event for event in self._cluster.store.events if event.version > int(version)]
        events = self._cluster.watch(request, lambda: not known)
        for _ in known:
            event = next(events)
            yield Change(event["type"], event["object"])

    def create(self, kind: ResourceKind, body: Object) -> Object | Refused:
        """Makes an object."""
        found: Object | Refused = self._ask(
            "POST", kind, body["metadata"].get("namespace", ""), "", body=body
        )
        return found

    def replace(self, kind: ResourceKind, body: Object) -> Object | Refused:
        """Writes an object over the version that it names."""
        metadata = body["metadata"]
        found: Object | Refused = self._ask(
            "PUT", kind, metadata.get("namespace", ""), metadata["name"], body=body
        )
        return found

    def patch(
        self, kind: ResourceKind, name: str, operations: Sequence[Mapping[str, Json]], namespace: str = ""
    ) -> Object | Refused:
        """Applies a JSON patch."""
        found: Object | Refused = self._ask(
            "PATCH", kind, namespace, name, body=[*operations], content=_PATCH
        )
        return found

    def apply(
        self, kind: ResourceKind, body: Object, manager: str, *, force: bool = False
    ) -> Object | Refused:
        """Applies server-side."""
        metadata = body["metadata"]
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        found: Object | Refused = self._ask(
            "PATCH", kind, namespace, name, query=query, body=body, content=_APPLY
        )
        return found

    def delete(
        self, kind: ResourceKind, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> Refused | None:
        """Deletes under preconditions."""
        wanted = {"uid": uid, **({"resourceVersion": version} if version else {})}
        done = self._ask("DELETE", kind, namespace, name, body={"preconditions": wanted})
        return done if isinstance(done, Refused) else None

    def _ask(
        self,
        method: str,
        kind: ResourceKind,
        namespace: str,
        name: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        content: str = "",
    ) -> Json:
        path = _path(kind, namespace, name)
        request = Request(method, path, dict(query or {}), content, body, self._client)
        return _told(self._cluster.handle(request))


def _path(kind: ResourceKind, namespace: str, name: str) -> str:
    parts = ["/apis", kind.group, kind.version] if kind.group else ["/api", kind.version]
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    return "/".join([*parts, kind.plural, *([name] if name else [])])


_REFUSALS = {
    403: (Refusal.DENIED, UnknownReason.AUTH),
    404: (Refusal.MISSING, UnknownReason.MISSING),
    409: (Refusal.CONFLICT, UnknownReason.MALFORMED),
    422: (Refusal.CONFLICT, UnknownReason.MALFORMED),
    429: (Refusal.UNHEARD, UnknownReason.UNREACHABLE),
    500: (Refusal.AMBIGUOUS, UnknownReason.UNREACHABLE),
}


def _told(response: Response) -> Json:
    if response.hangs:
        return Refused(Refusal.AMBIGUOUS, UnknownReason.TIMEOUT, "no answer")
    if response.dropped:
        return Refused(Refusal.AMBIGUOUS, UnknownReason.UNREACHABLE, "the connection closed")
    if response.cut:
        return Refused(Refusal.AMBIGUOUS, UnknownReason.MALFORMED, "the answer ends in its middle")
    if response.status >= 400:
        why = _REFUSALS.get(response.status, (Refusal.INVALID, UnknownReason.UNSUPPORTED))
        return Refused(*why, str(response.body["message"]))
    return copied(response.body)
