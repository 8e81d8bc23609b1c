"""One replica of a task in a simulated run, over all its incarnations: one action at a time.

Used by the simulator. It runs the product's shell and core; a death is an exception that nothing of the
product catches, after which everything that the incarnation had is thrown away.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from videoflow.backends.messaging import Kind
from videoflow.backends.runtime import CommitOutcome, Desired, FirstFailure
from videoflow.clock import WouldBlock
from videoflow.planner.plan import TaskPlan
from videoflow.simulation._backends import FaultyPayloads
from videoflow.simulation._clock import Now, StationClock
from videoflow.simulation._nodes import SimulatedNodes
from videoflow.simulation._script import Script, SimulatedDeath, end_process
from videoflow.worker import Quit, RunControl, Shell, TaskFigures
from videoflow.worker.core import Action, actions
from videoflow.worker.core.actions import InnerFate

_DELAY_STEPS = 150
Answer = Any
"""Of whichever action."""
_STILL = frozenset((actions.Pull, actions.Publish, actions.Republish, actions.Pause))
_ALONE = frozenset((actions.Load, actions.Call, actions.Control, actions.Flush, actions.Checkpoint))


class Ending(Enum):
    """How a step went for the station."""

    GOES_ON = auto()
    WAITS = auto()
    DIED = auto()
    BROKE = auto()
    ENDED = auto()
    QUIT = auto()


@dataclass
class Incarnation:
    """One start of a worker, with everything that dies with it."""

    number: int
    owner: str
    shell: Shell
    nodes: SimulatedNodes
    payloads: FaultyPayloads
    control: RunControl
    steps: Generator[Action, Any, Kind] | None = None
    action: Action | None = None
    opened: bool = False
    flushing: bool = False


class Surroundings(Protocol):
    """What a station asks of the run, and tells it.

    Attributes:
        step: Number of the step in work.
    """

    step: int

    def incarnation(self, station: "Station") -> Incarnation:
        """Makes the next incarnation of a station."""
        ...

    def inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Fates on edges inside the task."""
        ...

    def failed(self, failure: FirstFailure) -> None:
        """The run has failed."""
        ...


