"""`Flow`: which engine it asks, what it hands over, how it looks in a notebook."""

from collections.abc import Iterator
from typing import Any

import pytest

import videoflow as vf
from tests.graph.nodes import Double, Last, Numbers, Sink, Split, halve
from videoflow import registry
from videoflow.graph.report import FailureReport, RunReport, Verdict
from videoflow.graph.running import RunOptions, RunRequest
from videoflow.graph.spec import PortRef


class Engine:
    """An engine that runs nothing: it remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []
        self.calls: list[str] = []
        self.asked: list[str] = []
        self.interrupts = 0
        self.failure: FailureReport | None = None
        self.verdict = Verdict.COMPLETE

    def __call__(self) -> "Engine":
        return self

    def start(self, request: RunRequest) -> "Engine":
        self.requests.append(request)
        self.calls.append("start")
        return self

    def stop(self) -> None:
        self.calls.append("stop")

    def wait(self) -> RunReport:
        self.calls.append("wait")
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return RunReport(
            run_id="R",
            flow_id="f",
            engine="fake",
            verdict=self.verdict,
            exit_status=0,
            failure=self.failure,
        )

    def values(self) -> Iterator[tuple[Any, ...]]:
        for number in range(3):
            yield (number, 2 * number)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()

    def load(group: str, name: str) -> Engine:
        assert group == registry.ENGINES
        made.asked.append(name)
        return made

    monkeypatch.setattr(registry, "load", load)
    return made


def simple() -> vf.Flow:
    return vf.Flow([Sink()(halve(Numbers(), by=4))], name="simple")


def test_run_hands_over_the_document_the_classes_and_the_options(engine: Engine) -> None:
    report = simple().run(drain_seconds=3.0, fuse=False)
    (request,) = engine.requests
    assert report.run_id == "R"
    assert request.spec == simple().compile()
    assert request.classes == {"numbers": Numbers, "halve": halve, "sink": Sink}
    assert request.options == RunOptions(drain_seconds=3.0, fuse=False)
    assert request.watched == ()
    assert engine.calls == ["start", "wait"]


def test_run_is_in_threads_and_start_is_local_unless_said(engine: Engine) -> None:
    simple().run()
    simple().start()
    simple().run(engine="local")
    assert engine.asked == ["threads", "local", "local"]


def test_an_unknown_engine_or_option_is_refused_with_the_nearest() -> None:
    make: Any = simple().run
    with pytest.raises(vf.ArgumentInvalid) as caught:
        make(drain_second=3)
    assert "did you mean 'drain_seconds'" in caught.value.remedy
    with pytest.raises(vf.UsageError) as unknown:
        simple().run(engine="treads")
    assert "threads" in unknown.value.block()


def test_a_wrong_graph_is_found_before_an_engine_is_asked(engine: Engine) -> None:
    with pytest.raises(vf.FlowInvalid):
        vf.Flow([Sink()]).run()
    assert engine.calls == []


@pytest.mark.parametrize(
    ("interrupts", "calls"),
    [
        (1, ["start", "wait", "stop", "wait"]),
        (2, ["start", "wait", "stop", "wait", "stop", "wait"]),
    ],
)
def test_an_interrupt_drains_and_a_second_one_ends(engine: Engine, interrupts: int, calls: list[str]) -> None:
    engine.interrupts = interrupts
    assert simple().run().run_id == "R"
    assert engine.calls == calls


def test_watch_yields_tuples_of_the_named_ports(engine: Engine) -> None:
    split = Split()(Numbers())
    other = Double()(split)
    flow = vf.Flow([Sink()(split)], name="w")
    assert list(flow.watch(split, other)) == [(0, 0), (1, 2), (2, 4)]
    (request,) = engine.requests
    assert request.watched == (PortRef(node="split"), PortRef(node="double"))
    assert "double" in request.classes
    assert engine.calls == ["start", "wait"]


def test_leaving_the_loop_stops_the_run(engine: Engine) -> None:
    double = Double()(Numbers())
    for _ in vf.Flow([], name="w").watch(double):
        break
    assert engine.calls == ["start", "stop", "wait"]


def test_a_watched_run_that_fails_raises_its_first_failure(engine: Engine) -> None:
    double = Double()(Numbers())
    engine.verdict = Verdict.FAILED
    engine.failure = FailureReport(
        code="VF-NODE-FAILED", message="node double", node="double", cause="ValueError"
    )
    with pytest.raises(vf.NodeFailed, match="ValueError") as caught:
        list(vf.Flow([], name="w").watch(double))
    assert caught.value.node == "double"
    engine.verdict = Verdict.STALLED
    engine.failure = FailureReport(code="VF-RUN-STALLED", message="no progress")
    with pytest.raises(vf.RunStalled):
        list(vf.Flow([], name="w").watch(double))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"memory_bytes": "2 GiB"}, "memory_bytes"), ({"fuse": 3}, "fuse"), ({"drain": 3.0}, "drain")],
)
def test_wrong_options_of_a_run_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    flow = vf.Flow([Sink(name="s")(Numbers(name="a"))], name="w")
    with pytest.raises(vf.UsageError, match=said):
        flow.run(**options)


def test_what_cannot_be_watched_is_refused(engine: Engine) -> None:
    camera, other = Numbers(name="a"), Numbers(name="b")
    split = Split()(camera)
    flow = vf.Flow([Sink(name="s")(split), Sink(name="t")(other)], name="w")
    with pytest.raises(vf.UsageError, match="watch takes"):
        flow.watch()
    with pytest.raises(vf.UsageError, match="no port 'x'"):
        flow.watch(split.port("x"))
    with pytest.raises(vf.NotYet, match="watch"):
        flow.watch(camera, engine="local")
    with pytest.raises(vf.FlowInvalid, match="no common source"):
        flow.watch(camera, other)
    with pytest.raises(vf.UsageError, match="cannot be a parent"):
        flow.watch(flow._ends[0])
    flow.watch(split.crops)
    flow.watch(camera, split.crops)
    flow.watch(Last()(camera), camera)
    assert engine.calls == []


def test_a_flow_is_drawn() -> None:
    camera = Numbers(name="camera")
    split = Split(name="split")(camera.latest())
    flow = vf.Flow([Sink(name="end")(split.crops)], name="drawn")
    assert flow.mermaid().splitlines() == [
        "flowchart LR",
        '  n0(["camera"])',
        '  n1["split"]',
        '  n2[/"end"/]',
        "  n0 -.-> n1",
        "  n1 -->|crops| n2",
    ]
    page = flow._repr_html_()
    assert "camera (latest)" in page
    assert "split.crops" in page


def test_a_wrong_flow_shows_what_is_wrong_instead() -> None:
    page = vf.Flow([Sink(name="<b>")], name="wrong")._repr_html_()
    assert "&lt;b&gt;" in page
    assert "not wired" in page
    assert "<b>" not in page
