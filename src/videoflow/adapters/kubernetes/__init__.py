"""A Kubernetes API behind a narrow protocol of our own, with lightkube as the real client.

Used by the cluster side: allocation, manifests, engines. No typed model of a client passes through it, and no
exception of one. It refuses writes without a precondition, and it refuses to call a write that was not
answered a failure: it is ambiguous.
"""

from videoflow.adapters.kubernetes._api import (
    ACCESS_REVIEWS,
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Change,
    KubernetesApi,
    Listing,
    Object,
    Refusal,
    Refused,
    ResourceKind,
)
from videoflow.adapters.kubernetes._lightkube import ClientSettings, LightkubeApi, read_yaml

__all__ = [
    "ACCESS_REVIEWS",
    "CLUSTER_POLICIES",
    "CONFIG_MAPS",
    "NODES",
    "PODS",
    "RESOURCE_CLAIMS",
    "RESOURCE_SLICES",
    "Change",
    "ClientSettings",
    "KubernetesApi",
    "LightkubeApi",
    "Listing",
    "Object",
    "Refusal",
    "Refused",
    "ResourceKind",
    "read_yaml",
]
