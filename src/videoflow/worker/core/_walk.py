"""One input of a task, walked through its nodes: calls, retries, dead letters, statements.

Used by the cores. It refuses to let an input pass in silence. The node is the unit of failure (rule 7): a
failing node is retried in place and, in the end, makes a skip, while what came before it stands. For each
input and each port exactly one statement comes out: data, or a skip with its cause (rules 1 and 2).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from videoflow.backends.coverage import Cause, Fate, FateKind, Hop, Origin
from videoflow.backends.messaging import ChannelId, Envelope, Kind, Writer
from videoflow.graph.spec import NodeSpec
from videoflow.ids import hash_id
from videoflow.worker.core._blame import first_failure
from videoflow.worker.core._elements import absence_of, join, many_of, none_of
from videoflow.worker.core._partitions import everywhere, key_problem, spread
from videoflow.worker.core._program import InnerInput, NodeProgram, TaskProgram
from videoflow.worker.core.actions import (
    Attempts,
    Call,
    Control,
    Disposition,
    Element,
    FailRun,
    Failure,
    InnerFate,
    Pause,
    Publication,
    PutAside,
    RecordStarted,
    Returned,
    Steps,
)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


class RunAborted(Exception):
    """A node failed for good in a way that ends the run."""


class Outcome(msgspec.Struct):
    """What one input of a task came to.

    Attributes:
        publications: (input id of the statement, envelopes) in order.
        inner: Fates on edges inside the task.
        record_ref: Set when the entry node put the input aside.
        seconds: Time in user code.
        consumed: Inputs that the checkpointing sink took.
    """

    publications: list[tuple[str, list[Publication]]] = []
    inner: list[InnerFate] = []
    record_ref: str | None = None
    seconds: float = 0.0
    consumed: int = 0


class Walk:
    """Walks elements through the nodes of one task.

    Attributes:
        writer: Who says what it makes.
    """

    def __init__(self, program: TaskProgram, channels: Sequence[ChannelId], slot: int, epoch: int) -> None:
        self._program = program
        self._channels = channels
        self.writer = Writer(program.task.name, slot, epoch)
        self._part = slot if program.task.partitions > 1 else 0
        self._missing_is_none = {n.spec.name: n.spec.options.missing == "none" for n in program.nodes}

    def input(self, element: Element, *, suspect: bool) -> Steps:
        """Walks one input of the task; returns its `Outcome`."""
        outcome = Outcome()
        yield from self._nodes(
            self._program.nodes, {}, {self._program.entry.spec.name: [element]}, outcome, suspect
        )
        return outcome

    def marker(self, node: NodeProgram, element: Element, *, suspect: bool) -> Steps:
        """Gives one marker to a node; returns the reference of its dead letter, or None."""
        _, _, reference = yield from self._one(node, element, Outcome(), suspect)
        return reference

    def produced(self, element: Element, outputs: Sequence[tuple[str, Any, str | None]]) -> Steps:
        """Walks what the source produced for one ordinal through the rest of the task."""
        outcome = Outcome()
        entry = self._program.entry
        problem = self._unplaceable(entry, outputs)
        if problem is not None:
            yield FailRun(first_failure(entry.spec.name, element, problem, 1, 1))
            raise RunAborted(entry.spec.name)
        made = self._emit(entry, element, outputs, outcome)
        yield from self._nodes(self._program.nodes[1:], made, {}, outcome, False)
        return outcome

    def flushed(
        self,
        node: NodeProgram,
        outputs: Sequence[tuple[str, Any, str | None]],
        origin: Origin,
        after: tuple[tuple[str, int, int], ...],
        *,
        suspect: bool,
    ) -> Steps:
        """Walks what a node's `flush` emitted: one ordinal per output, a statement on every port."""
        outcome = Outcome()
        position = self._program.nodes.index(node)
        for index, output in enumerate(outputs):
            at = Origin(origin.node, origin.epoch, origin.ordinal + index)
            input_id = hash_id(self._program.run_id, node.spec.name, output[0], "flush", self._part, index)
            element = Element(input_id, at, last=at.ordinal, source=at.node, after=after)
            made = self._emit(node, element, (output,), outcome)
            yield from self._nodes(self._program.nodes[position + 1 :], made, {}, outcome, suspect)
        return outcome

    def control(self, envelope: Envelope) -> tuple[str, list[Publication]]:
        """Returns a control statement again, on everything that the task writes."""
        origin = envelope.origin
        identity = hash_id(self._program.run_id, self._program.task.name, envelope.kind, *origin)
        passed = [
            Envelope(
                channel=channel,
                publication_id=identity,
                kind=envelope.kind,
                writer=self.writer,
                input_id=identity,
                origin=origin,
                source=envelope.source,
            )
            for channel in self._channels
        ]
        refs = self._program.channels
        return identity, [
            placed
            for number, made in enumerate(passed)
            for placed in everywhere(refs[number], Publication(number, made))
        ]

    def _nodes(
        self,
        nodes: Sequence[NodeProgram],
        made: dict[tuple[str, str], list[Element]],
        given: dict[str, list[Element]],
        outcome: Outcome,
        suspect: bool,
    ) -> Steps:
        for node in nodes:
            elements = given.get(node.spec.name)
            if elements is None:
                elements = self._gather(node, made)
            for element in elements:
                outputs, cause, record_ref = yield from self._one(node, element, outcome, suspect)
                self._note_fates(node, element, cause, record_ref, outcome)
                if node is self._program.entry:
                    outcome.record_ref = record_ref
                element.cause = cause
                made.update(
                    (port, made.get(port, []) + new)
                    for port, new in self._emit(node, element, outputs, outcome).items()
                )

    def _gather(self, node: NodeProgram, made: dict[tuple[str, str], list[Element]]) -> list[Element]:
        inputs = [[e for parent in given.parents for e in made.get(parent, ())] for given in node.inner]
        if len(inputs) == 1:
            return inputs[0]
        depth = len(node.spec.scope)
        by_trace: dict[tuple[Origin, tuple[Hop, ...]], list[list[Element]]] = {}
        for index, elements in enumerate(inputs):
            for element in elements:
                trace = element.origin, element.path[:depth]
                by_trace.setdefault(trace, [[] for _ in inputs])[index].append(element)
        return [self._meet(node, members) for members in by_trace.values()]

    def _meet(self, node: NodeProgram, found: Sequence[list[Element]]) -> Element:
        some = next(elements[0] for elements in found if elements)
        members = [
            self._member(node, given, elements)
            if elements
            else absence_of(some.origin, some.path[: len(node.spec.scope)])
            for given, elements in zip(node.inner, found, strict=True)
        ]
        return join(
            self._program.run_id,
            node.spec.name,
            node.input_names,
            members,
            missing_is_none=self._missing_is_none[node.spec.name],
        )

    def _member(self, node: NodeProgram, given: InnerInput, elements: list[Element]) -> Element:
        """Returns what one input says of a trace: an item, or the list of a deeper fan-out."""
        depth = len(node.spec.scope)
        if not given.deeper:
            return elements[0]
        if len(elements[0].path) <= depth:
            return none_of(msgspec.structs.replace(elements[0]))
        return many_of(elements, depth, missing_is_none=self._missing_is_none[node.spec.name])

    def _one(self, node: NodeProgram, element: Element, outcome: Outcome, suspect: bool) -> Steps:
        """Calls one node for one element; returns (outputs, cause of a skip or None, dead letter or None)."""
        if element.cause is not None:
            return (), element.cause, None
        name, limit = node.spec.name, node.spec.options.retries + 1
        attempts = 0
        failure: Failure | None = None
        if suspect:
            attempts, died = yield from recorded(node.spec, element)
            if died is not None:
                ref = yield PutAside(name, element, died, attempts)
                return (), Cause.DEAD_LETTER, ref
        while True:
            attempts += 1
            answer = yield (Control if element.marker else Call)(name, element, attempts)
            if isinstance(answer, Returned):
                answer = self._unplaceable(node, answer.outputs) or answer
            if isinstance(answer, Returned):
                outcome.seconds += answer.seconds
                outcome.consumed += int(node.spec.traits.checkpoints)
                return answer.outputs, None, None
            failure = answer
            if failure.disposition is Disposition.FATAL:
                yield FailRun(first_failure(name, element, failure, attempts, limit))
                raise RunAborted(name)
            if failure.disposition is Disposition.POISON or attempts >= limit:
                ref = yield PutAside(name, element, failure, attempts)
                return (), Cause.DEAD_LETTER, ref
            yield pause_after(attempts)

    def _unplaceable(
        self, node: NodeProgram, outputs: Sequence[tuple[str, Any, str | None]]
    ) -> Failure | None:
        """Returns the failure of a node whose output no partition can be found for."""
        for port, value, _ in outputs:
            for number in node.ports[port][1]:
                problem = key_problem(self._program.channels[number], value)
                if problem:
                    remedy = "give the item that attribute, or partition by key= or source"
                    return Failure(Disposition.POISON, problem, remedy=remedy)
        return None

    def _note_fates(
        self,
        node: NodeProgram,
        element: Element,
        cause: Cause | None,
        record_ref: str | None,
        outcome: Outcome,
    ) -> None:
        if record_ref is not None:
            fate = Fate(FateKind.DEAD_LETTERED)
        elif cause is not None:
            fate = Fate(FateKind.SKIPPED, cause)
        else:
            fate = Fate(FateKind.DELIVERED)
        for given in node.inner:
            own = (
                Fate(FateKind.SKIPPED, element.missing[given.name]) if given.name in element.missing else fate
            )
            for path, skipped in element.parts.get(given.name, ((element.path, None),)):
                said = own if skipped is None else Fate(FateKind.SKIPPED, skipped)
                edge = _edge_of(given, element, node)
                outcome.inner.append(InnerFate(edge, element.origin, element.last, path, said))

    def _emit(
        self,
        node: NodeProgram,
        element: Element,
        outputs: Sequence[tuple[str, Any, str | None]],
        outcome: Outcome,
    ) -> dict[tuple[str, str], list[Element]]:
        """Makes one statement per port; returns the elements for readers inside the task."""
        made: dict[tuple[str, str], list[Element]] = {}
        for port, (many, channels) in node.ports.items():
            emitted = [(value, key) for name, value, key in outputs if name == port]
            elements = self._elements(node.spec.name, port, many, element, emitted)
            made[node.spec.name, port] = elements
            for channel in channels:
                made_here = [(e, self._publication(channel, element, e)) for e in elements]
                ref = self._program.channels[channel]
                if ref.partitions > 1:
                    publications = list(spread(ref, element, made_here))
                else:
                    publications = [publication for _, publication in made_here]
                outcome.publications.append((element.input_id, publications))
        return made

    def _elements(
        self, node: str, port: str, many: bool, element: Element, emitted: Sequence[tuple[Any, str | None]]
    ) -> list[Element]:
        run_id, count = self._program.run_id, len(emitted)
        if not emitted:
            skip_id = hash_id(run_id, node, port, element.input_id, "skip")
            skip = _derived(element, skip_id, (), element.cause or Cause.SKIPPED)
            skip.via = ((node, port),)
            return [skip]
        made = []
        for k, (value, key) in enumerate(emitted):
            child = _derived(element, hash_id(run_id, node, port, element.input_id, k), (value,), None)
            child.via = ((node, port),)
            if many:
                child.path = (*element.path, Hop(node, port, k, count))
            if key is not None:
                child.key = key
            made.append(child)
        return made

    def _publication(self, channel: int, statement: Element, element: Element) -> Publication:
        skip = element.cause is not None
        intervals = ((element.origin.ordinal, element.last),) if skip and not element.path else ()
        envelope = Envelope(
            channel=self._channels[channel],
            publication_id=element.input_id,
            kind=Kind.SKIP if skip else Kind.DATA,
            writer=self.writer,
            input_id=statement.input_id,
            origin=element.origin,
            path=element.path,
            after=element.after,
            intervals=intervals,
            cause=element.cause,
            event_time=element.event_time,
            low=element.low,
            key=element.key,
            source=element.source,
            headers=() if skip else self._live_headers(channel, element.values[0]),
        )
        return Publication(channel, envelope, None if skip else element.values[0])

    def _live_headers(self, channel: int, value: object) -> tuple[tuple[str, str], ...]:
        keys = self._program.live_keys
        return tuple((key, str(getattr(value, key, ""))) for key in keys[channel]) if keys else ()


