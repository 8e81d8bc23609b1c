"""A cluster with GPUs, its controllers, and API clients whose calls can be stopped, lost or killed."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from tests.allocation.mig_table import VendorTable
from videoflow.adapters.kubernetes import Refusal, Refused, ResourceKind
from videoflow.adapters.kubernetes import read_yaml as read_text
from videoflow.backends.outcomes import UnknownReason
from videoflow.deploy.allocation_kubernetes import MANAGED
from videoflow.testing.examiners.allocation import Call, Crashed, Fate, Layout
from videoflow.testing.kubernetes import (
    DevicePlugin,
    DirectApi,
    FakeCluster,
    FakeGpuHost,
    MigManager,
    Object,
    Scheduler,
)

TABLE = VendorTable()
HEAD = """# Kept by hand.
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
"""

read_yaml = lru_cache(maxsize=64)(read_text)


@lru_cache(maxsize=256)
def _arrangement(product_name: str, profiles: tuple[str, ...]) -> Layout | None:
    order = sorted(profiles, key=lambda name: (-int(name.partition("g")[0]), name))
    starts = range(8)

    def further(placed: Layout, left: Sequence[str]) -> Layout | None:
        if not left:
            return placed
        for start in starts:
            more = (*placed, (left[0], start))
            if not TABLE.illegal(product_name, more) and (found := further(more, left[1:])) is not None:
                return found
        return None

    found = further((), order)
    return None if found is None else tuple(sorted(found, key=lambda one: one[1]))


def arrangement(product: str, profiles: Sequence[str]) -> Layout | None:
    """Where slices of these profiles can be on a card, by the vendor's table; None: nowhere."""
    return _arrangement(product, tuple(profiles))


class World:
    """Everything outside the allocator.

    Attributes:
        held_back: The controllers move only by `proceed`.
        decide: What becomes of each call of an allocator.
        audit: Every write of an allocator that took effect.
    """

    def __init__(self, hosts: Sequence[FakeGpuHost], entries: Mapping[str, str] | None = None) -> None:
        # Nothing here is applied: who owns which field is not kept, which is a quarter of the time.
        self.cluster = FakeCluster(owners=False)
        self.hosts = list(hosts)
        self.held_back = False
        self.decide: Callable[[Call], Fate] | None = None
        self.audit: list[str] = []
        self.plugin = DevicePlugin(self.cluster, self.hosts)
        self.manager = MigManager(self.cluster, self.hosts, legal=self._legal, read=read_yaml)
        self.scheduler = Scheduler(self.cluster)
        self._furnish(entries or {})

    def _furnish(self, entries: Mapping[str, str]) -> None:
        lines = [f"  {name}: {rules}\n" for name, rules in entries.items()]
        config = {"metadata": {"name": "mig-config", "namespace": "gpu-operator"}}
        self.cluster.add(
            {"kind": "ConfigMap", **config, "data": {"config.yaml": "".join([HEAD, *lines])}},
            {
                "kind": "ClusterPolicy",
                "metadata": {"name": "cluster-policy"},
                "spec": {"migManager": {"config": {"name": "mig-config"}}},
            },
            *(host.node() for host in self.hosts),
        )
        for host in self.hosts:
            if entry := host.labels.get("nvidia.com/mig.config"):
                self.manager.settle(host.name, entry)
        self.plugin.step()
        for host in self.hosts:
            # From now on the label is whoever's who writes it.
            host.labels = {}

    def _legal(self, label: str, profiles: Sequence[str]) -> bool:
        return arrangement(spelled(label), profiles) is not None

    def settle(self) -> None:
        """Lets every controller come to rest, unless they are held back."""
        while not self.held_back and (self.manager.step() or self.plugin.step()):
            pass

    def proceed(self) -> None:
        """Lets the manager come to rest, and if it was at rest, the device plugin."""
        moved = False
        while self.manager.step():
            moved = True
        if not moved:
            self.plugin.step()

    def pod(self, name: str, node: str, resource: str, *, tolerant: bool = False, **more: Any) -> bool:
        """A pod that wants one device of a node; returns whether it got in."""
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "main", "image": "x", "resources": {"limits": {resource: "1"}}}],
            "tolerations": [{"operator": "Exists"}] if tolerant else [],
        }
        return self.run(
            {"kind": "Pod", "metadata": {"name": name, "namespace": "theirs"}, "spec": spec, **more}
        )

    def run(self, pod: Object) -> bool:
        """Runs a pod if it fits somewhere, else it never was."""
        self.cluster.add(pod)
        self.scheduler.step()
        metadata = pod["metadata"]
        found = self.cluster.find("pods", metadata["name"], metadata["namespace"])
        inside = bool((found or {})["spec"].get("nodeName"))
        if not inside:
            self.cluster.store.delete(("pods", metadata["namespace"], metadata["name"]))
        return inside

    def end(self, prefix: str) -> None:
        """Ends the pods whose names begin so."""
        for pod in self.cluster.every("pods"):
            metadata = pod["metadata"]
            if metadata["name"].startswith(prefix):
                self.cluster.store.delete(("pods", metadata["namespace"], metadata["name"]))
        self.settle()

    def cards(self) -> dict[str, Layout]:
        """Seat → its slices now, as the hardware has them."""
        return {
            f"{host.name}#{ordinal}": arrangement(spelled(host.product), gpu.slices or ()) or ()
            for host in self.hosts
            for ordinal, gpu in enumerate(host.gpus)
        }

    def slices(self, node: str, ordinal: int) -> list[str]:
        """Names of the slices that are on a card."""
        host = next(host for host in self.hosts if host.name == node)
        found: list[str] = []
        for profile in sorted(host.gpus[ordinal].slices or ()):
            number = sum(1 for name in found if f"/{profile}/" in name)
            found.append(f"{node}/{ordinal}/{profile}/{number}")
        return found


