"""A cluster whose driver publishes devices, its controllers, and raw looks at who has what."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.dra.slices import DRIVER, Device, counters, device_classes, resource_slice
from videoflow.testing.examiners.allocation import Call, Fate, Layout
from videoflow.testing.kubernetes import Claims, FakeCluster, Kubelet, Object, Orphans, Scheduler
from videoflow.testing.kubernetes.expressions import Expressions

JUDGE = Expressions()
JUDGED: dict[tuple[object, ...], bool] = {}
OURS = "videoflow.dev/claim"


class DraWorld:
    """Everything outside the allocator.

    Attributes:
        held_back: The kubelet moves only by `proceed`.
        slow: No controller moves.
        decide: What becomes of each call of an allocator.
        audit: Every write of an allocator that took effect.
        devices: Node and name → device, as it is published.
    """

    def __init__(
        self, hosts: Mapping[str, Sequence[Device]], nodes: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self.cluster = FakeCluster(owners=False)
        self.held_back = self.slow = False
        self.decide: Callable[[Call], Fate] | None = None
        self.audit: list[str] = []
        self.devices = {(node, one["name"]): one for node, found in hosts.items() for one in found}
        self._given: tuple[int, list[tuple[str, str, str]]] = (-1, [])
        self.scheduler = Scheduler(self.cluster, self._matches)
        self.kubelet = Kubelet(self.cluster)
        self.cluster.add(*device_classes())
        for node, found in hosts.items():
            self.cluster.add(
                {"kind": "Node", "metadata": {"name": node, **(nodes or {}).get(node, {})}, "spec": {}},
                *published(node, found),
            )

    def _matches(self, expression: str, device: Mapping[str, Any]) -> bool:
        names = ("uuid", "parentUUID", "productName", "resource.kubernetes.io/pcieRoot")
        attributes = device["attributes"]
        told = [attributes.get(name, {}).get("string") for name in names]
        memory = device["capacity"].get("memory", {}).get("value")
        key = (expression, device["name"], *told, memory, device.get("allowMultipleAllocations"))
        if key not in JUDGED:
            JUDGED[key] = JUDGE.matches(expression, device)
        return JUDGED[key]

    def settle(self) -> None:
        """Lets every controller come to rest, the kubelet unless it is held back."""
        claims, orphans = Claims(self.cluster), Orphans(self.cluster)
        while not self.slow and (
            orphans.step()
            or claims.step()
            or self.scheduler.step()
            or (not self.held_back and (self.kubelet.prepare() or self.kubelet.run()))
        ):
            pass

    def proceed(self) -> None:
        """Lets the kubelet prepare what is allocated; where all is prepared, run it."""
        if not self.kubelet.prepare():
            self.kubelet.run()

    def run(self, name: str, namespace: str, spec: Object, claim: Object | None = None) -> bool:
        """Runs a pod if it fits somewhere, else it and its claim never were."""
        if claim is not None:
            found = {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": namespace}}
            self.cluster.add({**found, "spec": claim})
        self.cluster.add({"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
        self.settle()
        inside = bool((self.cluster.find("pods", name, namespace) or {})["spec"].get("nodeName"))
        if not inside:
            self.end(name, namespace)
        return inside

    def end(self, name: str, namespace: str) -> None:
        """Ends a pod, and with it a claim of the same name."""
        for plural in ("pods", "resourceclaims"):
            if self.cluster.find(plural, name, namespace) is not None:
                self.cluster.store.delete((plural, namespace, name))
        self.settle()

    def given(self) -> list[tuple[str, str, str]]:
        """Node, device and claim (ours, or namespace and name of a foreign one) of all that is given out."""
        version = self.cluster.store.version
        if self._given[0] != version:
            self._given = version, self._now_given()
        return self._given[1]

    def _now_given(self) -> list[tuple[str, str, str]]:
        return [
            (result["pool"], result["device"], _owner(claim))
            for claim in self.cluster.every("resourceclaims")
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        ]

    def leftovers(self) -> list[tuple[str, str]]:
        """Claims and pods of ours whose record has gone."""
        records = {one["metadata"]["name"] for one in self.cluster.every("configmaps")}
        return [
            (f"{plural} {one['metadata']['name']}", claim)
            for plural in ("resourceclaims", "pods")
            for one in self.cluster.every(plural)
            for claim in [(one["metadata"].get("labels") or {}).get(OURS, "")]
            if claim and claim not in records
        ]

    def layout(self, node: str, uuid: str) -> Layout:
        """The slices of a card that are there, or that some claim has."""
        given = {(pool, device) for pool, device, _ in self.given()}
        found = []
        for (there, name), device in self.devices.items():
            attributes = device["attributes"]
            if there != node or attributes.get("parentUUID", {}).get("string") != uuid:
                continue
            if "uuid" in attributes or (node, name) in given:
                found.append((attributes["profile"]["string"], int(name.rpartition("-")[2])))
        return tuple(sorted(found, key=lambda one: one[1]))


def published(node: str, devices: Sequence[Device]) -> list[Object]:
    """The resource slices of a node; counters are in one of their own, as servers ask since 1.35."""
    minors = sorted({int(one["name"].split("-")[1]) for one in devices if "consumesCounters" in one})
    if not minors:
        return [resource_slice(node, list(devices))]
    shared = resource_slice(node, [], name=f"{node}-{DRIVER}-counters", resourceSliceCount=2)
    shared["spec"].pop("devices")
    shared["spec"]["sharedCounters"] = [counters(minor) for minor in minors]
    return [shared, resource_slice(node, list(devices), resourceSliceCount=2)]


def _owner(claim: Object) -> str:
    metadata = claim["metadata"]
    return (metadata.get("labels") or {}).get(OURS, "") or f"{metadata['namespace']}/{metadata['name']}"
