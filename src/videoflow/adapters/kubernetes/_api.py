"""The narrow protocol to a Kubernetes API: eight verbs on plain objects, and endings that are values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from videoflow.backends.outcomes import UnknownReason

Object = dict[str, Any]
"""A Kubernetes object, in plain values."""


@dataclass(frozen=True)
class ResourceKind:
    """One kind of object, as paths and objects spell it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Group and version as objects spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version


NODES = ResourceKind("", "v1", "Node", "nodes", False)
PODS = ResourceKind("", "v1", "Pod", "pods", True)
CONFIG_MAPS = ResourceKind("", "v1", "ConfigMap", "configmaps", True)
RESOURCE_SLICES = ResourceKind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False)
RESOURCE_CLAIMS = ResourceKind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", True)
CLUSTER_POLICIES = ResourceKind("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", False)
ACCESS_REVIEWS = ResourceKind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False
)


class Refusal(StrEnum):
    """Why a request did not end as asked.

    `MISSING`: there is no such object, or the kind is not served. `CONFLICT`: a precondition does not hold
    (409, or 422 on a `test`), or the object exists already. `DENIED`: not allowed. `INVALID`: refused as it
    is. `UNHEARD`: no effect, try again later (429, nothing listens). `AMBIGUOUS`: nobody knows whether it
    took effect (a time-out, a connection that broke, 5xx): read before trying again.
    """

    MISSING = "missing"
    CONFLICT = "conflict"
    DENIED = "denied"
    INVALID = "invalid"
    UNHEARD = "unheard"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True)
class Refused:
    """A request that did not end as asked.

    Attributes:
        why: The kind of ending.
        reason: The same for an observation: why a read is unknown.
        said: By the server, or by the connection.
    """

    why: Refusal
    reason: UnknownReason
    said: str


@dataclass(frozen=True)
class Listing:
    """All objects of a listing, and the version that it is of."""

    items: tuple[Object, ...]
    version: str


@dataclass(frozen=True)
class Change:
    """One event of a watch: `ADDED`, `MODIFIED` or `DELETED`, and the object."""

    type: str
    value: Object


class KubernetesApi(Protocol):
    """What the cluster side asks of a client; no method raises because of the server or the connection."""

    def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Object | Refused:
        """Returns an object."""
        ...

    def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Listing | Refused:
        """Returns all objects, every page, or none: a listing that breaks off is refused.

        Args:
            kind: Of what.
            namespace: Empty: all of them.
            labels: Label selector.
            fields: Field selector.
        """
        ...

    def watch(
        self, kind: ResourceKind, version: str, namespace: str = "", *, timeout_seconds: int
    ) -> Iterator[Change | Refused]:
        """Yields what changes after a version, until the time-out or a refusal, which comes last."""
        ...

    def create(self, kind: ResourceKind, body: Object) -> Object | Refused:
        """Makes an object; one that exists is a conflict."""
        ...

    def replace(self, kind: ResourceKind, body: Object) -> Object | Refused:
        """Writes an object over the version that its `metadata.resourceVersion` names."""
        ...

    def patch(
        self, kind: ResourceKind, name: str, operations: Sequence[Mapping[str, Any]], namespace: str = ""
    ) -> Object | Refused:
        """Applies a JSON patch; its preconditions are its `test` operations, of which it has at least one."""
        ...

    def apply(
        self, kind: ResourceKind, body: Object, manager: str, *, force: bool = False
    ) -> Object | Refused:
        """Applies server-side what `manager` wants to own; another owner of a field is a conflict."""
        ...

    def delete(
        self, kind: ResourceKind, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> Refused | None:
        """Deletes the object of this uid, and of this version where one is given."""
        ...
