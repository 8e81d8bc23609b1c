"""GPUs of a fake host, and the device plugin that advertises them."""

from collections import Counter
from dataclasses import dataclass, field

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._kinds import Object

PREFIX = "nvidia.com/"


@dataclass
class FakeGpu:
    """One card; `slices` is None where MIG mode is off, else the profiles that it is cut into."""

    slices: list[str] | None = None


@dataclass
class FakeGpuHost:
    """A host with cards of one product, as GPU feature discovery and the device plugin see it.

    Attributes:
        name: Of the node.
        product: As labels spell it, such as `NVIDIA-H100-80GB-HBM3`.
        memory_mib: Of one card; None: discovery says nothing.
        gpus: Its cards, in order of ordinals.
        sharing: Empty, `time-slicing` or `mps`.
        replicas: Shares of each card, where there is a sharing.
        mig_strategy: `none`, `single` or `mixed`.
        discovered: Whether there are any labels; without them nobody knows what the host is.
        labels: More labels.
    """

    name: str
    product: str
    memory_mib: int | None
    gpus: list[FakeGpu]
    sharing: str = ""
    replicas: int = 1
    mig_strategy: str = "none"
    discovered: bool = True
    labels: dict[str, str] = field(default_factory=dict)

    def resources(self) -> dict[str, int]:
        """Returns what the device plugin advertises: resource → how many."""
        found: Counter[str] = Counter({PREFIX + "gpu": 0})
        for gpu in self.gpus:
            if gpu.slices is None or self.mig_strategy == "none":
                found[PREFIX + "gpu"] += self.replicas if self.sharing else 1
            elif self.mig_strategy == "single":
                found[PREFIX + "gpu"] += len(gpu.slices)
            else:
                found.update(PREFIX + "mig-" + profile.replace("+", ".") for profile in gpu.slices)
        return dict(found)

    def discovery(self) -> dict[str, str]:
        """Returns the labels of feature discovery."""
        if not self.discovered:
            return {}
        profiles = {profile for gpu in self.gpus for profile in gpu.slices or ()}
        product = self.product + ("-SHARED" if self.sharing == "time-slicing" else "")
        if self.mig_strategy == "single" and len(profiles) == 1:
            product += f"-MIG-{profiles.pop()}"
        labels = {"gpu.count": str(len(self.gpus)), "gpu.product": product}
        labels["mig.strategy"] = self.mig_strategy
        if self.memory_mib is not None:
            labels["gpu.memory"] = str(self.memory_mib)
        if self.sharing:
            labels |= {"gpu.sharing-strategy": self.sharing, "gpu.replicas": str(self.replicas)}
        return {PREFIX + key: value for key, value in labels.items()} | self.labels

    def node(self) -> Object:
        """Returns the node before anything was advertised."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {}},
        }


class DevicePlugin:
    """Advertises the hardware of hosts, when it is stepped."""

    def __init__(self, cluster: FakeCluster, hosts: list[FakeGpuHost]) -> None:
        self._cluster = cluster
        self._hosts = hosts

    def step(self) -> bool:
        """Brings every node up to date; returns whether anything changed."""
        return sum(self._advertise(host) for host in self._hosts) > 0

    def _advertise(self, host: FakeGpuHost) -> bool:
        node = self._cluster.find("nodes", host.name)
        if node is None:
            return False
        labels, allocatable = node["metadata"].get("labels", {}), node["status"].get("allocatable", {})
        wanted = {key: str(count) for key, count in host.resources().items()}
        gone = [key for key in allocatable if key.startswith(PREFIX + "mig-") and key not in wanted]
        # A resource that is no longer there stays listed, as none.
        wanted |= dict.fromkeys(gone, "0")
        told = host.discovery()
        if (
            all(allocatable.get(key) == value for key, value in wanted.items())
            and told.items() <= labels.items()
        ):
            return False

        def advertise(found: Object) -> None:
            status = found.setdefault("status", {})
            for name in ("allocatable", "capacity"):
                status[name] = {**status.get(name, {}), **wanted}
            found["metadata"]["labels"] = {**found["metadata"].get("labels", {}), **told}

        self._cluster.edit("nodes", host.name, advertise)
        return True


def requested(pod: Object) -> Counter[str]:
    """Returns what the containers of a pod ask for of extended resources."""
    found: Counter[str] = Counter()
    for container in pod.get("spec", {}).get("containers", []):
        for name, count in container.get("resources", {}).get("limits", {}).items():
            if "/" in name:
                found[name] += int(count)
    return found


def is_over(pod: Object) -> bool:
    """Returns whether a pod has ended and holds nothing."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
