"""How GPUs of a cluster are given out, and under which names."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

GPU: Final = "nvidia.com/gpu"
SHARED_GPU: Final = "nvidia.com/gpu.shared"
MIG_PREFIX: Final = "nvidia.com/mig-"
MIG_CONFIG: Final = "nvidia.com/mig.config"
MIG_STATE: Final = "nvidia.com/mig.config.state"
DOMAIN: Final = "videoflow.dev"
# On nodes.
OWNER: Final = f"{DOMAIN}/owner"
FENCE: Final = f"{DOMAIN}/last-claim"
TAINT: Final = f"{DOMAIN}/geometry"
MANAGED: Final = f"{DOMAIN}/managed-geometry"
# On config maps, and on the pods of a claim.
KIND: Final = f"{DOMAIN}/kind"
CLAIM: Final = f"{DOMAIN}/claim"
WORKLOAD: Final = f"{DOMAIN}/workload"
MIG_MANAGER_FACT: Final = "mig-manager"
MPS_FACT: Final = "mps"


class Strategy(StrEnum):
    """Ways in which a device plugin gives out GPUs; a backend uses those that it is told to."""

    WHOLE = "whole-devices"
    TIME_SLICING = "time-slicing"
    MPS = "mps"
    STATIC_MIG = "static-mig"
    MANAGED_MIG = "managed-mig"


@dataclass(frozen=True)
class KubernetesSettings:
    """What the allocator may use, and where it keeps its records.

    Attributes:
        process: Unique among all processes that live at once; told in what they write.
        strategies: Which hosts it uses, and how.
        namespace: Of the claims and of the ledgers of hosts. All who share GPUs of a cluster share it.
        mig_namespace: Of the MIG manager's configuration.
        cluster_policy: The `ClusterPolicy` that points to it.
        dra_drivers: Drivers of dynamic resource allocation whose hosts are off limits.
    """

    process: str
    strategies: frozenset[Strategy] = frozenset({Strategy.WHOLE})
    namespace: str = "videoflow"
    mig_namespace: str = "gpu-operator"
    cluster_policy: str = "cluster-policy"
    dra_drivers: tuple[str, ...] = ("gpu.nvidia.com",)

    def uses(self, *strategies: Strategy) -> bool:
        """Returns whether any of these is used."""
        return bool(self.strategies & set(strategies))