class Watched(Protocol):
    """A world that decides what becomes of calls, hears of writes, and moves on after each."""

    cluster: FakeCluster
    decide: Callable[[Call], Fate] | None
    audit: list[str]

    def settle(self) -> None: ...


class StoppedApi(DirectApi):
    """The API of one process, each call of which goes as the world decides."""

    def __init__(self, world: Watched, process: str) -> None:
        super().__init__(world.cluster, process)
        self._world = world
        self._process = process

    def _ask(self, method: str, kind: ResourceKind, namespace: str, name: str, **more: Any) -> Any:
        body = more.get("body")
        target = name or (body["metadata"]["name"] if isinstance(body, dict) else "")
        writes = method != "GET"
        call = Call(self._process.partition("~")[0], writes, f"{method} {kind.plural}", target)
        fate = Fate.GO if self._world.decide is None else self._world.decide(call)
        if fate is Fate.CRASH:
            raise Crashed
        if fate is Fate.UNHEARD:
            return Refused(Refusal.AMBIGUOUS, UnknownReason.TIMEOUT, "no answer")
        done = super()._ask(method, kind, namespace, name, **more)
        if writes and not isinstance(done, Refused):
            self._world.audit.append(f"{self._process} {method} {kind.plural} {target} ")
            self._world.settle()
        if fate is Fate.CRASH_AFTER:
            raise Crashed
        if fate is Fate.LOST:
            return Refused(Refusal.AMBIGUOUS, UnknownReason.TIMEOUT, "no answer")
        return done


def spelled(label: str) -> str:
    """The product as the driver spells it."""
    names = {"NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "NVIDIA A30", "NVIDIA T4"}
    return next((name for name in names if name.replace(" ", "-") == label), label)


def managed_labels(entry: str = "") -> dict[str, str]:
    """Labels of a host whose geometry may be changed."""
    found = {MANAGED: "true"}
    if entry:
        found |= {"nvidia.com/mig.config": entry, "nvidia.com/mig.config.state": "success"}
    return found


def rules(layouts: Sequence[Sequence[str] | None]) -> str:
    """An entry of the MIG configuration, as one line."""
    told = []
    for ordinal, slices in enumerate(layouts):
        if slices is None:
            told.append(f"{{devices: [{ordinal}], mig-enabled: false}}")
        else:
            counts = ", ".join(f'"{name}": {list(slices).count(name)}' for name in dict.fromkeys(slices))
            told.append(f"{{devices: [{ordinal}], mig-enabled: true, mig-devices: {{{counts}}}}}")
    return f"[{', '.join(told)}]"
