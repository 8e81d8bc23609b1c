"""The nodes of one task in this process: instances, contexts, state.

Used by the shell. It opens and closes nodes, and calls them through their invokers; state that an attempt
changed is kept only when the attempt succeeded (rule 5). It refuses to raise what user code raised: that is a
`Failure`, or ends the worker where a node cannot say what it keeps.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import GeneratorType
from typing import Any, TypeVar

from numpy.typing import DTypeLike, NDArray

from videoflow.backends.coverage import Origin
from videoflow.backends.runtime import Desired, SourcePosition
from videoflow.graph import Context, Emitted, Invoker, Item, Node
from videoflow.graph.spec import NodeKind
from videoflow.wire import freeze
from videoflow.worker._calls import frozen, guarded
from videoflow.worker._control import RunControl
from videoflow.worker._figures import NodeFigures, TaskFigures
from videoflow.worker._kept import Kept
from videoflow.worker.core import NodeProgram, TaskProgram, blamed
from videoflow.worker.core.actions import (
    Element,
    Failure,
    ItemReady,
    Returned,
    SourceEnded,
)

T = TypeVar("T")


@dataclass
class Running:
    """One node that runs here."""

    program: NodeProgram
    invoker: Invoker
    context: Context
    limits: dict[str, int]
    kept: Kept | None = None

    def __post_init__(self) -> None:
        """Looks at what every call needs."""
        self.name = self.program.spec.name
        self.judge = self.invoker.classify
        consumes = self.program.spec.kind is NodeKind.CONSUMER
        self.enter = self._consume if consumes else self._process

    def _process(self, element: Element) -> list[Emitted]:
        made = self.invoker.call(element.values, self.context)
        if len(made) == 1 and made[0][0] not in self.limits:  # most of what stays in the task
            port, value, key = made[0]
            return [(port, freeze(value), key)]
        return frozen(made, self.limits, self.name)

    def process_batch(self, elements: Sequence[Element]) -> list[list[Emitted]]:
        """Calls the node for several inputs; returns what it emitted for each."""
        made = self.invoker.call_batch([element.values for element in elements], self.context)
        return [frozen(outputs, self.limits, self.name) for outputs in made]

    def _consume(self, element: Element) -> list[Emitted]:
        self.invoker.consume(element.values, self.context)
        return []


class TaskNodes:
    """The nodes of a task replica, opened in order and closed in reverse.

    Args:
        program: The task.
        instances: Node → its instance.
        limits: Node → port → the largest item in bytes.
        slot: Number of the replica.
        control: What the worker is told.
        seconds: Reads the time with which calls are measured.
    """

    def __init__(
        self,
        program: TaskProgram,
        instances: Mapping[str, Node],
        limits: Mapping[str, dict[str, int]],
        slot: int,
        control: RunControl,
        seconds: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._control = control
        self._seconds = seconds
        self.last_error: BaseException | None = None
        self._running: dict[str, Running] = {}
        self._opened: list[Running] = []
        self._changes: dict[str, bytes | None] = {}
        self._held: deque[dict[str, bytes | None]] = deque()
        self._items: Iterator[Item] | None = None
        for node in program.nodes:
            name = node.spec.name
            context = Context(
                node=name,
                task=program.task.name,
                run_id=program.run_id,
                slot=slot,
                logger=logging.getLogger(f"videoflow.node.{name}"),
                ask_stopping=lambda: control.desired > Desired.RUN,
            )
            instance = instances[name]
            self._running[name] = Running(
                node,
                Invoker(
                    instance,
                    name,
                    node.spec.options.on_error,
                    batches=node.spec.options.batch is not None,
                ),
                context,
                limits.get(name, {}),
            )
        self.figures = TaskFigures({name: NodeFigures() for name in self._running})

    def grant(self, devices: tuple[object, ...]) -> None:
        """Tells every node which devices it has."""
        for running in self._running.values():
            running.context.devices = devices

    def lend(self, empty: Callable[[int, tuple[int, ...], DTypeLike], NDArray[Any]]) -> None:
        """Lets nodes whose outputs leave the task make arrays where they are sent from."""
        for running in self._running.values():
            if most := max(running.limits.values(), default=0):
                running.context.make_array = partial(empty, most)

    def restore(self, state: Mapping[str, bytes]) -> None:
        """Gives each stateful node what it committed last."""
        for name, running in self._running.items():
            traits = running.program.spec.traits
            if traits.stateful:
                running.kept = Kept(name, traits.max_state_bytes, state)
                running.context.keyed_state = running.kept.state

    def open(self) -> tuple[str, Failure, str] | None:
        """Opens every node, and restores it; returns the first that failed, in which method.

        What was opened is left to be closed.
        """
        for name, running in self._running.items():
            self._opened.append(running)
            answer = self._attempt(running, running.invoker.open, running.context)
            if isinstance(answer, Failure):
                return name, answer, "open"
            answer = self._restored(running)
            if isinstance(answer, Failure):
                return name, answer, "restore"
            if running.program.spec.kind is NodeKind.PRODUCER:
                self._take_estimate(name, running)
        return None

    def _restored(self, running: Running) -> Failure | None:
        kept = running.kept
        if kept is None or not running.program.spec.traits.snapshots or not kept.has_snapshot:
            return None
        return self._attempt(running, lambda: running.invoker.restore(kept.snapshot(), running.context))

    def _take_estimate(self, name: str, running: Running) -> None:
        """Notes how many items an open source expects to make, so that the time left can be told."""
        answer = guarded(running.judge, running.invoker.summary)
        expected = None if isinstance(answer, Failure) else answer.get("expected")
        if isinstance(expected, int):
            self.figures.nodes[name].expected = expected

    def close(self) -> dict[str, Failure]:
        """Closes what was opened, in reverse; returns the failures by node."""
        failures = {}
        if isinstance(self._items, GeneratorType):
            guarded(self._source().judge, self._items.close)
        for running in reversed(self._opened):
            answer = guarded(running.judge, running.invoker.close)
            if isinstance(answer, Failure):
                failures[running.program.spec.name] = answer
        self._opened.clear()
        return failures

    def summaries(self) -> dict[str, dict[str, Any]]:
        """Returns what each node says of itself, nodes with nothing to say left out."""
        said = {}
        for name, running in self._running.items():
            answer = guarded(running.judge, running.invoker.summary)
            if not isinstance(answer, Failure) and answer:
                said[name] = dict(answer)
        return said

    def interrupt(self) -> None:
        """Ends a blocked `produce`; from any thread."""
        for running in self._running.values():
            if running.program.spec.kind is NodeKind.PRODUCER:
                running.invoker.interrupt()

    def call(self, name: str, element: Element, attempt: int) -> Returned | Failure:
        """Calls a node once for one input."""
        running = self._running[name]
        _told(running.context, element, attempt)
        answer, seconds = self._timed(running, running.enter, element)
        if isinstance(answer, Failure):
            return answer
        with self.figures.lock:
            self.figures.nodes[name].called(seconds, len(answer))
        return Returned(answer, seconds)

    def call_batch(
        self, name: str, elements: Sequence[Element], waited: Sequence[float]
    ) -> list[Returned] | Failure:
        """Calls a node once for several inputs; a failure says nothing of any of them, unless there is one.

        Args:
            name: The node.
            elements: Its inputs.
            waited: The seconds that each has waited for others.
        """
        running = self._running[name]
        if len(elements) == 1:
            _told(running.context, elements[0], 1)
        else:
            _told(running.context, _NOBODY, 1)
        answer, seconds = self._timed(running, running.process_batch, elements)
        if isinstance(answer, Failure):
            return answer
        with self.figures.lock:
            self.figures.nodes[name].called_together(seconds, [len(made) for made in answer], waited)
        return [Returned(made, seconds / len(elements)) for made in answer]

    def control(self, name: str, element: Element, attempt: int) -> Returned | Failure:
        """Gives a node a marker once; it counts as no item of the node."""
        running = self._running[name]
        _told(running.context, element, attempt)
        on_control = running.invoker.on_control
        answer, seconds = self._timed(running, on_control, element.values[0], running.context)
        if isinstance(answer, Failure):
            return answer
        with self.figures.lock:
            self.figures.nodes[name].seconds += seconds
        return Returned((), seconds)

    def flush(self, name: str) -> Returned | Failure:
        """Calls a node's `flush`."""
        running = self._running[name]
        running.context.input_id = None
        answer, seconds = self._timed(
            running, lambda: frozen(running.invoker.flush(running.context), running.limits, name)
        )
        if isinstance(answer, Failure):
            return answer
        with self.figures.lock:
            self.figures.nodes[name].called(seconds, len(answer))
        return Returned(answer, seconds)

    def checkpoint(self, name: str, *, final: bool) -> int | Failure:
        """Calls a node's `checkpoint`."""
        running = self._running[name]
        running.context.draining, running.context.input_id = final, None
        answer = self._attempt(running, lambda: running.invoker.checkpoint(running.context))
        return answer if isinstance(answer, Failure) else answer or 0

    def next_item(self, position: SourcePosition) -> ItemReady | SourceEnded | Failure:
        """Asks the source for the item behind a position, starting it where nothing runs."""
        running = self._source()
        if self._control.desired > Desired.RUN:
            return SourceEnded(stopped=True)
        if self._items is None:
            resume = None if position.offset is None else position.offset + 1
            self._items = running.invoker.items(resume, running.context)
        answer: Item | Failure | None
        answer, seconds = self._timed(running, next, self._items, None)
        if isinstance(answer, Item):
            return self._item(running, answer, seconds)
        if isinstance(answer, Failure):
            self._items = None
            return answer
        return SourceEnded(stopped=self._control.desired > Desired.RUN)

    def _item(self, running: Running, item: Item, seconds: float) -> ItemReady | Failure:
        name = running.program.spec.name
        outputs = guarded(_fatal, frozen, running.invoker.outputs_of(item), running.limits, name)
        if isinstance(outputs, Failure):
            self._items = None
            return outputs
        figures = self.figures.nodes[name]
        with self.figures.lock:
            figures.called(seconds, len(outputs))
        source = getattr(item.value, "source", "")
        source = source if isinstance(source, str) else ""
        at = None if item.time_seconds is None else float(item.time_seconds)  # NumPy's numbers too
        return ItemReady(item.offset, outputs, at, source, seconds)

    def hold_changes(self) -> None:
        """Sets aside what attempts have changed since the last time, for a commit that comes later.

        Raises:
            WorkerFatal: A node cannot say what it keeps.
        """
        self._held.append(self._new_changes())

    def taken_changes(self, held: int = 0) -> dict[str, bytes | None]:
        """Returns what attempts have changed and is to be committed now, encoded, and forgets it.

        Args:
            held: So many of the oldest changes that were set aside, and what has changed since the last ones.

        Raises:
            WorkerFatal: A node cannot say what it keeps.
        """
        newest = self._new_changes()
        if not (held or self._held):
            return newest
        changes: dict[str, bytes | None] = {}
        for _ in range(held):
            changes.update(self._held.popleft())
        for older in self._held:  # what a checkpoint writes is newer than what inputs changed before it
            for key in newest.keys() & older.keys():
                del older[key]
        return changes | newest

    def _new_changes(self) -> dict[str, bytes | None]:
        for name, running in self._running.items():
            kept = running.kept
            if kept is not None and running.program.spec.traits.snapshots:
                self._changes.update(self._snapshot(name, running, kept))
        changes, self._changes = self._changes, {}
        return changes

    def _snapshot(self, name: str, running: Running, kept: Kept) -> dict[str, bytes | None]:
        answer = guarded(running.judge, lambda: kept.take_snapshot(running.invoker.snapshot(running.context)))
        if isinstance(answer, Failure):
            self.last_error = answer.exception
            raise blamed(name, f"node {name} failed in snapshot", answer)
        return answer

    def _source(self) -> Running:
        return next(iter(self._running.values()))

    def _timed(self, running: Running, call: Callable[..., T], *arguments: Any) -> tuple[T | Failure, float]:
        figures, read = self.figures, self._seconds
        figures.enter(running.name)
        began = read()
        if running.kept is None:
            answer = guarded(running.judge, call, *arguments)
        else:
            answer = self._attempt(running, call, *arguments)
        seconds = read() - began
        figures.leave()
        if type(answer) is Failure:
            self.last_error = answer.exception
            with figures.lock:
                figures.nodes[running.name].errors += 1
                figures.nodes[running.name].seconds += seconds
        return answer, seconds

    def _attempt(self, running: Running, call: Callable[..., T], *arguments: Any) -> T | Failure:
        state, kept = running.context.keyed_state, running.kept
        if state is not None:
            state.begin()
        answer = guarded(running.judge, call, *arguments)
        if kept is not None and type(answer) is not Failure:
            changes = guarded(running.judge, kept.keep)
            if isinstance(changes, Failure):
                answer = changes
            else:
                self._changes.update(changes)
        if type(answer) is Failure:
            self.last_error = answer.exception
            if state is not None:
                state.rollback()
        return answer


_NOBODY = Element("", Origin("", 0, 0))


def _fatal(_: Exception) -> str:
    """Judges what nobody can mend: another attempt would make the same."""
    return "fatal"


def _told(context: Context, element: Element, attempt: int) -> None:
    """Says in a context what one call is for."""
    context.time_seconds = element.event_time
    context.source = element.source
    context.ordinal = element.origin.ordinal if element.origin.node else None
    context.attempt = attempt
    context.missing = element.missing
    context.input_id = element.input_id or None
