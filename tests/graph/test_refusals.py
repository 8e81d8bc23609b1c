"""Everything that is wrong with a graph is refused by name, and all of it at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.graph.nodes import Double as DoubleNode
from tests.graph.nodes import Last as LastNode
from tests.graph.nodes import Numbers, Sink
from tests.graph.nodes import Pair as PairNode
from tests.graph.nodes import Split as SplitNode
from tests.graph.nodes import Total as TotalNode

# Options need not be mentioned by a class; for the type checker these are any callables.
Double: Any = DoubleNode
Last: Any = LastNode
Pair: Any = PairNode
Split: Any = SplitNode
Total: Any = TotalNode


class Buffer(vf.Consumer):
    holds_items = 4

    def consume(self, value: Any) -> None: ...

    def checkpoint(self, ctx: vf.Context) -> int | None:
        return 1


class Later(vf.Producer):
    later_ports = ("packets",)

    def produce(self, resume: int | None) -> Any:
        yield from ()


class Keyed(vf.Consumer):
    effect_key_seconds = None

    def consume(self, value: Any) -> None: ...


class Writer(vf.Consumer):
    def __init__(self, path: str, **options: Any) -> None:
        self.path = path

    def consume(self, value: Any) -> None: ...

    def outputs(self) -> tuple[str, ...]:
        return (self.path,)


def variant(base: Any, **attributes: Any) -> Any:
    """Returns a node of a class that differs in some attributes."""
    return type(f"Odd{base.__name__}", (base,), attributes)()


def cycle() -> list[Any]:
    first, second = Double(name="a"), Double(name="b")
    first(second)
    second(first)
    return [Sink()(second)]


def fused(**options: Any) -> list[Any]:
    first = Double(name="a", fuse="x")(Numbers())
    return [Sink(name="s")(Double(name="b", fuse="x", **options)(first))]


def two(**options: Any) -> list[Any]:
    return [Sink()(Pair(**options)(Numbers(name="a"), Numbers(name="b")))]


def through(node: Any) -> list[Any]:
    return [Sink(name="s")(node(Numbers()))]


def joined(make: Callable[[Any], tuple[Any, Any]], **options: Any) -> list[Any]:
    return [Sink(name="s")(Pair(name="pair", **options)(*make(Numbers(name="camera"))))]


def merged(make: Callable[[Any], Any]) -> list[Any]:
    return [Sink(name="s")(make(Numbers(name="camera")))]


WRONG: dict[str, tuple[Callable[[], list[Any]], str, str]] = {
    "no sinks": (list, "mine", "no sinks"),
    "end is no consumer": (lambda: [Double()(Numbers())], "double", "no consumer"),
    "not wired": (lambda: [Sink(name="s")], "s", "not wired"),
    "not wired above": (lambda: [Sink()(Double())], "double", "not wired"),
    "name twice": (lambda: [Sink(name="s")(Double(name="s")(Numbers()))], "s", "two nodes have this name"),
    "bad name": (lambda: [Sink(name="My Sink")(Numbers())], "My Sink", "no name of a node"),
    "long name": (lambda: [Sink(name="s" * 42)(Numbers())], "s" * 42, "no name of a node"),
    "cycle": (cycle, "b", "a cycle: b reads a reads b"),
    "cycle of one": (lambda: [Sink()((node := Double(name="a"))(node))], "a", "a cycle: a reads a"),
    "unknown port": (lambda: [Sink(name="s")(Numbers().port("outt"))], "s", "no port 'outt'"),
    "no process": (lambda: through(type("Bare", (vf.Processor,), {})()), "bare", "has no process"),
    "no consume": (lambda: [type("Bare", (vf.Consumer,), {})()(Numbers())], "bare", "has no consume"),
    "no produce": (lambda: [Sink()(type("Bare", (vf.Producer,), {})())], "bare", "has no produce"),
    "too few inputs": (lambda: through(Pair()), "pair", "takes 2 inputs and is wired to 1"),
    "too many inputs": (lambda: [Sink()(Double()(n := Numbers(), n))], "double", "takes 1 input and is"),
    "port name": (lambda: through(variant(Double, ports=("Out",))), "odd_double", "no name of a port"),
    "port twice": (lambda: through(variant(Double, ports=("out", "out"))), "odd_double", "named twice"),
    "no ports": (lambda: [Sink()(variant(Double, ports=()).port("out"))], "odd_double", "no ports"),
    "many of no port": (lambda: through(variant(Double, many={"x": 1})), "odd_double", "which is no port"),
    "many below 1": (lambda: through(variant(Double, many={"out": 0})), "odd_double", "at least 1"),
    "consumer ports": (lambda: [variant(Sink, ports=("out",))(Numbers())], "odd_sink", "no ports"),
    "many of a source": (lambda: [Sink()(variant(Numbers, many={"out": 2}))], "odd_numbers", "no `many`"),
    "replicas 0": (lambda: through(Double(replicas=0)), "double", "replicas is 0"),
    "retries": (lambda: through(Double(retries=-1)), "double", "retries is -1"),
    "timeout": (lambda: through(Double(timeout_seconds=0)), "double", "timeout_seconds is 0"),
    "lookahead": (lambda: through(Double(lookahead=-1)), "double", "lookahead is -1"),
    "batch": (lambda: through(Double(batch=vf.Batch(0))), "double", "batch.max_items is 0"),
    "batch wait": (lambda: through(Double(batch=vf.Batch(1, -1))), "double", "max_wait_seconds is -1"),
    "batch of a plain node": (lambda: through(Double(batch=vf.Batch())), "double", "has no process_batch"),
    "batch of a sink": (lambda: [Sink(name="s", batch=vf.Batch())(Numbers())], "s", "is for processors"),
    "cpus": (lambda: through(Double(resources=vf.Resources(cpus=0))), "double", "resources.cpus"),
    "memory": (lambda: through(Double(resources=vf.Resources(memory_bytes=0))), "double", "_bytes is 0"),
    "fuse label": (lambda: through(Double(fuse="")), "double", "fuse is ''"),
    "partition key": (lambda: through(Double(partition_by="a b")), "double", "partition_by is 'a b'"),
    "capacity": (lambda: [Sink(name="s")(Numbers().latest(capacity=0))], "s", "capacity=0"),
    "max age": (lambda: [Sink(name="s")(Numbers().latest(max_age_seconds=0))], "s", "max_age_seconds=0"),
    "latest key": (lambda: [Sink(name="s")(Numbers().latest(key="a-b"))], "s", "latest(key=...)"),
    "source replicas": (lambda: [Sink()(Numbers(replicas=2))], "numbers", "a source with replicas=2"),
    "source partition": (lambda: [Sink()(Numbers(partition_by="key"))], "numbers", "no input to partition"),
    "state and replicas": (lambda: through(Total(replicas=2)), "total", "it keeps state"),
    "flush and replicas": (
        lambda: through(variant(Double, flush=lambda self: 1).__class__(replicas=2)),
        "odd_double",
        "it has a flush",
    ),
    "checkpoint and replicas": (lambda: [Buffer(replicas=2)(Numbers())], "buffer", "makes checkpoints"),
    "sink without effect key": (
        lambda: [Sink(replicas=2, ordered=False)(Numbers())],
        "sink",
        "declares no effect key",
    ),
    "consumer and replicas": (lambda: [Sink(replicas=2)(Numbers())], "sink", "it is ordered"),
    "ordered and replicas": (lambda: through(Double(replicas=2, ordered=True)), "double", "it is ordered"),
    "ordered=False with state": (lambda: through(Total(ordered=False)), "total", "ordered=False"),
    "ordered=False with checkpoint": (lambda: [Buffer(ordered=False)(Numbers())], "buffer", "ordered=False"),
    "no holds_items": (lambda: [variant(Buffer, holds_items=0)(Numbers())], "odd_buffer", "holds_items = 0"),
    "no checkpoint": (lambda: [variant(Sink, holds_items=3)(Numbers())], "odd_sink", "has no checkpoint"),
    "max_item_bytes": (lambda: through(variant(Double, max_item_bytes=0)), "odd_double", "_bytes is 0"),
    "join of two sources": (two, "pair", "no common source"),
    "join with more sources": (
        lambda: joined(lambda camera: (camera, vf.merge(camera, Numbers(name="b")))),
        "pair",
        "no common source",
    ),
    "live join": (lambda: joined(lambda camera: (camera.latest(), Double()(camera))), "pair", "is live"),
    "join of unequal scopes": (
        lambda: joined(lambda camera: (camera, Split(name="t")(Split(name="s")(camera).crops).crops)),
        "pair",
        "they never meet",
    ),
    "join of two fan-outs": (
        lambda: joined(lambda camera: (Split(name="s")(camera).crops, Split(name="t")(camera).crops)),
        "pair",
        "they never meet",
    ),
    "join by an attribute": (
        lambda: joined(lambda camera: (camera, Double()(camera)), replicas=2, partition_by="zone"),
        "pair",
        "reads an attribute",
    ),
    "join below a flush": (lambda: joined(lambda camera: (Last()(camera), camera)), "pair", "last flushes"),
    "merge twice": (lambda: merged(lambda camera: vf.merge(camera, camera)), "s", "names a port twice"),
    "merge of one source": (
        lambda: merged(lambda camera: vf.merge(Double()(camera), camera)),
        "s",
        "both derive from camera",
    ),
    "merge of unequal scopes": (
        lambda: merged(lambda camera: vf.merge(Split()(camera).port("crops"), Numbers(name="b"))),
        "s",
        "different numbers of items",
    ),
    "fused from outside": (
        lambda: [Sink()(Pair(name="p", fuse="x")(Double(name="a", fuse="x")(c := Numbers()), c))],
        "p",
        "reads numbers from outside",
    ),
    "fused replicas": (lambda: fused(replicas=2), "b", "replicas=2, and a has replicas=1"),
    "fused partition": (lambda: fused(partition_by="key"), "b", "partition_by belongs"),
    "fused and live": (
        lambda: [Sink(name="s")(Double(name="b", fuse="x")(Double(name="a", fuse="x")(Numbers()).latest()))],
        "b",
        "is live",
    ),
    "fused sources": (
        lambda: [Sink(name="s")(vf.merge(Numbers(name="a", fuse="x"), Numbers(name="b", fuse="x")))],
        "b",
        "is a source",
    ),
    "one path, two writers": (
        lambda: [Writer("a/../out.mp4", name="v")(n := Numbers()), Writer("out.mp4", name="w")(n)],
        "w",
        "v writes out.mp4 too",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_graph_is_refused_with_node_cause_and_remedy(case: str) -> None:
    build, node, said = WRONG[case]
    with pytest.raises(vf.FlowInvalid) as caught:
        vf.Flow(build(), name="mine").compile()
    found = [problem for problem in caught.value.problems if said in f"{problem.cause} {problem.remedy}"]
    assert [problem.node for problem in found] == [node], caught.value.block()
    assert all(problem.cause and problem.remedy for problem in caught.value.problems)
    assert caught.value.exit_status == 2


LATER: dict[str, tuple[Callable[[], list[Any]], str, str]] = {
    "join by time": (lambda: through(Double(join=vf.ByTime())), "double", "ByTime"),
    "window": (lambda: through(Double(window=vf.Last(items=3))), "double", "window"),
    "image": (lambda: through(Double(image="registry/x")), "double", "image="),
    "later port": (lambda: [Sink(name="s")(Later().packets)], "s", "later.packets"),
}


@pytest.mark.parametrize("case", LATER)
def test_what_is_not_built_yet_is_refused_by_name(case: str) -> None:
    build, node, said = LATER[case]
    with pytest.raises(vf.NotYet) as caught:
        vf.Flow(build(), name="mine").compile()
    found = [problem for problem in caught.value.problems if said in problem.cause]
    assert [problem.node for problem in found] == [node], caught.value.block()
    assert {problem.code for problem in caught.value.problems} == {"VF-NOT-YET"}
    assert said in caught.value.block()


def test_all_problems_are_reported_at_once_and_later_things_among_them() -> None:
    camera = Numbers(name="camera", replicas=2)
    wrong = Total(name="wrong", replicas=3)(camera.port("nothing"))
    later = Double(name="later", image="x")(wrong)
    unwired = Sink(name="unwired")
    with pytest.raises(vf.FlowInvalid) as caught:
        vf.Flow([Sink(name="Sink!")(later), unwired], name="Bad name").compile()
    assert {problem.node for problem in caught.value.problems} == {
        "Bad name",
        "Sink!",
        "camera",
        "wrong",
        "later",
        "unwired",
    }
    assert {problem.code for problem in caught.value.problems} == {"VF-FLOW-INVALID", "VF-NOT-YET"}
    for problem in caught.value.problems:
        assert problem.cause in caught.value.block()
        assert problem.remedy in caught.value.block()


def test_a_flow_takes_nodes() -> None:
    make: Any = vf.Flow
    with pytest.raises(vf.UsageError, match="was given"):
        make([Sink])


def test_what_is_allowed_is_not_refused(tmp_path: Path) -> None:
    camera = Numbers(name="camera")
    other = Numbers(name="other")
    parallel = Double(replicas=3, fuse="x")(camera)
    after = Double(replicas=3, fuse="x")(parallel)
    live = Pair(missing="skip")(camera.latest(), after)
    both = Total()(vf.merge(camera, other))
    twice = Pair()(vf.merge(camera, other), both)
    unordered = Keyed(name="post", replicas=2, ordered=False)(camera)
    crops = Double()(Split()(camera).crops)
    keyed = Total(partition_by="source")(both)
    sinks = [Sink()(live), Sink()(twice), unordered, Sink()(crops), Sink()(keyed), Buffer()(camera)]
    files = [Writer(str(tmp_path / "a"))(camera), Writer(str(tmp_path / "b"))(camera)]
    assert len(vf.Flow([*sinks, *files], name="fine").compile().nodes) == 18
