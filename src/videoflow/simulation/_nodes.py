"""The nodes of a simulated worker: the product's own, watched, with stand-ins for what cannot be simulated.

Used by the simulator, one object per incarnation. User code runs as it is; a stand-in answers as the node did
when the flow was recorded.
"""

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from videoflow.backends.outcomes import PublicationOutcome
from videoflow.backends.runtime import FlowRuntime, SourcePosition
from videoflow.clock import WouldBlock
from videoflow.errors import UnobservableState
from videoflow.graph import Node
from videoflow.planner.plan import TaskPlan
from videoflow.simulation._clock import StationClock
from videoflow.simulation._record import Made, Mark, Record, mark, mark_answer
from videoflow.simulation._script import SimulatedDeath
from videoflow.worker import Publishes, RunControl, TaskNodes
from videoflow.worker.core import TaskProgram
from videoflow.worker.core.actions import (
    Element,
    Failure,
    InnerFate,
    ItemReady,
    Returned,
    SourceEnded,
    Statement,
)

T = TypeVar("T")
Opened = Any
"""A node that runs, as the worker keeps it."""
_MOST_KEYS = 6
_CALL_SECONDS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0012, 0.003, 0.03)


class SlowCode:
    """Stands for the thread that publishes what is held, as if user code took its time now and then.

    It publishes before that is called, and not where it would have to wait.

    Args:
        publish: Publishes.

    Attributes:
        published: Whether it has, since it was told what is held.
    """

    def __init__(self, publish: Publishes) -> None:
        self._publish = publish
        self._held: Sequence[Statement] = ()
        self._inner: Sequence[InnerFate] = ()
        self._said: Sequence[PublicationOutcome] = ()
        self.published = False

    @property
    def inside(self) -> bool:
        """Whether user code runs; where it begins to, what is held is published every third time."""
        return False

    @inside.setter
    def inside(self, inside: bool) -> None:
        if inside and len(self._held) % 3 == 2:
            with contextlib.suppress(WouldBlock):
                self._said = self._publish(self._held, self._inner)
                self.published = True

    def hold(self, held: Sequence[Statement], inner: Sequence[InnerFate] = ()) -> None:
        """Takes down what is held."""
        self._held, self._inner, self._said, self.published = held, inner, (), False

    def release(self) -> Sequence[PublicationOutcome]:
        """Returns what came of it."""
        said = self._said
        self.hold(())
        return said

    def close(self) -> None:
        """Has nothing to end."""


@dataclass
class Recording:
    """What nodes answered in a run without faults.

    Attributes:
        answers: (node, origin node, ordinal, path) → answer.
        flushes: Node → answer.
        items: Source → what it made, in order.
    """

    answers: dict[tuple[object, ...], Returned | Failure] = field(default_factory=dict)
    flushes: dict[str, Returned | Failure] = field(default_factory=dict)
    items: dict[str, list[ItemReady]] = field(default_factory=dict)


@dataclass(slots=True)
class Watching:
    """Who watches the nodes of one incarnation, and what they are told.

    Attributes:
        station: Name of the station.
        incarnation: Number of the incarnation.
        record: Where calls are noted.
        clock: The worker's.
        chance: Decides how long calls take.
        calm: Calls take no time.
        limits: Source → the most items that it makes.
        flushed: Says whether the task has committed its last words.
        stand_ins: Nodes that answer from `recording`.
        recording: What stand-ins answer; what is not there yet is filled in where `filling` is set.
        filling: Nodes whose answers are kept.
        answered: Says whether an answer for an input of the task was recorded, where that is done once.
    """

    station: str
    incarnation: int
    record: Record
    clock: StationClock
    chance: random.Random
    calm: bool
    limits: Mapping[str, int]
    flushed: Callable[[], bool]
    stand_ins: frozenset[str] = frozenset()
    recording: Recording = field(default_factory=Recording)
    filling: frozenset[str] = frozenset()
    answered: Callable[[str], bool] | None = None


def _key(name: str, element: Element) -> tuple[object, ...]:
    """Returns what an answer is found by: not by ids, which change with the epoch of a live source."""
    return name, element.origin.node, element.origin.ordinal, element.path


def answered_of(runtime: FlowRuntime, task: TaskPlan) -> Callable[[str], bool] | None:
    """Returns what says whether an answer for an input was recorded; None where the task records none."""
    if not task.answers_once:
        return None
    return lambda input_id: runtime.once(task.name, input_id, deadline=1.0) is not None


def alive(answer: T) -> T:
    """Returns the answer of a node, unless the process died in its code: nothing outlives that."""
    if isinstance(answer, Failure) and isinstance(answer.exception, SimulatedDeath):
        raise answer.exception
    return answer


