"""Random graphs: joins and merges, fan-outs, replicas, live edges, groups, state, last words, trouble.

Used by the nightly search, and by Hypothesis, which hands in its own random numbers. What a graph may have
is a set of features, each of which can be left out. It refuses nothing: a graph that the planner refuses is
drawn again.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from videoflow.errors import FlowError
from videoflow.graph import Batch, Compiled, Consumer, Node, Port, compile_flow, merge
from videoflow.simulation import _library as library
from videoflow.simulation._subject import Subject, subject_of
from videoflow.simulation._wishes import FEATURES, SHARES

Wired = Any
"""A port, or a live edge from it."""
NodeClass = Any
"""A class of the library of simulated nodes."""

_MOST_NODES = 8
_MOST_ITEMS = 30
_LONG = 0.01
_TRIES = 20
_ORDERED = 0.3


@dataclass
class _End:
    """A port that may be read.

    Attributes:
        port: The port.
        sources: Above it.
        scope: The fan-outs above it.
        flushes: Last words come out of it.
        node: Its node's name.
    """

    port: Any
    sources: frozenset[str]
    scope: tuple[str, ...]
    flushes: bool
    node: str

    @property
    def is_source(self) -> bool:
        """Whether it is a port of a source."""
        return self.node in self.sources


@dataclass
class _Growing:
    chance: random.Random
    features: frozenset[str]
    often: frozenset[str]
    ends: list[_End] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    nodes: int = 0
    troubled: int = 0
    renumbers: bool = False
    fatal: bool = False
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)

    def has(self, feature: str, share: float) -> bool:
        """Whether a feature is wanted here."""
        return feature in self.features and self.chance.random() < share

    def draws(self, feature: str) -> bool:
        """Whether a feature of those that some graphs are to have much of is wanted here."""
        return self.has(feature, SHARES[feature][feature in self.often])

    def label(self, end: _End) -> str:
        """Returns the group of the node of a port, "" where it has none."""
        return self.groups.get(end.node, ("", 0))[0]

    def with_source(self, label: str) -> bool:
        """Whether a group begins with a source."""
        return any(end.is_source and label and self.label(end) == label for end in self.ends)

    def name(self, kind: str) -> str:
        """Returns the name of the next node."""
        self.nodes += 1
        return f"{kind}{self.nodes}"


def generate(
    chance: random.Random, features: frozenset[str] = FEATURES, *, often: frozenset[str] = frozenset()
) -> Subject:
    """Returns a planned random graph of at most eight nodes, and sources of at most thirty items.

    Args:
        chance: Decides.
        features: What the graph may have, of `FEATURES`.
        often: What it is to have much of, of what `WISHES` name.
    """
    for _ in range(_TRIES):
        try:
            return subject_of(_grown(chance, features, often), own_state=True)
        except FlowError:
            continue
    return subject_of(_grown(chance, frozenset(), often), own_state=True)


def _grown(chance: random.Random, features: frozenset[str], often: frozenset[str]) -> Compiled:
    for attempt in range(2 * _TRIES):
        growing = _Growing(chance, features if attempt < _TRIES else frozenset(), often)
        for _ in range(2 if growing.has("merges", 0.9 if "beside" in often else 0.25) else 1):
            _source(growing)
        for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 5))):
            if growing.nodes + _unread(growing) < _MOST_NODES - 1:
                _step(growing)
        sinks = _sinks(growing)
        if growing.nodes > _MOST_NODES:
            continue
        try:
            return compile_flow(sinks, "generated", "/")
        except FlowError:
            continue
    return compile_flow([library.Sink(name="sink")(library.Source(1, name="source"))], "generated", "/")


def _unread(growing: _Growing) -> int:
    return sum(number not in growing.read for number in range(len(growing.ends)))


def _source(growing: _Growing) -> None:
    chance = growing.chance
    fails = "fatal" in growing.often
    live = not fails and growing.has("live", 0.45 if "beside" in growing.often else 0.2)
    growing.renumbers |= live
    cls = library.Live if live else library.TwoPorts if chance.random() < 0.2 else library.Source
    usual = (3, 4, 5) if fails else (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 7)
    items = _MOST_ITEMS if chance.random() < _LONG else chance.choice(usual)
    name = growing.name("source")
    label = f"group-{name}" if growing.has("fused", 0.9 if "beside" in growing.often else 0.2) else ""
    options: dict[str, Any] = {"name": name, "fuse": label} if label else {"name": name}
    node = cls(items, chance.randrange(1000), growing.has("large", 0.3), **options)
    growing.groups[name] = label, 1
    for port in node.ports:
        growing.ends.append(_End(node.port(port), frozenset({name}), (), False, name))


def _inputs(growing: _Growing) -> tuple[list[Any], frozenset[str], list[_End]]:
    """Returns what a node reads: one port, a merge of different sources, or a join of equal ones."""
    chance = growing.chance
    number = chance.randrange(len(growing.ends))
    first = growing.ends[number]
    others = [(n, end) for n, end in enumerate(growing.ends) if n != number]
    apart = [(n, end) for n, end in others if not end.sources & first.sources and end.scope == first.scope]
    equal = [(n, end) for n, end in others if end.sources == first.sources and _may_meet(growing, first, end)]
    growing.read.add(number)
    if "beside" in growing.often and first.is_source and chance.random() < 0.7:
        return [first.port], first.sources, [first]
    if apart and growing.has("merges", 0.5):
        n, other = chance.choice(apart)
        growing.read.add(n)
        return [merge(first.port, other.port)], first.sources | other.sources, [first, other]
    if equal and growing.has("joins", 0.85):
        chosen = chance.sample(equal, min(len(equal), chance.choice((1, 1, 2))))
        growing.read |= {n for n, _ in chosen}
        ends = [first, *(end for _, end in chosen)]
        return [_live_or_not(growing, end) for end in ends], first.sources, ends
    return [_live_or_not(growing, first)], first.sources, [first]


def _may_meet(growing: _Growing, one: _End, other: _End) -> bool:
    """Whether two ports of equal sources may meet in a join: fan-outs are the same, or one is deeper."""
    if "deep-joins" not in growing.features:
        return not one.scope and not other.scope
    return one.scope == other.scope or one.scope == other.scope[:-1] or other.scope == one.scope[:-1]


def _live_or_not(growing: _Growing, end: _End) -> Wired:
    port: Port = end.port
    if not end.scope and growing.draws("latest"):
        age = growing.chance.choice((None, None, 5.0))
        return port.latest(capacity=growing.chance.choice((1, 1, 2)), max_age_seconds=age)
    return port


def _trouble(growing: _Growing, *, reads: bool) -> dict[str, list[int]]:
    """Returns inputs that make trouble; none kills where the task reads nothing that could be put aside."""
    found: dict[str, list[int]] = {}
    fatal = SHARES["fatal"]["fatal" in growing.often]
    for kind, share in (("fatal", fatal), ("poison", 0.18), ("killer", 0.08), ("flaky", 0.12)):
        if growing.renumbers and kind != "flaky":
            continue  # trouble is chosen by number, and the items of a live source may get other numbers
        if growing.troubled < 2 and (reads or kind != "killer") and growing.has(kind, share):
            growing.troubled += 1
            growing.fatal |= kind == "fatal"
            first = int("fatal" in growing.often)  # what came before is to be at hand
            found[kind] = sorted(
                {first + growing.chance.randrange(3) for _ in range(growing.chance.choice((1, 1, 2)))}
            )
    return found


def _step(growing: _Growing) -> None:
    chance = growing.chance
    inputs, sources, above = _inputs(growing)
    joins, live = len(inputs) > 1, any(not isinstance(each, Port) for each in inputs)
    scope = min((end.scope for end in above), key=len)
    options: dict[str, Any] = {"name": growing.name("step")}
    if joins and (chance.random() < 0.4 or live or any(end.flushes for end in above)):
        options["missing"] = "none" if chance.random() < 0.6 else "skip"
    beside = "beside" in growing.often and not joins and isinstance(inputs[0], Port) and above[0].is_source
    cls = _class(growing, joins=joins, deep=bool(scope), beside=beside)
    if cls is library.Moody:
        options["deterministic"] = False
    if cls is library.Step and growing.has("batches", 0.6):
        cls = library.Gathers
        waits = chance.choice((0.0, 0.004, 0.05))
        options["batch"] = Batch(chance.choice((2, 3, 5)), waits, chance.choice((None, "shape")))
    stateless = cls in (
        library.Step,
        library.Gathers,
        library.Same,
        library.Fork,
        library.Split,
        library.Steered,
        library.Moody,
    )
    if stateless and not (joins or beside):
        _spread(growing, options)
    elif joins and growing.has("join-replicas", 0.2):
        options["replicas"] = 2
    elif not (joins or stateless or beside) and growing.has("partitions", 0.3):
        options |= {"replicas": 2, "partition_by": chance.choice(("key", "source"))}
    if growing.has("fused", 0.9 if beside else 0.6 if growing.label(above[0]) else 0.3):
        alone = joins or "batch" in options  # inputs wait in front of a task alone
        _group(growing, options, above, joins=alone or not isinstance(inputs[0], Port))
    arguments: dict[str, Any] = {"salt": chance.randrange(1000), "large": growing.has("large", 0.5)}
    if growing.has("skips", 0.3):
        arguments["skips"] = chance.choice((2, 3, 4))
    arguments["trouble"] = _trouble(growing, reads=not growing.with_source(options.get("fuse", "")))
    node: Any = cls(**arguments, **options)
    node(*inputs)
    if cls in (library.Steered, library.SteeredSum):
        label = options.get("fuse", "")
        outside = [n for n, end in enumerate(growing.ends) if not label or growing.label(end) != label]
        markers = chance.choice(outside or range(len(growing.ends)))
        growing.read.add(markers)
        node.control(growing.ends[markers].port)
    flushes = cls is library.LastWords or any(end.flushes for end in above)
    for port in node.ports:
        name = options["name"]
        deeper = (f"{name}.{port}",) if port in node.many else ()
        growing.ends.append(_End(node.port(port), sources, scope + deeper, flushes, name))


def _class(growing: _Growing, *, joins: bool, deep: bool, beside: bool) -> NodeClass:
    chance = growing.chance
    if beside and growing.features >= {"state", "flush", "markers"} and chance.random() < 0.8:
        steered = chance.choice((library.SteeredSum, library.Steered)) if chance.random() < 0.6 else None
        return steered or library.LastWords
    if "moody" in growing.often and not joins and growing.draws("moody"):
        return library.Moody
    much = growing.often & {"fatal", "snapshots"}
    if growing.has("state", 0.8 if much else 0.5 if joins or growing.fatal else 0.25):
        if growing.has("flush", 0.8 if growing.fatal else 0.2 if "snapshots" in growing.often else 0.5):
            return library.LastWords
        if growing.draws("snapshots"):
            return library.Private
        return library.SteeredSum if growing.has("markers", 0.3) else library.Sum
    if not joins and not deep and growing.has("many", 0.2):
        return library.Split
    if growing.draws("moody"):
        return library.Moody
    if growing.has("markers", 0.1):
        return library.Steered
    return chance.choice((library.Step, library.Step, library.Same, library.Fork))


def _spread(growing: _Growing, options: dict[str, Any]) -> None:
    if "deterministic" not in options and growing.chance.random() < _ORDERED:
        options["ordered"] = True
        return
    if growing.has("unordered", 0.9 if "deterministic" in options else 0.7):
        options["ordered"] = False
        if growing.has("replicas", 0.9 if "moody" in growing.often else 0.5):
            options["replicas"] = growing.chance.choice((2, 2, 3))


def _group(growing: _Growing, options: dict[str, Any], above: list[_End], *, joins: bool) -> None:
    """Puts a node into its parent's group, or begins a new one."""
    copies = options.get("replicas", 1)
    label, others = growing.groups.get(above[0].node, ("", 0))
    if joins or others != copies or not label:
        label = f"group-{options['name']}"
    options["fuse"] = label
    growing.groups[options["name"]] = label, copies


