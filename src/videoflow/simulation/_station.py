"""One replica of a task in a simulated run, over all its incarnations: one action at a time.

Used by the simulator. It runs the product's shell and core; a death is an exception that nothing of the
product catches, after which everything that the incarnation had is thrown away.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from videoflow.backends.messaging import Kind
from videoflow.backends.outcomes import Accepted
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
_ALONE = frozenset(
    (
        actions.Load,
        actions.Burst,
        actions.Produce,
        actions.Release,
        actions.Call,
        actions.CallBatch,
        actions.Control,
        actions.Flush,
        actions.Checkpoint,
    )
)


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
        telling: The run is told.
    """

    step: int
    telling: bool

    def incarnation(self, station: "Station") -> Incarnation:
        """Makes the next incarnation of a station."""
        ...

    def inner(self, task: str, fates: Sequence[InnerFate]) -> None:
        """Fates on edges inside the task."""
        ...

    def failed(self, failure: FirstFailure) -> None:
        """The run has failed."""
        ...

    def did(self, station: "Station", ending: Ending) -> None:
        """A station has made the action that it had in work; called where the run is told."""
        ...


class Station:
    """A slot of a task.

    Attributes:
        error: With which the live incarnation broke.
        live: The incarnation that runs now, or None between two.
        in_work: The action that it makes, or made last; None: it started.
        waits: It waits for input.
        restart_at: When the next incarnation starts.
        due_at: When it can move, unless somebody wakes it.
        wake: Notes that somebody woke it, where it waits for input.
        held_until: Step up to which it is not scheduled.
        favour: Among those that can move, the one with the greatest is preferred.
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
        self.favour = 0.0
        self.fenced = fenced
        self.script = script
        self.before = 0
        self.clock = StationClock(Now(), script)
        self.wake = self.clock.wake
        self.live: Incarnation | None = None
        self.in_work: Action | None = None
        self.incarnations = 0
        self.deaths_in_a_row = 0
        self.restarts = 0
        self.restart_at = self.due_at = 0.0
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

    def plan_next(self) -> None:
        """Says when it can move next, unless somebody wakes it."""
        if self.live is None:
            self.due_at = self.restart_at
        else:
            self.due_at = self.clock.until if self.waits else self.clock.local

    def step(self) -> Ending:
        """Makes one action of the live incarnation, and those behind it that others may wait for.

        Such an action is due now, and touches nothing that others see. Between two incarnations, the next one
        starts.
        """
        if self.waits:
            self.waits = False
            self.clock.resume()
        live = self.live
        if live is None:
            live = self.live = self.run.incarnation(self)
        return self._ending_of(self._act, live)

    def _act(self, live: Incarnation) -> Ending:
        clock, run = self.clock, self.run
        ending = self._move(live)
        while (
            type(live.action) in _ALONE
            and ending is Ending.GOES_ON
            and self.held_until <= run.step
            and clock.local <= clock.now.seconds
        ):
            if run.telling:
                run.did(self, ending)
            ending = self._move(live)
        return ending

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
        if self.tell:
            for told in self.tell:
                told()
            self.tell.clear()
        clock, action = self.clock, live.action
        self.in_work = action
        clock.waits = 0
        if live.steps is None or action is None:
            steps = live.steps = live.shell.start().run()
            live.action = next(steps)
            self.moved += 1
            return Ending.GOES_ON
        kind = type(action)
        clock.for_input = kind is actions.Pull
        answer = live.shell.perform(action)
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
    return any(isinstance(outcome, Accepted) for outcome in answer)
