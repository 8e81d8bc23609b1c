"""Random flows as the compiler takes them: joins of equal sources, merges of others, one fan-out."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.planner.building import Graph
from videoflow.graph.spec import LatestSpec

Draw = Any


@dataclass
class Growing:
    """A flow that grows node by node; each port knows its sources, and whether a fan-out is above it.

    Attributes:
        latest: Whether edges may be live.
        fuse: Whether nodes may have labels.
        ports: Port → (sources, below a fan-out).
        groups: Node → (its label, its replicas), for nodes that begin or continue a group.
    """

    latest: bool
    fuse: bool
    graph: Graph = field(default_factory=Graph)
    ports: dict[str, tuple[frozenset[str], bool]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)

    def edge(self, draw: Draw, port: str) -> Any:
        self.read.add(port)
        if self.latest and draw(st.integers(0, 3)) == 0:
            return (
                port,
                LatestSpec(key=draw(st.sampled_from([None, "key"])), capacity=draw(st.integers(1, 3))),
            )
        return port

    def inputs(self, draw: Draw) -> tuple[tuple[Any, ...], frozenset[str], bool]:
        """One port, a merge of different sources, or a join of equal ones."""
        first = draw(st.sampled_from(sorted(self.ports)))
        sources, is_deep = self.ports[first]
        apart = [p for p, (s, deep) in sorted(self.ports.items()) if not s & sources and deep == is_deep]
        equal = [p for p, (s, deep) in sorted(self.ports.items()) if s == sources and not deep and p != first]
        way = draw(st.sampled_from(["single", "single", "merge", "join"]))
        if way == "merge" and apart:
            other = draw(st.sampled_from(apart))
            self.read |= {first, other}
            return ((first, other),), sources | self.ports[other][0], is_deep
        if way == "join" and equal and not is_deep:
            others = draw(st.lists(st.sampled_from(equal), min_size=1, max_size=2, unique=True))
            return tuple(self.edge(draw, port) for port in (first, *others)), sources, False
        return (self.edge(draw, first),), sources, is_deep

    def grow(self, draw: Draw, name: str) -> None:
        inputs, sources, is_deep = self.inputs(draw)
        is_join = len(inputs) > 1
        options = draw(step_options(is_join))
        if self.fuse and draw(st.booleans()):
            options["fuse"] = self.label(inputs, name, options["replicas"])
        ports = draw(st.sampled_from([("out",), ("out", "more")]))
        many = {} if is_deep or draw(st.integers(0, 4)) else {"out": draw(st.integers(2, 4))}
        traits = {"stateful": True} if options["ordered"] and draw(st.booleans()) else {}
        self.graph.step(name, *inputs, ports=ports, many=many, options=options, traits=traits)
        for port in ports:
            shown = name if port == "out" else f"{name}.{port}"
            self.ports[shown] = (sources, is_deep or port in many)

    def label(self, inputs: tuple[Any, ...], name: str, replicas: int) -> str:
        """That of the only parent where the node may join its group, else a new one."""
        parent = inputs[0].partition(".")[0] if len(inputs) == 1 and isinstance(inputs[0], str) else ""
        label, copies = self.groups.get(parent, ("", 0))
        label = label if copies == replicas else f"group-{name}"
        self.groups[name] = (label, replicas)
        return label

    def finish(self, draw: Draw) -> Graph:
        for number, port in enumerate(sorted(self.ports.keys() - self.read)):
            held = draw(st.integers(0, 4))
            saves = {"checkpoints": True, "stateful": True, "holds_items": held}
            self.graph.sink(f"sink{number}", port, traits=saves if held else {})
        return self.graph


@st.composite
def step_options(draw: Draw, is_join: bool) -> dict[str, Any]:
    ordered = is_join or draw(st.booleans())
    return {
        "ordered": ordered,
        "replicas": 1 if ordered else draw(st.integers(1, 3)),
        "lookahead": draw(st.integers(0, 3)) if ordered and draw(st.integers(0, 3)) == 0 else 0,
        "missing_chosen": True,
    }


@st.composite
def flows(draw: Draw, *, latest: bool = False, labels: bool = False, steps: int = 5) -> Graph:
    """A random flow of one or two sources and a few steps, each unread port ending in a sink."""
    growing = Growing(latest, labels)
    for name in ("x", "y")[: draw(st.integers(1, 2))]:
        growing.graph.source(name)
        growing.ports[name] = (frozenset({name}), False)
    for number in range(draw(st.integers(1, steps))):
        growing.grow(draw, f"n{number}")
    return growing.finish(draw)
