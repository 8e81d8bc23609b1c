"""What happened in a simulated run, as far as somebody outside could see it.

Filled by the nodes of the run while it goes on, and compared with a run without faults afterwards.
"""

import zlib
from collections.abc import Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from videoflow.backends.coverage import Hop, Origin
from videoflow.worker.core.actions import Failure, Returned

Value = Any
"""Whatever an edge carries."""
Mark = Hashable
"""What stands for a value: equal for equal values, and small."""
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))


class Made(NamedTuple):
    """One call of a node.

    Attributes:
        station: Whose.
        incarnation: Of the station, from 1.
        input_id: The node's input.
        origin: The source item that it derives from.
        path: The fan-outs passed.
        given: Mark of the values.
        missing: Inputs that had none.
        made: Mark of the outputs, or of the failure.
        zombie: It was made by a worker that had been replaced.
    """

    station: str
    incarnation: int
    input_id: str
    origin: Origin
    path: tuple[Hop, ...]
    given: Mark
    missing: tuple[str, ...]
    made: Mark
    failed: bool

    @property
    def place(self) -> tuple[int, int, tuple[int, ...]]:
        """Returns where it stands among those of its origin: (epoch, ordinal, (k, k, …))."""
        return self.origin.epoch, self.origin.ordinal, tuple(hop.k for hop in self.path)


@dataclass
class Record:
    """Everything that was seen.

    Attributes:
        calls: Node → its calls, in order.
        flushes: Node → (station, whether its last words were committed before it was asked, mark of the
            answer).
        disks: Node → what a sink with checkpoints wrote, and was not cut off again.
        tables: Node → effect key → what was written under it, each time.
        markers: Node → (identity, mark) of each marker that it was given.
        feeds: Node → items that a live source has made; it never makes one of them again.
        wrongs: What was seen meanwhile that may not be, in sentences.
        recorded: (node, input id) → its answer, for stand-ins of later runs; filled where wanted.
        produced: Source → (offset, answer), likewise.
    """

    calls: dict[str, list[Made]] = field(default_factory=dict)
    flushes: dict[str, list[tuple[str, bool, Mark]]] = field(default_factory=dict)
    disks: dict[str, list[Any]] = field(default_factory=dict)
    tables: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    markers: dict[str, list[tuple[str, Mark]]] = field(default_factory=dict)
    feeds: dict[str, int] = field(default_factory=dict)
    wrongs: list[str] = field(default_factory=list)

    def disk(self, node: str) -> list[Any]:
        """Returns what stands for a node's file."""
        return self.disks.setdefault(node, [])

    def table(self, node: str) -> dict[str, list[Any]]:
        """Returns what stands for what a node writes to under effect keys."""
        return self.tables.setdefault(node, {})


def mark(value: Value) -> Mark:
    """Returns what stands for a value."""
    plain: Mark = value
    if type(value) in _PLAIN:
        return plain
    if isinstance(value, (list, tuple)):
        return tuple([mark(part) for part in value])
    if isinstance(value, dict):
        return tuple([(key, mark(part)) for key, part in value.items()])
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, zlib.crc32(np.ascontiguousarray(value).data)
    if isinstance(value, (int, float, str, bytes)):
        return plain
    if isinstance(value, msgspec.Struct):
        return tuple(mark(getattr(value, name)) for name in value.__struct_fields__)
    if is_dataclass(value):
        return tuple(mark(getattr(value, each.name)) for each in fields(value))
    return repr(value)


def mark_answer(answer: Returned | Failure) -> Mark:
    """Returns what stands for the answer of a node."""
    if isinstance(answer, Failure):
        return answer.disposition.value, answer.error
    return tuple((port, mark(value), key) for port, value, key in answer.outputs)
