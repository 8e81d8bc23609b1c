"""The kinds that the fake server serves, and how their paths are read."""

import re
from dataclasses import dataclass
from typing import Any

Json = Any
"""Whatever JSON can hold."""
Object = dict[str, Json]
"""A Kubernetes object, in plain values."""


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    Attributes:
        group: API group; empty: the core.
        version: Of the group.
        plural: As paths spell it.
        kind: As objects spell it.
        namespaced: Whether its objects live in namespaces.
        short: A shorter name for command lines; empty: none.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short: str = ""

    @property
    def api_version(self) -> str:
        """Group and version as objects spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version


_RESOURCE, _RBAC = "resource.k8s.io", "rbac.authorization.k8s.io"

KINDS = (
    Kind("", "v1", "namespaces", "Namespace", False, "ns"),
    Kind("", "v1", "nodes", "Node", False, "no"),
    Kind("", "v1", "pods", "Pod", True, "po"),
    Kind("", "v1", "configmaps", "ConfigMap", True, "cm"),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", True, "sa"),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", True),
    Kind(_RESOURCE, "v1", "resourceslices", "ResourceSlice", False),
    Kind(_RESOURCE, "v1", "resourceclaims", "ResourceClaim", True),
    Kind(_RESOURCE, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True),
    Kind(_RESOURCE, "v1", "deviceclasses", "DeviceClass", False),
    Kind("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", False),
    Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
    Kind(_RBAC, "v1", "roles", "Role", True),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding", True),
    Kind(_RBAC, "v1", "clusterroles", "ClusterRole", False),
    Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
)


@dataclass(frozen=True)
class Address:
    """What a path names.

    Attributes:
        kind: Kind of object.
        namespace: Empty: all, or the kind has none.
        name: Empty: the collection.
        subresource: Such as `status`; empty: the object itself.
    """

    kind: Kind
    namespace: str
    name: str
    subresource: str


_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[a-z]+))?/?"
)
# How many parts a path has at most that asks what there is.
_DEEPEST = {"apis": 3, "api": 2}
_NAMESPACES = re.compile(r"/api/v1/namespaces(?:/(?P<name>[^/]+))?(?:/(?P<subresource>status))?/?")


def address(path: str, kinds: tuple[Kind, ...]) -> Address | None:
    """Returns what a path names, or None where nothing of that kind is served."""
    if found := _NAMESPACES.fullmatch(path):
        kind = next((kind for kind in kinds if kind.plural == "namespaces"), None)
        return None if kind is None else Address(kind, "", found["name"] or "", found["subresource"] or "")
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    for kind in kinds:
        named = (kind.group, kind.version, kind.plural)
        if named == (found["group"] or "", found["version"], found["plural"]):
            return Address(kind, found["namespace"] or "", found["name"] or "", found["subresource"] or "")
    return None


def discovery(path: str, kinds: tuple[Kind, ...]) -> Object | None:
    """Returns what a client that asks what there is gets under a path, or None where it asks for objects."""
    path = path.rstrip("/")
    if path.count("/") > (_DEEPEST["apis"] if path.startswith("/apis/") else _DEEPEST["api"]):
        return None
    if path == "/version":
        return {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "platform": "linux/amd64"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = dict.fromkeys((kind.group, kind.version) for kind in kinds if kind.group)
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [
                {"name": group, "versions": [entry], "preferredVersion": entry}
                for group, version in groups
                for entry in [{"groupVersion": f"{group}/{version}", "version": version}]
            ],
        }
    prefix, _, api_version = path[1:].partition("/")
    served = [kind for kind in kinds if kind.api_version == api_version]
    if not served or prefix != ("apis" if served[0].group else "api"):
        return None
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": [
            {
                "name": kind.plural,
                "singularName": kind.kind.lower(),
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": verbs,
                **({"shortNames": [kind.short]} if kind.short else {}),
            }
            for kind in served
        ],
    }
