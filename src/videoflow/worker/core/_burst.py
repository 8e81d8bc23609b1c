"""Plain inputs of a task, walked through its nodes one after another, in one action of the core.

Used by the cores, which make it, and by the shell, which lends it its functions to load and to call. It does
what `Walk` does for an input that comes for the first time, fails nowhere and stays one item on every port.
It refuses the rest: such an input is left unfinished, and `Walk` goes on with the answers that nodes gave.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from videoflow.backends.coverage import Cause, Fate, FateKind
from videoflow.backends.messaging import ChannelId, Delivery, Envelope, Kind, Writer
from videoflow.backends.outcomes import PublicationOutcome
from videoflow.ids import HashedId
from videoflow.worker.core._answers import Outputs, Returned
from videoflow.worker.core._failures import Failure
from videoflow.worker.core._program import NodeProgram, TaskProgram
from videoflow.worker.core._said import Element, InnerFate, Publication, Statement, not_out


class Lingers(Protocol):
    """Publishes what is held while user code takes its time."""

    def hold(self, held: Sequence[Statement]) -> None:
        """Begins to watch over these, oldest first: user code is called now. More may come behind them."""
        ...

    def release(self) -> Sequence[PublicationOutcome]:
        """Ends to watch: user code has returned. Returns what came of those that are out, the first ones."""
        ...

    def close(self) -> None:
        """Ends what it runs."""
        ...


Load = Callable[[Delivery], object]
Call = Callable[[str, Element, int], Returned | Failure]

_ENTRY = 0  # where the task's input lies; only the first node reads it, so unread items may lie there later


class BurstOutcome(msgspec.Struct):
    """What a burst came to.

    Attributes:
        inputs: How many inputs are through.
        publications: What is to be published, in order.
        inner: Fates on edges inside the task; those of neighbours are one.
        latest: The last of them by edge.
        whole: Those of `latest` that the last input lengthened, where it was skipped nowhere.
        seconds: Time in user code.
        answers: Set where the input behind those that are through is left unfinished: what the nodes that it
            was given to have answered, a source left out.
    """

    inputs: int = 0
    publications: list[Statement] = []
    inner: list[InnerFate] = []
    latest: dict[int, InnerFate] = {}
    whole: list[InnerFate] = []
    seconds: float = 0.0
    answers: list[Returned | Failure] | None = None


class _Port(msgspec.Struct, frozen=True):
    """A port: names of what it says, where its items lie for nodes of the task, and what carries it."""

    name: str
    identity: HashedId
    place: int
    channels: tuple[tuple[int, ChannelId], ...]


class _Step(msgspec.Struct, frozen=True):
    """A node: where its input lies, the number of its inner edge (-1 for the entry), and its ports."""

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
        most_seconds: A burst ends when so much time was spent in user code.
    """

    def __init__(
        self, program: TaskProgram, channels: Sequence[ChannelId], writer: Writer, most_seconds: float
    ) -> None:
        self._writer = writer
        self._most_seconds = most_seconds
        read = {parent for node in program.nodes for given in node.inner for parent in given.parents}
        places = {parent: number for number, parent in enumerate(sorted(read), _ENTRY + 1)}
        self._places = _ENTRY + 1 + len(places)
        self._steps = tuple(_step(program, node, places, channels) for node in program.nodes)

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
        for delivery in deliveries:
            value = load(delivery)
            if type(value) is Failure:
                made.answers = []
                break
            lingers.hold(made.publications)
            made.answers = self._through(_element(delivery.envelope, value), call, made)
            if said := lingers.release():
                made.publications = not_out(made.publications, said)
            if made.answers is not None:
                break
            made.inputs += 1
            if made.seconds >= self._most_seconds:
                break
        return made

    def produced(self, element: Element, outputs: Outputs, call: Call) -> BurstOutcome:
        """Walks what a source produced for one ordinal through the nodes behind it.

        Args:
            element: What stands for the item.
            outputs: What the source put on its ports.
            call: Calls a node once.
        """
        made = BurstOutcome()
        answers = self._through(element, call, made, Returned(outputs))
        made.answers = None if answers is None else answers[1:]
        return made

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
        fates: list[tuple[int, Cause | None]] = []
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
            if step.edge >= 0:
                fates.append((step.edge, given.cause))
            for port in step.ports:
                found = outputs
                if len(outputs) != 1 or outputs[0][0] != port.name:
                    found = [output for output in outputs if output[0] == port.name]
                if len(found) > 1:
                    return answers
                elements[port.place] = child = _child(port, given, found)
                for number, channel in port.channels:
                    envelope = self._envelope(channel, given, child)
                    value = found[0][1] if found else None
                    said.append((given.input_id, [Publication(number, envelope, value)]))
        made.publications += said
        made.seconds += seconds
        if fates:
            _add_fates(made, fates, element)
        return None

    def _envelope(self, channel: ChannelId, given: Element, child: Element) -> Envelope:
        cause = child.cause
        skipped = cause is not None and not given.path
        return Envelope(
            channel,
            child.input_id,
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
            child.key,
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


def _child(port: _Port, given: Element, found: Outputs) -> Element:
    """Returns what a port says of an input, as an input of who reads it."""
    key = None
    if found:
        key, cause = found[0][2], None
        identity = port.identity.of(given.input_id, "0")
    else:
        cause = given.cause or Cause.SKIPPED
        identity = port.identity.of(given.input_id, "skip")
    return Element(
        identity,
        given.origin,
        given.path,
        (found[0][1],) if found else (),
        cause,
        given.last,
        key=given.key if key is None else key,
        source=given.source,
        event_time=given.event_time,
        low=given.low,
        after=given.after,
    )


def _add_fates(made: BurstOutcome, fates: Sequence[tuple[int, Cause | None]], element: Element) -> None:
    """Adds what became of one input on each edge that it came to."""
    whole = made.whole if all(cause is None for _, cause in fates) else []
    if len(whole) == len(fates) and _goes_on(whole[0], element):
        for fate in whole:
            fate.last = element.last
        return
    for edge, cause in fates:
        _add_fate(made, edge, cause, element)
    made.whole = [made.latest[edge] for edge, cause in fates if cause is None]


def _goes_on(last: InnerFate, element: Element) -> bool:
    """Returns whether an input is the one behind those that a fate is of."""
    origin = element.origin
    follows = last.last + 1 == origin.ordinal and last.origin[:2] == origin[:2]
    return follows and not (last.path or element.path)


def _add_fate(made: BurstOutcome, edge: int, cause: Cause | None, element: Element) -> None:
    """Adds a fate to what a burst came to; it lengthens the last one of its edge where it goes on with it."""
    kind = FateKind.DELIVERED if cause is None else FateKind.SKIPPED
    last = made.latest.get(edge)
    if last is not None and last.fate == (kind, cause) and _goes_on(last, element):
        last.last = element.last
        return
    made.latest[edge] = fate = InnerFate(edge, element.origin, element.last, element.path, Fate(kind, cause))
    made.inner.append(fate)
