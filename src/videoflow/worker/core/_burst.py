"""Plain inputs of a task, walked through its nodes one after another, in one action of the core.

Used by the cores, which make it, and by the shell, which lends it its functions to load and to call. It does
what `Walk` does for an input that comes for the first time, fails nowhere and stays one item on every port.
It refuses the rest: such an input is left unfinished, and `Walk` goes on with the answers that nodes gave.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from videoflow.backends.coverage import Cause, Origin
from videoflow.backends.messaging import ChannelId, Delivery, Envelope, Kind, Writer
from videoflow.backends.outcomes import PublicationOutcome
from videoflow.backends.runtime import SourcePosition
from videoflow.ids import HashedId
from videoflow.worker.core._answers import ItemReady, Outputs, Returned, SourceEnded
from videoflow.worker.core._burst_outcome import BurstOutcome
from videoflow.worker.core._failures import Failure
from videoflow.worker.core._program import NodeProgram, TaskProgram
from videoflow.worker.core._said import Element, InnerFate, Publication, Statement, not_out


class Lingers(Protocol):
    """Publishes what is held while user code takes its time.

    Attributes:
        inside: Whether user code is running; said by who calls it, since nothing is published otherwise.
        published: Some of it is out, or is about to be; looked at after user code, when `inside` was unset.
    """

    inside: bool
    published: bool

    def hold(self, held: Sequence[Statement], inner: Sequence[InnerFate] = ()) -> None:
        """Begins to watch over these, oldest first; `inner` is told before. More may come behind them."""
        ...

    def release(self) -> Sequence[PublicationOutcome]:
        """Ends to watch. Returns what came of those that are out, the first ones."""
        ...

    def close(self) -> None:
        """Ends what it runs."""
        ...


Load = Callable[[Delivery], object]
Ask = Callable[[SourcePosition], ItemReady | SourceEnded | Failure]
Call = Callable[[str, Element, int], Returned | Failure]

QUICK_SECONDS = 0.001  # an item that came as quickly may wait for the next one, and share its way
_ENTRY = 0  # where the task's input lies; only the first node reads it, so unread items may lie there later


class _Port(msgspec.Struct, frozen=True):
    """A port: names of what it says, where its items lie for nodes of the task, and what carries it."""

    name: str
    identity: HashedId
    place: int
    channels: tuple[tuple[int, ChannelId], ...]


class _Step(msgspec.Struct, frozen=True):
    """A node: where its input lies, the number of its inner edge (-1 for the first node), and its ports."""

    node: str
    place: int
    edge: int
    ports: tuple[_Port, ...]


class BurstWalk:
    """Walks plain inputs through the nodes of one task.

    Args:
        program: The task; one that `walks_in_bursts`.
        channels: What it writes, by channel number.
        writer: Who says it.
        most: A burst ends when so many seconds were spent in user code, and a source is asked for so many
            items.
    """

    def __init__(
        self, program: TaskProgram, channels: Sequence[ChannelId], writer: Writer, most: tuple[float, int]
    ) -> None:
        self._writer = writer
        self._most_seconds, self._most_items = most
        self._source = program.entry.spec.name
        self._identity = HashedId(program.run_id, self._source, "item")
        read = {parent for node in program.nodes for given in node.inner for parent in given.parents}
        places = {parent: number for number, parent in enumerate(sorted(read), _ENTRY + 1)}
        self._places = _ENTRY + 1 + len(places)
        self._steps = tuple(_step(program, node, places, channels) for node in program.nodes)
        self._inner = tuple(step for step in self._steps if step.edge >= 0)

    def run(
        self,
        deliveries: Sequence[Delivery],
        load: Load,
        call: Call,
        lingers: Lingers,
        held: Sequence[Statement] = (),
    ) -> BurstOutcome:
        """Walks deliveries until one is left unfinished, or the time is up.

        Args:
            deliveries: Data, delivered for the first time.
            load: Decodes one.
            call: Calls a node once.
            lingers: Publishes what there is already, while nodes take their time.
            held: What is to be published before; it is part of the outcome, as far as it is not out.
        """
        made = BurstOutcome(publications=list(held))
        watched = False
        for delivery in deliveries:
            value = load(delivery)
            if type(value) is Failure:
                made.answers = []
                break
            if not watched and made.publications:
                lingers.hold(made.publications)
                watched = True
            lingers.inside = True
            made.answers = self._through(_element(delivery.envelope, value), call, made)
            lingers.inside = False
            if lingers.published:
                watched = False
                made.publications = not_out(made.publications, lingers.release())
            if made.answers is not None:
                break
            made.inputs += 1
            if made.seconds >= self._most_seconds:
                break
        if watched:
            lingers.release()
        return made

    def produce(
        self,
        position: SourcePosition,
        ask: Ask,
        call: Call,
        lingers: Lingers,
        held: Sequence[Statement] = (),
        inner: Sequence[InnerFate] = (),
    ) -> BurstOutcome:
        """Asks a source for items and walks each, as long as they come quickly.

        Args:
            position: Of the last item that was taken.
            ask: Asks for the item behind a position.
            call: Calls a node once.
            lingers: Publishes what there is already, while the source and the nodes take their time.
            held: What is to be published before; it is part of the outcome, as far as it is not out.
            inner: What became of that inside the task; part of the outcome.
        """
        made = BurstOutcome(publications=list(held), inner=list(inner), position=position)
        watched = False
        while made.inputs < self._most_items and made.seconds < self._most_seconds and not made.slow:
            if not watched and made.publications:
                lingers.hold(made.publications, made.inner)
                watched = True
            lingers.inside = True
            made.item = item = ask(made.position)
            if isinstance(item, ItemReady):
                self._take(item, call, made)
            lingers.inside = False
            if lingers.published:
                watched = False
                made.publications = not_out(made.publications, lingers.release())
            if made.item is not None:
                break
        if watched:
            lingers.release()
        return made

    def _take(self, item: ItemReady, call: Call, made: BurstOutcome) -> None:
        """Walks an item of a source; leaves it, and what nodes answered, where it is walked otherwise."""
        at = made.position
        origin = Origin(self._source, at.epoch, at.ordinal + 1)
        element = Element(
            self._identity.of(origin.epoch, origin.ordinal),
            origin,
            last=origin.ordinal,
            source=item.source or self._source,
            event_time=item.time_seconds,
            low=item.time_seconds,
        )
        answers = self._through(element, call, made, Returned(item.outputs))
        if answers is not None:
            made.answers = answers[1:]
            return
        made.item = None
        made.position = SourcePosition(at.epoch, origin.ordinal, item.offset)
        made.inputs += 1
        made.seconds += item.seconds
        made.slow = item.seconds >= QUICK_SECONDS

    def _through(
        self, element: Element, call: Call, made: BurstOutcome, first: Returned | None = None
    ) -> list[Returned | Failure] | None:
        """Walks one input; returns None, or what nodes have answered where it has to be walked otherwise.

        Args:
            element: The input.
            call: Calls a node once.
            made: What came of it is added here.
            first: What the first node has answered already.
        """
        elements = [element] * self._places
        said: list[Statement] = []
        answers: list[Returned | Failure] = []
        skipped = False
        seconds = 0.0
        for step in self._steps:
            given = elements[step.place]
            outputs: Outputs = ()
            if given.cause is None:
                answer = first or call(step.node, given, 1)
                first = None
                answers.append(answer)
                if type(answer) is not Returned:
                    return answers
                outputs = answer.outputs
                seconds += answer.seconds
            else:
                skipped = True
            for port in step.ports:
                found = outputs
                if len(outputs) != 1 or outputs[0][0] != port.name:
                    found = [output for output in outputs if output[0] == port.name]
                    if len(found) > 1:
                        return answers
                if found:
                    (_, value, key), cause, part = found[0], None, "0"
                else:
                    value, key, cause, part = None, None, given.cause or Cause.SKIPPED, "skip"
                identity = port.identity.of(given.input_id, part)
                key = given.key if key is None else key
                if port.place:
                    elements[port.place] = Element(
                        identity,
                        given.origin,
                        given.path,
                        () if cause else (value,),
                        cause,
                        given.last,
                        {},
                        key,
                        given.source,
                        given.event_time,
                        given.low,
                        given.after,
                    )
                for number, channel in port.channels:
                    envelope = self._envelope(channel, identity, given, cause, key)
                    said.append((given.input_id, [Publication(number, envelope, value)]))
        made.publications += said
        made.seconds += seconds
        if skipped:
            made.add_fates([(step.edge, elements[step.place].cause) for step in self._inner], element)
        elif self._inner:
            made.add_deliveries([step.edge for step in self._inner], element)
        return None

    def _envelope(
        self, channel: ChannelId, identity: str, given: Element, cause: Cause | None, key: str
    ) -> Envelope:
        skipped = cause is not None and not given.path
        return Envelope(
            channel,
            identity,
            Kind.DATA if cause is None else Kind.SKIP,
            self._writer,
            given.input_id,
            given.origin,
            given.path,
            0,
            given.after,
            ((given.origin.ordinal, given.last),) if skipped else (),
            cause,
            (),
            given.event_time,
            given.low,
            key,
            given.source,
        )


def walks_in_bursts(program: TaskProgram) -> bool:
    """Returns whether every input of a task stays one item on its way, and its channels are not split."""
    plain = all(
        not any(many for many, _ in node.ports.values())
        and all(len(given.parents) == 1 and not given.deeper for given in node.inner)
        and len(node.inner) <= 1
        for node in program.nodes
    )
    whole = all(channel.partitions == 1 for channel in program.channels) and not any(program.live_keys)
    return plain and whole and program.checkpointing is None


def _step(
    program: TaskProgram,
    node: NodeProgram,
    places: dict[tuple[str, str], int],
    channels: Sequence[ChannelId],
) -> _Step:
    name = node.spec.name
    ports = tuple(
        _Port(
            port,
            HashedId(program.run_id, name, port),
            places.get((name, port), _ENTRY),
            tuple((number, channels[number]) for number in numbers),
        )
        for port, (_, numbers) in node.ports.items()
    )
    if not node.inner:
        return _Step(name, _ENTRY, -1, ports)
    given = node.inner[0]
    return _Step(name, places[given.parents[0]], given.edges[0], ports)


def _element(envelope: Envelope, value: object) -> Element:
    origin = envelope.origin
    return Element(
        envelope.publication_id,
        origin,
        envelope.path,
        (value,),
        None,
        origin.ordinal,
        key=envelope.key,
        source=envelope.source or origin.node,
        event_time=envelope.event_time,
        low=envelope.low,
        after=envelope.after,
    )
