"""The protocol over lightkube, whose objects stay behind it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from videoflow.adapters.kubernetes._api import Change, Listing, Object, Refusal, Refused, ResourceKind
from videoflow.backends.outcomes import UnknownReason
from videoflow.errors import ContractBroken, LibraryMissing

T = TypeVar("T")
Untyped = Any
"""What lightkube hands over, and whose types stay behind it."""
_PAGE = 250


@dataclass(frozen=True)
class ClientSettings:
    """How the API server is reached.

    Attributes:
        kubeconfig: Path of a kubeconfig; empty: as the environment says, in a pod its service account.
        context: Of the kubeconfig; empty: its current one.
        timeout_seconds: After which an answer is given up, and a write is ambiguous.
        field_manager: Under which name fields are written.
    """

    kubeconfig: str = ""
    context: str = ""
    timeout_seconds: float = 10.0
    field_manager: str = "videoflow"


class LightkubeApi:
    """A `KubernetesApi` over lightkube.

    Raises:
        LibraryMissing: lightkube is not installed.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._errors = _Errors()
        self._settings = settings
        self._client = _client(settings, self._errors.http.Timeout(settings.timeout_seconds))

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Object | Refused:
        """Returns an object."""
        return self._ask(lambda: _plain(self._client.get(_resource(kind), name, **_in(kind, namespace))))

    def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Listing | Refused:
        """Returns all objects of all pages, or why not."""
        where = {"namespace": namespace or "*"} if kind.namespaced else {}

        def listed() -> Listing:
            found = self._client.list(
                _resource(kind),
                chunk_size=_PAGE,
                **where,
                labels=_selector(labels),
                fields=_selector(fields),
            )
            items = tuple(_plain(item) for item in found)
            return Listing(items, found.resourceVersion)

        return self._ask(listed)

    def watch(
        self, kind: ResourceKind, version: str, namespace: str = "", *, timeout_seconds: int
    ) -> Iterator[Change | Refused]:
        """Yields what changes after a version."""
        lines = self._lines(kind, version, namespace, timeout_seconds)
        while True:
            line = self._ask(lambda: next(lines, None))
            if line is None:
                return
            change = line if isinstance(line, Refused) else _change(line)
            yield change
            if isinstance(change, Refused):
                return

    def _lines(self, kind: ResourceKind, version: str, namespace: str, seconds: int) -> Iterator[str]:
        # lightkube's own watch connects again for ever, so one connection of its client is read here.
        inner = self._client._client
        where = {"namespace": namespace or "*"} if kind.namespaced else {}
        asked = {"timeoutSeconds": seconds, "resourceVersion": version, "allowWatchBookmarks": "false"}
        basic = inner.prepare_request("list", res=_resource(kind), watch=True, params=asked, **where)
        basic.timeout = self._errors.http.Timeout(self._settings.timeout_seconds, read=seconds + 5.0)
        response = inner.send(inner.build_adapter_request(basic), stream=True)
        try:
            if response.status_code >= 400:
                response.read()
            inner.raise_for_status(response)
            yield from response.iter_lines()
        finally:
            response.close()

    def create(self, kind: ResourceKind, body: Object) -> Object | Refused:
        """Makes an object."""
        made = _resource(kind)(body)
        return self._ask(lambda: _plain(self._client.create(made, **_in(kind, _namespace(body)))))

    def replace(self, kind: ResourceKind, body: Object) -> Object | Refused:
        """Writes an object over the version that it names."""
        if not body["metadata"].get("resourceVersion"):
            raise ContractBroken("an object is replaced without the version that was read")
        made = _resource(kind)(body)
        return self._ask(lambda: _plain(self._client.replace(made, **_in(kind, _namespace(body)))))

    def patch(
        self, kind: ResourceKind, name: str, operations: Sequence[Mapping[str, Any]], namespace: str = ""
    ) -> Object | Refused:
        """Applies a JSON patch that has a precondition."""
        if not any(operation["op"] == "test" for operation in operations):
            raise ContractBroken("a patch without a precondition")
        from lightkube.types import PatchType

        patch = [dict(operation) for operation in operations]
        return self._ask(
            lambda: _plain(
                self._client.patch(
                    _resource(kind), name, patch, patch_type=PatchType.JSON, **_in(kind, namespace)
                )
            )
        )

    def apply(
        self, kind: ResourceKind, body: Object, manager: str, *, force: bool = False
    ) -> Object | Refused:
        """Applies server-side."""
        made = _resource(kind)(body)
        return self._ask(
            lambda: _plain(
                self._client.apply(made, field_manager=manager, force=force, **_in(kind, _namespace(body)))
            )
        )

    def delete(
        self, kind: ResourceKind, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> Refused | None:
        """Deletes under preconditions."""
        # lightkube's own delete sends no preconditions, so its client is given the whole request.
        inner = self._client._client
        wanted = {"uid": uid, **({"resourceVersion": version} if version else {})}

        def deleted() -> None:
            basic = inner.prepare_request("delete", res=_resource(kind), name=name, **_in(kind, namespace))
            basic.data = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": wanted}
            inner.handle_response("delete", inner.send(inner.build_adapter_request(basic)), basic)

        return self._ask(deleted)

    def _ask(self, request: Callable[[], T]) -> T | Refused:
        try:
            return request()
        except self._errors.known as error:
            return self._errors.refused(error)


class _Errors:
    """lightkube's errors and those of the client under it, told as refusals."""

    def __init__(self) -> None:
        try:
            from lightkube import ApiError
        except ImportError as error:
            raise LibraryMissing(
                "the Kubernetes client is not installed",
                cause=str(error),
                remedy="pip install 'videoflow[kubernetes]'",
            ) from error
        # The HTTP library is whichever one lightkube is built on.
        self.http: Untyped = sys.modules[ApiError.__mro__[1].__module__.partition(".")[0]]
        # A cut answer surfaces as a decoding error of the JSON reader, which is a ValueError.
        self.known = (self.http.HTTPError, ValueError)

    def refused(self, error: Exception) -> Refused:
        if isinstance(error, self.http.HTTPStatusError):
            return Refused(*_of_status(_status(error)), said=str(error))
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, self.http.ConnectError | self.http.ConnectTimeout | self.http.PoolTimeout):
            return Refused(Refusal.UNHEARD, UnknownReason.UNREACHABLE, said)
        if isinstance(error, self.http.TimeoutException):
            return Refused(Refusal.AMBIGUOUS, UnknownReason.TIMEOUT, said)
        if isinstance(error, self.http.HTTPError):
            return Refused(Refusal.AMBIGUOUS, UnknownReason.UNREACHABLE, said)
        return Refused(Refusal.AMBIGUOUS, UnknownReason.MALFORMED, said)