def _sinks(growing: _Growing) -> list[Node]:
    chance = growing.chance
    sinks: list[Node] = []
    for number, end in enumerate(growing.ends):
        if number in growing.read and chance.random() < 0.85:
            continue
        if growing.nodes >= _MOST_NODES and number in growing.read:
            continue
        wired = _live_or_not(growing, end)
        sink = _sink(growing, end, read=number in growing.read or not isinstance(wired, Port))
        sinks.append(sink(wired))
    if not sinks:
        sinks.append(library.Sink(name=growing.name("sink"))(growing.ends[-1].port))
    return sinks


def _sink(growing: _Growing, end: _End, *, read: bool) -> Consumer:
    """Returns a sink that is to be wired.

    Args:
        growing: The graph.
        end: What it is to read.
        read: Others read that, too, or it is read live.
    """
    chance = growing.chance
    keyed = "effect-keys" in growing.often
    if growing.has("checkpoints", 0.2 if keyed else 0.45):
        options = {} if read else _beside(growing, end, alone=True)
        return library.Saver(chance.choice((1, 2, 3, 4)), name=growing.name("saver"), **options)
    options = {} if read else _beside(growing, end)
    if chance.random() < (0.2 if keyed else 0.5) and "state" in growing.features:
        return library.Rows(name=growing.name("rows"), **options)
    if growing.draws("effect-keys"):
        if not options and growing.has("replicas", 0.6):
            options = {"replicas": 2, "ordered": False}
        return library.Keyed(name=growing.name("keyed"), **options)
    return library.Sink(name=growing.name("sink"), **options)


def _beside(growing: _Growing, end: _End, *, alone: bool = False) -> dict[str, Any]:
    """Returns options that put a sink into the group of what it reads, or none.

    Args:
        growing: The graph.
        end: What it reads.
        alone: Nothing of the group may be read outside, where it would wait for the checkpoints of the sink.
    """
    label, copies = growing.groups.get(end.node, ("", 0))
    others = [each for each in growing.ends if growing.label(each) == label]
    if not label or copies != 1 or not growing.has("fused", 0.5):
        return {}
    if alone and (len(others) > 1 or end.is_source):
        return {}
    return {"fuse": label}
