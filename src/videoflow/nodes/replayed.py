"""Stand-ins for what is above a node whose dead letters are replayed: the letters, and its parents.

Used by the flow that a replay makes. They refuse nothing: what cannot be replayed was refused before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import msgspec

from videoflow.graph import Consumer, Item, NodeOptions, Out, Processor, Producer
from videoflow.wire import Value, decode_value

_BESIDE_BYTES = 1 << 16


@dataclass(frozen=True)
class Letter:
    """The input of a call that failed.

    Attributes:
        members: Input name → encoded value.
        source: Name of the source that it derives from.
        time_seconds: Its time there, or None.
    """

    members: dict[str, bytes]
    source: str
    time_seconds: float | None = None


class Letters(Producer):
    """Gives out the letters of a file, in order.

    Args:
        path: What `write_letters` wrote.
    """

    def __init__(self, path: str, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        self._path = Path(path)

    def max_item_bytes(self) -> int:
        """Returns the size of all letters together."""
        return self._path.stat().st_size + _BESIDE_BYTES

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields a letter as an item."""
        letters = msgspec.msgpack.decode(self._path.read_bytes(), type=list[Letter])
        for number, letter in list(enumerate(letters))[resume or 0 :]:
            yield Item(letter, offset=number, time_seconds=letter.time_seconds)


class Parent(Processor):
    """Stands in the place of a parent: says what the letter holds of it, and nothing else.

    Args:
        ports: Its ports.
        gathered: Those whose items the failed node is given as a list, with their bounds.
        inputs: Port → the input of the failed node that is fed from there.
        absent: A member that is None was missing.
    """

    def __init__(
        self,
        ports: list[str],
        gathered: dict[str, int],
        inputs: dict[str, str],
        absent: bool,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        self.ports = tuple(ports)
        self.many: Mapping[str, int] = gathered
        self._inputs = inputs
        self._absent = absent

    def process(self, letter: Letter) -> Iterator[Any]:
        """Yields the members that come from this parent."""
        for port, name in self._inputs.items():
            value: Value = decode_value(letter.members[name])
            if value is None and self._absent:
                continue
            for one in value if port in self.many else [value]:
                yield Out(one, port)


def write_letters(path: Path, letters: list[Letter]) -> None:
    """Writes letters for `Letters`."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.msgpack.encode(letters))


def is_sink(node: object) -> bool:
    """Whether a node ends a flow."""
    return isinstance(node, Consumer)