def _status(error: Untyped) -> int:
    said = getattr(error, "status", None)
    return int(getattr(said, "code", None) or error.response.status_code)


def _of_status(status: int) -> tuple[Refusal, UnknownReason]:
    """Returns what an HTTP status means for whoever wrote, and for whoever read."""
    match status:
        case 404:
            return Refusal.MISSING, UnknownReason.MISSING
        case 409:
            return Refusal.CONFLICT, UnknownReason.MALFORMED
        case 410:
            return Refusal.UNHEARD, UnknownReason.MALFORMED
        case 401 | 403:
            return Refusal.DENIED, UnknownReason.AUTH
        case 422:
            # A failed `test` and an object that breaks its schema share one status and one reason.
            return Refusal.CONFLICT, UnknownReason.MALFORMED
        case 429:
            return Refusal.UNHEARD, UnknownReason.UNREACHABLE
        case _ if status >= 500:
            return Refusal.AMBIGUOUS, UnknownReason.UNREACHABLE
        case _:
            return Refusal.INVALID, UnknownReason.UNSUPPORTED


def _change(line: str) -> Change | Refused:
    try:
        event = json.loads(line)
    except ValueError as error:
        return Refused(Refusal.AMBIGUOUS, UnknownReason.MALFORMED, f"an event that cannot be read: {error}")
    if event["type"] == "ERROR":
        status = event["object"]
        why, reason = _of_status(int(status.get("code", 500)))
        return Refused(why, reason, str(status.get("message", "")))
    return Change(event["type"], event["object"])


def _client(settings: ClientSettings, timeout: Untyped) -> Untyped:
    from lightkube import Client
    from lightkube.config.kubeconfig import KubeConfig

    found = KubeConfig.from_file(settings.kubeconfig) if settings.kubeconfig else KubeConfig.from_env()
    return Client(
        config=found.get(settings.context or None),
        timeout=timeout,
        field_manager=settings.field_manager,
    )


@cache
def _resource(kind: ResourceKind) -> Untyped:
    from lightkube.generic_resource import (
        GenericGlobalResource,
        GenericNamespacedResource,
        create_api_info,
    )

    base = GenericNamespacedResource if kind.namespaced else GenericGlobalResource
    info = create_api_info(kind.group, kind.version, kind.kind, kind.plural)
    return type(kind.kind, (base,), {"_api_info": info})


def _in(kind: ResourceKind, namespace: str) -> dict[str, str]:
    return {"namespace": namespace or "default"} if kind.namespaced else {}


def _namespace(body: Object) -> str:
    return str(body["metadata"].get("namespace") or "")


def _plain(found: Untyped) -> Object:
    return dict(found)


def _selector(text: str) -> dict[str, Any] | None:
    """Returns a selector of equalities and existences as lightkube spells it."""
    if not text:
        return None
    terms = (term.partition("=") for term in text.split(","))
    return {key: value if equal else None for key, equal, value in terms}


def read_yaml(text: str) -> Untyped:
    """Returns what a YAML text says, or None where it is none; for the files that others keep in objects."""
    try:
        import yaml
    except ImportError as error:
        raise LibraryMissing(
            "the Kubernetes client is not installed",
            cause=str(error),
            remedy="pip install 'videoflow[kubernetes]'",
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None
