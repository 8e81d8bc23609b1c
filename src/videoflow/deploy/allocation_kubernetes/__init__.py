"""Who may use which GPUs of a cluster, where a device plugin gives them out.

Used by the Kubernetes engine. Claims and ownership are config maps that are moved by compare-and-swap; whole
devices, time slices, MPS shares and prepared MIG slices are counted seats; geometry is changed only on hosts
that are opted in by label, under a stamp and a taint. It refuses hosts that a driver of dynamic resource
allocation has, hosts whose labels prove nothing, and to take silence for an answer.
"""

from videoflow.deploy.allocation_kubernetes._access import (
    missing_rights,
    rbac_manifests,
    rights,
)
from videoflow.deploy.allocation_kubernetes._backend import KubernetesAllocation
from videoflow.deploy.allocation_kubernetes._facts import probed_facts
from videoflow.deploy.allocation_kubernetes._inventory import KubernetesSnapshot
from videoflow.deploy.allocation_kubernetes._opening import open_kubernetes
from videoflow.deploy.allocation_kubernetes._operation import BARRIERS
from videoflow.deploy.allocation_kubernetes._planning import KubernetesPlan
from videoflow.deploy.allocation_kubernetes._settings import (
    CLAIM,
    FENCE,
    KIND,
    MANAGED,
    OWNER,
    TAINT,
    KubernetesSettings,
    Strategy,
)
from videoflow.deploy.kubernetes_rights import Right, is_allowed
from videoflow.environment import GRANT_VARIABLE

__all__ = [
    "BARRIERS",
    "CLAIM",
    "FENCE",
    "GRANT_VARIABLE",
    "KIND",
    "MANAGED",
    "OWNER",
    "TAINT",
    "KubernetesAllocation",
    "KubernetesPlan",
    "KubernetesSettings",
    "KubernetesSnapshot",
    "Right",
    "Strategy",
    "is_allowed",
    "missing_rights",
    "open_kubernetes",
    "probed_facts",
    "rbac_manifests",
    "rights",
]
