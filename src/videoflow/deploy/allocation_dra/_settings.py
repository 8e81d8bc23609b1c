"""What is asked of a driver of dynamic resource allocation, and under which names."""

from dataclasses import dataclass
from typing import Final

DRIVER: Final = "gpu.nvidia.com"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
DOMAIN: Final = "videoflow.dev"
# On config maps, claims and pods of ours.
KIND: Final = f"{DOMAIN}/kind"
CLAIM: Final = f"{DOMAIN}/claim"
WORKLOAD: Final = f"{DOMAIN}/workload"
EPOCH: Final = f"{DOMAIN}/epoch"
# A constraint of this key declares that workloads share one claim.
GROUP: Final = f"{DOMAIN}/group"
# How a pod calls its claim.
POD_CLAIM: Final = "accelerators"
REQUEST: Final = "gpu"


@dataclass(frozen=True)
class DraSettings:
    """What the allocator may use, and where it keeps its records.

    Attributes:
        process: Unique among all processes that live at once; told in what they write.
        namespace: Of the claims, their records, their holders, and the pods that use them.
        driver: Name of the driver, which is also the domain of its attributes.
        gpu_class: Device class of whole cards.
        mig_class: Device class of MIG slices.
        config_version: API version of the driver's own parameters.
        holder_image: Image of the pods that hold a claim; it has to do nothing but stay, as the one does that
            every host has for the sandboxes of its pods. There is no default: each cluster has its registry.
    """

    process: str = "render"
    namespace: str = "videoflow"
    driver: str = DRIVER
    gpu_class: str = "gpu.nvidia.com"
    mig_class: str = "mig.nvidia.com"
    config_version: str = "resource.nvidia.com/v1beta1"
    holder_image: str = ""
