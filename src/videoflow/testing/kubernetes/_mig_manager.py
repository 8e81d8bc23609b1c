"""The MIG manager of a fake cluster, with the odd paths of the real one."""

from collections.abc import Callable, Sequence
from typing import Any

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._hardware import FakeGpuHost, is_over, requested
from videoflow.testing.kubernetes._kinds import Object

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
Legal = Callable[[str, Sequence[str]], bool]
"""Whether a card of a product can be cut into profiles."""


class MigManager:
    """Cuts cards as the label `nvidia.com/mig.config` asks, one move each step.

    It acts on a change of the value only: that the label goes away triggers nothing. An entry whose layout is
    there already goes straight to success. Otherwise it is pending, and stays so for as long as a pod has a
    slice or card that would be destroyed. Success comes before the device plugin advertises anything new.

    Args:
        cluster: Where the labels are.
        hosts: Whose cards it cuts.
        legal: Judges layouts.
        read: Reads the text of a configuration.
        namespace: Of the configuration.
        config: Name of the ConfigMap with it.
    """

    def __init__(
        self,
        cluster: FakeCluster,
        hosts: list[FakeGpuHost],
        *,
        legal: Legal,
        read: Callable[[str], Any],
        namespace: str = "gpu-operator",
        config: str = "mig-config",
    ) -> None:
        self._cluster = cluster
        self._hosts = hosts
        self._legal = legal
        self._read = read
        self._config = (namespace, config)
        self._seen: dict[str, str] = {}
        self._applied: dict[str, int] = {}

    def settle(self, host: str, entry: str) -> None:
        """Takes an entry for what a host was asked last, as after a long time."""
        self._seen[host] = entry

    def applied(self, host: str) -> int:
        """Returns how often the cards of a host were really cut."""
        return self._applied.get(host, 0)

    def step(self) -> bool:
        """Makes one move for each host; returns whether anything changed."""
        return sum(self._move(host) for host in self._hosts) > 0

    def _move(self, host: FakeGpuHost) -> bool:
        node = self._cluster.find("nodes", host.name)
        labels = {} if node is None else node["metadata"].get("labels") or {}
        entry, state = labels.get(CONFIG, ""), labels.get(STATE, "")
        if not entry or (self._seen.get(host.name) == entry and state != "pending"):
            return False
        layout = self._layout(host, entry)
        fresh = self._seen.get(host.name) != entry
        self._seen[host.name] = entry
        if layout is None:
            self._say(host, "failed")
        elif layout == [gpu.slices for gpu in host.gpus]:
            self._say(host, "success")
        elif fresh or state != "pending":
            self._say(host, "pending")
        elif self._in_use(host, layout):
            return False
        else:
            for gpu, slices in zip(host.gpus, layout, strict=True):
                gpu.slices = slices
            self._applied[host.name] = self.applied(host.name) + 1
            self._say(host, "success")
        return True

    def _say(self, host: FakeGpuHost, state: str) -> None:
        def say(node: Object) -> None:
            node["metadata"].setdefault("labels", {})[STATE] = state

        self._cluster.edit("nodes", host.name, say)

    def _layout(self, host: FakeGpuHost, entry: str) -> list[list[str] | None] | None:
        """Returns the slices of each card under an entry; None: it cannot be applied."""
        namespace, name = self._config
        found = self._cluster.find("configmaps", name, namespace)
        try:
            rules = self._read((found or {})["data"]["config.yaml"])["mig-configs"][entry]
        except (KeyError, TypeError, ValueError):
            return None
        layout: list[list[str] | None] = [None] * len(host.gpus)
        for rule in rules:
            which = rule.get("devices", "all")
            for ordinal in range(len(host.gpus)) if which == "all" else which:
                if not 0 <= ordinal < len(host.gpus):
                    return None
                if rule.get("mig-enabled"):
                    counts = (rule.get("mig-devices") or {}).items()
                    layout[ordinal] = sorted(profile for profile, count in counts for _ in range(count))
                else:
                    layout[ordinal] = None
        return layout if all(self._legal(host.product, slices or ()) for slices in layout) else None

    def _in_use(self, host: FakeGpuHost, layout: list[list[str] | None]) -> bool:
        """Returns whether pods hold more than what stays as it is could hold."""
        kept = FakeGpuHost(
            host.name,
            host.product,
            host.memory_mib,
            [gpu for gpu, wanted in zip(host.gpus, layout, strict=True) if gpu.slices == wanted],
            mig_strategy=host.mig_strategy,
        ).resources()
        for resource, count in used_on(self._cluster, host.name).items():
            if count > kept.get(resource, 0):
                return True
        return False


def used_on(cluster: FakeCluster, host: str) -> dict[str, int]:
    """Returns what the pods of a host hold: resource → how many."""
    found: dict[str, int] = {}
    for pod in cluster.every("pods"):
        if pod.get("spec", {}).get("nodeName") == host and not is_over(pod):
            for resource, count in requested(pod).items():
                found[resource] = found.get(resource, 0) + count
    return found