class SimulatedNodes(TaskNodes):
    """The nodes of one incarnation."""

    def __init__(
        self,
        program: TaskProgram,
        instances: Mapping[str, Node],
        limits: Mapping[str, dict[str, int]],
        slot: int,
        control: RunControl,
        watching: Watching,
    ) -> None:
        self._watching = watching
        super().__init__(program, instances, limits, slot, control, self._read_time)
        self._entry = program.entry.spec.name
        self._next = 0
        self._left: dict[str, Mark] = {}

    def _read_time(self) -> float:
        watching = self._watching
        if not watching.calm:
            watching.clock.spend(_CALL_SECONDS[int(watching.chance.random() * len(_CALL_SECONDS))])
        return watching.clock.monotonic()

    def call(self, name: str, element: Element, attempt: int) -> Returned | Failure:
        """Calls a node, or its stand-in, and notes it."""
        watching = self._watching
        if watching.answered is not None and name == self._entry and watching.answered(element.input_id):
            watching.record.wrongs.append(f"once: {name} was called for what it had answered on record")
        if name in watching.stand_ins:
            answer = self._recorded(name, element)
            self._read_time()
            self.figures.nodes[name].items += isinstance(answer, Returned)
        else:
            answer = alive(super().call(name, element, attempt))
        if name in watching.filling:
            watching.recording.answers[_key(name, element)] = answer
        watching.record.calls.setdefault(name, []).append(self._made(element, answer))
        return answer

    def call_batch(
        self, name: str, elements: Sequence[Element], waited: Sequence[float]
    ) -> list[Returned] | Failure:
        """Calls a node for several inputs, or its stand-in for each, and notes what it answered."""
        watching = self._watching
        if name in watching.stand_ins:
            said = [self.call(name, element, 1) for element in elements]
            failed = next((answer for answer in said if isinstance(answer, Failure)), None)
            return failed or [answer for answer in said if isinstance(answer, Returned)]
        if watching.answered is not None and any(watching.answered(e.input_id) for e in elements):
            watching.record.wrongs.append(f"once: {name} was called for what it had answered on record")
        made = alive(super().call_batch(name, elements, waited))
        answers: Sequence[Returned | Failure] = made if isinstance(made, list) else [made]
        if len(answers) < len(elements):  # a failure of several says nothing of any: each is called again
            return made
        for element, answer in zip(elements, answers, strict=True):
            if name in watching.filling:
                watching.recording.answers[_key(name, element)] = answer
            watching.record.calls.setdefault(name, []).append(self._made(element, answer))
        return made

    def _attempt(self, running: Opened, call: Callable[..., T], *arguments: Any) -> T | Failure:
        """Sees that an attempt finds the state that the last one left that succeeded, and nothing else."""
        state = running.context.keyed_state
        if state is None or len(state) > _MOST_KEYS:
            return super()._attempt(running, call, *arguments)
        name, before = running.program.spec.name, mark(dict(state))
        if self._left.setdefault(name, before) != before:
            wrong = f"state: an attempt of {name} found another state than the one before it left"
            self._watching.record.wrongs.append(wrong)
        answer = super()._attempt(running, call, *arguments)
        self._left[name] = before if isinstance(answer, Failure) else mark(dict(state))
        return answer

    def _recorded(self, name: str, element: Element) -> Returned | Failure:
        found = self._watching.recording.answers.get(_key(name, element))
        if found is None:
            raise UnobservableState(
                f"node {name} was never given item {element.origin.ordinal} of {element.origin.node}",
                cause="a stand-in knows only what came in the run that was recorded",
            )
        return found

    def _made(self, element: Element, answer: Returned | Failure) -> Made:
        watching = self._watching
        return Made(
            watching.station,
            watching.incarnation,
            element.input_id,
            element.origin,
            element.path,
            mark(element.values),
            tuple(element.missing),
            mark_answer(answer),
            isinstance(answer, Failure),
        )

    def flush(self, name: str) -> Returned | Failure:
        """Lets a node, or its stand-in, say its last words, and notes it."""
        watching = self._watching
        committed = watching.flushed()
        if name in watching.stand_ins:
            answer = watching.recording.flushes[name]
        else:
            answer = alive(super().flush(name))
        if name in watching.filling:
            watching.recording.flushes[name] = answer
        noted = watching.station, committed, mark_answer(answer)
        watching.record.flushes.setdefault(name, []).append(noted)
        return answer

    def control(self, name: str, element: Element, attempt: int) -> Returned | Failure:
        """Gives a node a marker, and notes it."""
        answer = alive(super().control(name, element, attempt))
        noted = self._watching.record.markers.setdefault(name, [])
        noted.append((element.input_id, mark(element.values)))
        return answer

    def checkpoint(self, name: str, *, final: bool) -> int | Failure:
        """Lets a node make its inputs durable."""
        return alive(super().checkpoint(name, final=final))

    def open(self) -> tuple[str, Failure, str] | None:
        """Opens every node."""
        failed = super().open()
        if failed is not None:
            alive(failed[1])
        return failed

    def next_item(self, position: SourcePosition) -> ItemReady | SourceEnded | Failure:
        """Asks the source, or its stand-in; it ends early where the schedule says so."""
        watching, name = self._watching, self._entry
        limit = watching.limits.get(name)
        if limit is not None and position.ordinal + 1 >= limit:
            return SourceEnded()
        if name in watching.stand_ins:
            return self._replayed(name, None if position.offset is None else position.offset + 1)
        answer = alive(super().next_item(position))
        if isinstance(answer, ItemReady) and name in watching.filling:
            watching.recording.items.setdefault(name, []).append(answer)
        return answer

    def _replayed(self, name: str, resume: int | None) -> ItemReady | SourceEnded:
        if self._control.desired > 0:
            return SourceEnded(stopped=True)
        items = self._watching.recording.items.get(name, [])
        while self._next < len(items) and resume is not None and items[self._next].offset < resume:
            self._next += 1
        if self._next == len(items):
            return SourceEnded()
        self._next += 1
        self._read_time()
        return items[self._next - 1]
