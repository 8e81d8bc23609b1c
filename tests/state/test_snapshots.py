"""`snapshot` and `restore`: what a node keeps in itself tells of the same inputs as outputs and positions."""

from typing import Any

import pytest

import videoflow as vf
from tests.planner.building import threads_facts
from tests.state.nodes import Counted, Numbers, Rows, Smoothed
from videoflow.backends.coverage import Origin
from videoflow.planner import plan_flow
from videoflow.worker import Kept, RunControl, TaskNodes, make_program
from videoflow.worker.core.actions import Element, Returned


class Awkward(vf.Processor):
    """Has a snapshot that fails on the fifth input, or that no edge carries."""

    max_item_bytes = 4096

    def __init__(self, how: str, **options: Any) -> None:
        super().__init__(**options)
        self.how = how
        self.count = 0

    def process(self, number: int) -> int:
        self.count += 1
        return number

    def snapshot(self) -> Any:
        if self.count >= 5:
            if self.how == "raises":
                raise RuntimeError("no picture of me")
            return {self.count}
        return self.count

    def restore(self, value: Any) -> None: ...


def test_an_unchanged_snapshot_costs_no_write() -> None:
    kept = Kept("node", 1000, {})
    assert [set(kept.take_snapshot(value)) for value in (1, 1, 2)] == [
        {"node:snapshot"},
        set(),
        {"node:snapshot"},
    ]
    again = Kept("node", 1000, {"node:snapshot": kept.take_snapshot([3])["node:snapshot"] or b""})
    assert (again.has_snapshot, again.snapshot(), dict(again.state)) == (True, [3], {})


def test_another_process_goes_on_where_the_last_commit_stands() -> None:
    flow = vf.Flow([Rows(name="rows")(Smoothed(name="mean")(Numbers(name="numbers")))], name="f")
    plan = plan_flow(flow.compile(), threads_facts())
    program = make_program(plan, plan.task("mean"), "run")

    def begun(state: dict[str, bytes]) -> TaskNodes:
        nodes = TaskNodes(program, {"mean": Smoothed(name="mean")}, {}, 0, RunControl())
        nodes.restore(state)
        assert nodes.open() is None
        return nodes

    def said(nodes: TaskNodes, number: int) -> Any:
        at = Origin("numbers", 0, number)
        answer = nodes.call("mean", Element(str(number), at, values=(number,)), 1)
        assert isinstance(answer, Returned)
        return answer.outputs[0][1]

    alone = begun({})
    wanted = [said(alone, number) for number in range(6)]
    first = begun({})
    assert [said(first, number) for number in range(3)] == wanted[:3]
    committed = {key: body for key, body in first.taken_changes().items() if body is not None}
    said(first, 3)  # and it dies before it commits that
    second = begun(committed)
    assert [said(second, number) for number in range(3, 6)] == wanted[3:]


@pytest.mark.parametrize(("how", "said"), [("raises", "no picture of me"), ("a set", "builtins.set")])
def test_a_node_that_cannot_say_what_it_keeps_ends_the_run_by_name(how: str, said: str) -> None:
    flow = vf.Flow([Rows(name="rows")(Awkward(how, name="awkward")(Numbers(name="numbers")))], name="f")
    with pytest.raises(vf.NodeFailed if how == "raises" else vf.FlowError) as caught:
        flow.run()
    assert "node awkward failed in snapshot" in str(caught.value)
    assert said in caught.value.block()
    assert "awkward" in str(getattr(caught.value.report, "failure", ""))


class Half(vf.Processor):
    def process(self, number: int) -> int:
        return number

    def snapshot(self) -> int:
        return 1


class OtherHalf(vf.Processor):
    def process(self, number: int) -> int:
        return number

    def restore(self, value: int) -> None: ...


class Both(vf.Consumer):
    holds_items = 3

    def consume(self, number: int) -> None: ...

    def checkpoint(self, ctx: vf.Context) -> int | None:
        return 1

    def snapshot(self) -> int:
        return 1

    def restore(self, value: int) -> None: ...


class Denies(Smoothed):
    stateful = False


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (Half(name="node"), "has snapshot and no restore"),
        (OtherHalf(name="node"), "has restore and no snapshot"),
        (Both(name="node"), "has snapshot and checkpoint"),
        (Denies(name="node"), "stateful = False, and it has snapshot"),
        (Counted(name="node", replicas=2), "keeps state"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_does_not_fit_together_is_refused_by_name(node: Any, said: str) -> None:
    node(Numbers(name="numbers"))
    sinks = [node] if isinstance(node, vf.Consumer) else [Rows(name="rows")(node)]
    with pytest.raises(vf.FlowInvalid) as caught:
        vf.Flow(sinks, name="f").compile()
    assert [problem.node for problem in caught.value.problems if said in problem.cause] == ["node"]
