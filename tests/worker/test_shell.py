"""The shell where a backend does not answer: being told to end still ends it."""

from collections.abc import Sequence

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows
from tests.planner.building import threads_facts
from videoflow.backends.memory import (
    MemoryBroker,
    MemoryMessaging,
    MemoryPayloads,
    MemoryPool,
    MemoryRuntimeStore,
)
from videoflow.backends.runtime import Change, FirstFailure, FlowRuntime, StoreOutcome
from videoflow.clock import ManualClock
from videoflow.planner import plan_flow
from videoflow.worker import Backends, Job, RunControl, Shell, TaskFigures, TaskNodes, make_program
from videoflow.worker._job import Quit
from videoflow.worker.core import actions as a


class Undecided(MemoryRuntimeStore):
    """A store that, once it is told so, never says whether it committed."""

    def __init__(self, control: RunControl) -> None:
        super().__init__(ManualClock())
        self.control = control
        self.asked = 0
        self.undecided = False

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        if not self.undecided:
            return super().commit(changes, deadline=deadline)
        self.asked += 1
        if self.asked == 3:
            self.control.end_now()
        return StoreOutcome.UNKNOWN


class Silent:
    """An engine that wants to hear nothing."""

    def opened(self) -> None: ...
    def inner(self, fates: Sequence[a.InnerFate]) -> None: ...
    def failed(self, failure: FirstFailure) -> None: ...
    def figures(self, figures: TaskFigures) -> None: ...


def test_a_commit_that_stays_undecided_is_repeated_until_the_worker_is_told_to_end() -> None:
    numbers = Numbers(3, name="numbers")
    plan = plan_flow(vf.Flow([Rows(name="rows")(numbers)], name="f").compile(), threads_facts())
    program = make_program(plan, plan.task("numbers"), "run")
    control, clock, pool = RunControl(), ManualClock(), MemoryPool(1 << 20)
    store = Undecided(control)
    backends = Backends(
        MemoryMessaging(MemoryBroker(pool), "w", clock),
        MemoryPayloads(pool, "w", clock),
        FlowRuntime(store, "run"),
        clock,
    )
    nodes = TaskNodes(program, {"numbers": numbers}, {}, 0, control)
    shell = Shell(Job(program, plan.spec.flow_id, 0, "numbers-0-1"), backends, nodes, control, Silent())
    shell.start()
    store.undecided = True
    with pytest.raises(Quit):
        shell.perform(a.Commit(1))
    assert store.asked == 3, "it was asked again, with the same commit, as long as the run went on"
