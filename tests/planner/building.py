"""Specs and facts written by hand, so that a planner test says only what matters to it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from videoflow.backends.capabilities import (
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    Profile,
    RuntimeCapabilities,
)
from videoflow.backends.outcomes import Durability, Observation, known
from videoflow.graph.spec import (
    CodeKind,
    ControlSpec,
    EdgeSpec,
    FlowSpec,
    LatestSpec,
    NodeKind,
    NodeSpec,
    OptionsSpec,
    PortRef,
    RequirementsSpec,
    TraitsSpec,
)
from videoflow.planner import PlanFacts, SizingDefaults

MIB = 1 << 20
GIB = 1 << 30
Input = str | Sequence[str] | tuple[str, LatestSpec]


def port(text: str) -> PortRef:
    """`camera` or `camera.events`."""
    node, _, name = text.partition(".")
    return PortRef(node=node, port=name or "out")


def make_node(
    name: str,
    kind: NodeKind,
    *,
    ports: tuple[str, ...] = ("out",),
    many: Mapping[str, int] | None = None,
    options: Mapping[str, Any] | None = None,
    traits: Mapping[str, Any] | None = None,
) -> NodeSpec:
    return NodeSpec(
        name=name,
        kind=kind,
        code=CodeKind.MODULE,
        module="flows",
        qualname=name.title(),
        ports=() if kind is NodeKind.CONSUMER else ports,
        many=dict(many or {}),
        options=OptionsSpec(**{"ordered": kind is NodeKind.CONSUMER, **(options or {})}),
        traits=TraitsSpec(**(traits or {})),
    )


class Graph:
    """Builds a spec node by node, in topological order."""

    def __init__(self) -> None:
        self.nodes: list[NodeSpec] = []
        self.edges: list[EdgeSpec] = []
        self.controls: list[ControlSpec] = []
        self.requirements = RequirementsSpec()

    def source(self, name: str, **parts: Any) -> str:
        return self._add(make_node(name, NodeKind.PRODUCER, **parts), ())

    def step(self, name: str, *inputs: Input, **parts: Any) -> str:
        return self._add(make_node(name, NodeKind.PROCESSOR, **parts), inputs)

    def sink(self, name: str, *inputs: Input, **parts: Any) -> str:
        return self._add(make_node(name, NodeKind.CONSUMER, **parts), inputs)

    def control(self, name: str, *markers: str) -> None:
        """Gives a node markers."""
        self.controls.append(ControlSpec(child=name, parents=tuple(port(marker) for marker in markers)))

    def _add(self, node: NodeSpec, inputs: tuple[Input, ...]) -> str:
        self.nodes.append(node)
        for index, given in enumerate(inputs):
            self.edges.append(self._edge(node.name, index, given))
        parents = [parent for edge in self.edges if edge.child == node.name for parent in edge.parents]
        scopes = [self._scope(parent) for parent in parents]
        shortest = min(scopes, key=len, default=())
        self.nodes[-1] = msgspec.structs.replace(node, scope=shortest)
        return node.name

    def _edge(self, child: str, index: int, given: Input) -> EdgeSpec:
        if isinstance(given, str):
            return EdgeSpec(child=child, input=index, parents=(port(given),))
        if isinstance(given[-1], LatestSpec):
            return EdgeSpec(child=child, input=index, parents=(port(str(given[0])),), latest=given[-1])
        return EdgeSpec(child=child, input=index, parents=tuple(port(str(parent)) for parent in given))

    def _scope(self, parent: PortRef) -> tuple[str, ...]:
        node = next(node for node in self.nodes if node.name == parent.node)
        return (*node.scope, f"{node.name}.{parent.port}") if parent.port in node.many else node.scope

    def spec(self) -> FlowSpec:
        return FlowSpec(
            flow_id="flow",
            folder=".",
            nodes=tuple(self.nodes),
            edges=tuple(self.edges),
            requirements=self.requirements,
            controls=tuple(self.controls),
        )


MESSAGING = MessagingCapabilities(
    adapter="memory",
    profiles=frozenset({Profile.RELIABLE_WORK, Profile.LIVE_LATEST}),
    durability=Durability.MEMORY,
    atomic_append=True,
    atomic_settle=True,
    gated_dispatch=True,
    observes_publication=False,
    crosses_processes=False,
    crosses_hosts=False,
    lease_seconds=None,
    copies=known(1, 0.0),
    maximum_channels=None,
    maximum_envelope_bytes=1 << 30,
    splits_retention=True,
)
PAYLOAD = PayloadCapabilities(
    adapter="memory",
    durable=known(False, 0.0),
    evictable=known(False, 0.0),
    persistent_volume=known(False, 0.0),
    crosses_processes=False,
    crosses_hosts=False,
    forwards_references=True,
    digest="none",
    maximum_object_bytes=1 << 40,
    free_bytes=known(1 << 40, 0.0),
    copies=known(1, 0.0),
)
RUNTIME = RuntimeCapabilities(
    adapter="memory",
    shared=False,
    survives_process=False,
    survives_power=False,
    atomic_commit=True,
    crosses_hosts=False,
    copies=known(1, 0.0),
)
THREADS = ExecutionCapabilities(
    engine="threads",
    isolates_crash=False,
    can_interrupt=False,
    crosses_processes=False,
    crosses_hosts=False,
    fuses=True,
    maximum_batch_items=None,
    clock_uncertainty_seconds=known(0.0, 0.0),
)
LOCAL = ExecutionCapabilities(
    engine="local",
    isolates_crash=True,
    can_interrupt=True,
    crosses_processes=True,
    crosses_hosts=False,
    fuses=True,
    maximum_batch_items=None,
    clock_uncertainty_seconds=known(0.0, 0.0),
)


def threads_facts(
    *,
    budget: int = 64 * GIB,
    available: Observation[int] | None = None,
    sizes: Mapping[str, int] | None = None,
    cpus: float = 64.0,
    fuse: bool = True,
    defaults: SizingDefaults | None = None,
    messaging: MessagingCapabilities = MESSAGING,
) -> PlanFacts:
    """Facts of the threads engine, with room for everything unless said otherwise."""
    return PlanFacts(
        engine="threads",
        execution=THREADS,
        messaging=messaging,
        payload=PAYLOAD,
        runtime=RUNTIME,
        memory_budget_bytes=budget,
        available_bytes=known(max(budget, 64 * GIB), 0.0) if available is None else available,
        max_item_bytes=sizes or {},
        cpus=cpus,
        fuse=fuse,
        defaults=defaults or SizingDefaults(),
    )


def local_facts(*, budget: int = 64 * GIB, sizes: Mapping[str, int] | None = None) -> PlanFacts:
    """Facts of the local engine: one process per replica, shared memory, SQLite."""
    replace = msgspec.structs.replace
    return PlanFacts(
        engine="local",
        execution=LOCAL,
        messaging=replace(MESSAGING, adapter="shm", crosses_processes=True, durability=Durability.HOST),
        payload=replace(PAYLOAD, adapter="shm", crosses_processes=True),
        runtime=replace(RUNTIME, adapter="sqlite", shared=True, survives_process=True),
        memory_budget_bytes=budget,
        available_bytes=known(budget, 0.0),
        max_item_bytes=sizes or {},
        cpus=64.0,
    )