class Station:
    """A slot of a task.

    Attributes:
        error: With which the live incarnation broke.
        live: The incarnation that runs now, or None between two.
        waits: It waits for input.
        restart_at: When the next incarnation starts.
        held_until: Step up to which it is not scheduled.
        kind: Kind of the terminator with which it ended.
        flushed: It has committed its last words.
        fenced: It has an epoch, so that it may be replaced although it lives.
        before: Incarnations in the runs before.
    """

    def __init__(
        self, run: Surroundings, task: TaskPlan, slot: int, script: Script, *, rank: int, fenced: bool
    ) -> None:
        self.run = run
        self.task = task
        self.slot = slot
        self.name = f"{task.name}-{slot}"
        self.rank = rank
        self.fenced = fenced
        self.script = script
        self.before = 0
        self.clock = StationClock(Now(), script)
        self.live: Incarnation | None = None
        self.incarnations = 0
        self.deaths_in_a_row = 0
        self.restarts = 0
        self.restart_at = 0.0
        self.waits = False
        self.held_until = 0
        self.done = False
        self.flushed = False
        self.kind: Kind | None = None
        self.error: BaseException | None = None
        self.moved = 0
        self.figures_of: TaskFigures | None = None
        self.tell: list[Callable[[], None]] = []

    # What the shell tells ---------------------------------------------------------------------

    def opened(self) -> None:
        """Notes that every node is open."""
        if self.live is not None:
            self.live.opened = True

    def inner(self, fates: Sequence[InnerFate]) -> None:
        """Hands fates on."""
        self.run.inner(self.task.name, fates)

    def failed(self, failure: FirstFailure) -> None:
        """Hands the failure on."""
        self.run.failed(failure)

    def figures(self, figures: TaskFigures) -> None:
        """Keeps those of the last incarnation."""
        self.figures_of = figures

    # Moving -----------------------------------------------------------------------------------

    def able(self, now: float, step: int) -> bool:
        """Whether it can move now."""
        if self.live is None:
            return self.restart_at <= now
        if step < self.held_until:
            return False
        clock = self.clock
        if self.waits:
            return (clock.wake.woken and clock.woken()) or clock.until <= now
        return clock.local <= now

    @property
    def keeps_to_itself(self) -> bool:
        """Whether its next action is due now, and touches nothing that others see: they may wait for it."""
        live = self.live
        if live is None or type(live.action) not in _ALONE or self.waits:
            return False
        return self.held_until <= self.run.step and self.clock.local <= self.clock.now.seconds

    def next_time(self) -> float:
        """Returns when it can move, if nobody wakes it."""
        if self.live is None:
            return self.restart_at
        return self.clock.until if self.waits else self.clock.local

    def step(self) -> Ending:
        """Makes one action of the live incarnation, or starts the next one."""
        if self.waits:
            self.waits = False
            self.clock.resume()
        live = self.live
        if live is None:
            live = self.live = self.run.incarnation(self)
        for told in self.tell:
            told()
        self.tell.clear()
        clock = self.clock
        clock.waits = 0
        return self._ending_of(self._move, live)

    def _ending_of(self, move: Callable[[Incarnation], Ending], live: Incarnation) -> Ending:
        """Returns how a part of the worker's life went; what ended it is the supervisor's to judge."""
        try:
            return move(live)
        except WouldBlock:
            self.waits = True
            self.clock.put_aside()
            return Ending.WAITS
        except SimulatedDeath:
            return Ending.DIED
        except Quit:
            return self._quit(live)
        except Exception as error:  # noqa: BLE001  (a worker may end by any exception, as its process would)
            self.error = error
            return Ending.BROKE

    def _move(self, live: Incarnation) -> Ending:
        if live.steps is None:
            steps = live.shell.start().run()
            live.steps = steps
            live.action = next(steps)
            self.moved += 1
            return Ending.GOES_ON
        action = live.action
        assert action is not None
        self.clock.for_input = type(action) is actions.Pull
        answer = live.shell.perform(action)
        kind = type(action)
        if kind not in _STILL or _moves(action, answer):
            self.moved += 1
        if kind is actions.Flush:
            live.flushing = True
        elif live.flushing and kind is actions.Commit:
            self.flushed |= answer is CommitOutcome.COMMITTED
        try:
            live.action = live.steps.send(answer)
        except StopIteration as ended:
            self.kind = ended.value
            live.shell.close()
            return Ending.ENDED
        return Ending.GOES_ON

    def _quit(self, live: Incarnation) -> Ending:
        """Ends a worker that was told to end at once: its nodes are closed."""
        ending = self._ending_of(_closed, live)
        return Ending.QUIT if ending is Ending.BROKE else ending

    def goes_on_with(self, before: "Station") -> None:
        """Begins where a station of an earlier run has stopped, with the faults that are still to come."""
        self.before = before.before + before.incarnations
        self.flushed, self.script = before.flushed, before.script

    def break_down(self) -> None:
        """Ends the live incarnation as an exception ends a worker: its nodes are closed first."""
        assert self.live is not None
        self._ending_of(_closed, self.live)

    def reach(self, barrier: str) -> None:
        """Does what is planned at a barrier that the worker has come to."""
        action = self.script.reach(barrier)
        if action is None:
            return
        if action == "delay":
            self.held_until = self.run.step + _DELAY_STEPS
        elif barrier == "tombstone.before":
            self.script.due = action
        else:
            end_process(action, barrier)

    def told(self, desired: Desired, failed_task: str | None) -> None:
        """Tells the worker, before its next action, what is desired of the run."""
        live = self.live
        if live is not None:
            control = live.control
            self.tell.append(lambda: control.raise_desired(desired, failed_task))

    def told_to_quit(self) -> None:
        """Tells the worker, before its next action, to end without draining."""
        if self.live is not None:
            self.tell.append(self.live.control.end_now)


def _closed(live: Incarnation) -> Ending:
    live.shell.close()
    return Ending.BROKE


def _moves(action: Action, answer: Answer) -> bool:
    """Whether an action that may come to nothing came to something."""
    if isinstance(action, actions.Pull):
        return any(answer.deliveries)
    if isinstance(action, actions.Pause):
        return False
    return any(type(outcome).__name__ == "Accepted" for outcome in answer)