def recorded(node: NodeSpec, element: Element) -> Steps:
    """Records that this incarnation starts a node's code for an input that may have ended one before.

    Returns (attempts so far, None), or, where there were as many as there may be and it is not started, what
    became of them.
    """
    attempts = yield Attempts(node.name, element.input_id)
    if attempts > node.options.retries:
        died = f"the process died {attempts} times while it ran {node.name}"
        return attempts, Failure(Disposition.POISON, died)
    yield RecordStarted(node.name, element.input_id)
    return attempts, None


def resumed(steps: Steps, answers: Sequence[object]) -> Steps:
    """Goes on with a part of a core whose first actions have been performed, with these answers."""
    answer: object = None
    for known in answers:
        steps.send(answer)
        answer = known
    while True:
        try:
            action = steps.send(answer)
        except StopIteration as ended:
            return ended.value
        answer = yield action


def pause_after(failures: int) -> Pause:
    """Returns the wait before the next attempt, which doubles with each failure in a row."""
    return Pause(min(_FIRST_PAUSE_SECONDS * 2 ** (failures - 1), _LONGEST_PAUSE_SECONDS))


def _derived(element: Element, input_id: str, values: tuple[Any, ...], cause: Cause | None) -> Element:
    return Element(
        input_id,
        element.origin,
        element.path,
        values,
        cause,
        element.last,
        key=element.key,
        source=element.source,
        event_time=element.event_time,
        low=element.low,
        after=element.after,
    )


def _edge_of(given: InnerInput, element: Element, node: NodeProgram) -> int:
    if len(given.edges) == 1:
        return given.edges[0]
    via = element.via[node.inner.index(given)]
    return given.edges[given.parents.index(via)]
