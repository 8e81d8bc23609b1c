"""What a core makes of inputs: elements for nodes, publications for channels, and fates inside the task.

Used by the parts of a core, and by whoever performs its actions. It refuses nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from videoflow.backends.coverage import Cause, Fate, Hop, Origin
from videoflow.backends.messaging import Envelope
from videoflow.backends.outcomes import Accepted, PublicationOutcome


class Element(msgspec.Struct):
    """One input of one node: a trace, and the values to call the node with, or the cause of a skip.

    Attributes:
        input_id: Its identity, equal whether it came through a channel or inside the task.
        origin: The source item it derives from; of an interval skip, the first ordinal.
        path: The fan-outs passed.
        values: One per input of the node; None for a missing one.
        cause: Set for a skip.
        last: Last ordinal of an interval skip; otherwise the origin's.
        missing: Input name → cause, where a value is None because nothing was said.
        key: Partition key, inherited along the trace.
        source: Name of the source.
        event_time: Seconds in the time of the source.
        low: Lower bound of event times to come.
        after: Of flush outputs: what must precede.
        via: Inside a task: the (node, port) that each value came from.
        parts: Input name → (trace, cause of a skip or None) of each item of a list; of such a list itself
            under the name "".
        marker: Of a marker, what it is called; it goes to `on_control`, and is no input.
    """

    input_id: str
    origin: Origin
    path: tuple[Hop, ...] = ()
    values: tuple[Any, ...] = ()
    cause: Cause | None = None
    last: int = -1
    missing: Mapping[str, Cause] = {}
    key: str = ""
    source: str = ""
    event_time: float | None = None
    low: float | None = None
    after: tuple[tuple[str, int, int], ...] = ()
    via: tuple[tuple[str, str], ...] = ()
    parts: Mapping[str, tuple[tuple[tuple[Hop, ...], Cause | None], ...]] = {}
    marker: str = ""


class Publication(msgspec.Struct):
    """An envelope to publish; the shell puts the encoded value into it."""

    channel: int
    envelope: Envelope
    value: Any = None


Statement = tuple[str, Sequence[Publication]]  # what is said of one input, by its id


def not_out(statements: Sequence[Statement], said: Sequence[PublicationOutcome]) -> list[Statement]:
    """Returns what is still to be said.

    Args:
        statements: In order.
        said: What came of the first of their publications, one after another.
    """
    left: list[Statement] = []
    outcomes = iter(said)
    for input_id, group in statements:
        rest = [each for each in group if not isinstance(next(outcomes, None), Accepted)]
        if rest:
            left.append((input_id, rest))
    return left


class InnerFate(msgspec.Struct):
    """What became of one trace on an edge inside the task."""

    edge: int
    origin: Origin
    last: int
    path: tuple[Hop, ...]
    fate: Fate
