"""Stand-ins for what is above a node whose dead letters are replayed: the letters, and its parents.

Used by the flow that a replay makes. What travels between them is the place of a letter; its values are read
where they are said. They refuse nothing: what cannot be replayed was refused before.
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
        k: Which element of the fan-out it is that is gathered below; -1 where none is.
    """

    members: dict[str, bytes]
    source: str
    time_seconds: float | None = None
    k: int = -1


@dataclass(frozen=True)
class Together:
    """Letters of one source item, which are gathered below; or one letter.

    Attributes:
        letters: At least one.
        width: How many elements the fan-out made of the item; 0 where none is gathered.
    """

    letters: list[Letter]
    width: int = 0


@dataclass(frozen=True)
class Place:
    """Where a letter is.

    Attributes:
        source: Name of the source that it derives from.
        number: Which of the `Together`.
        k: Which element; -1 above the fan-out.
    """

    source: str
    number: int
    k: int = -1


class Letters(Producer):
    """Gives out where the letters of a file are, in order.

    Args:
        path: What `write_letters` wrote.
    """

    max_item_bytes = _BESIDE_BYTES

    def __init__(self, path: str, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        self._path = Path(path)

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields a place for all letters that belong together."""
        for number, found in list(enumerate(_read(self._path)))[resume or 0 :]:
            first = found.letters[0]
            yield Item(Place(first.source, number), offset=number, time_seconds=first.time_seconds)


class Elements(Processor):
    """Makes the elements of a fan-out again, of some of which there are letters.

    Args:
        path: What `write_letters` wrote.
        most: The most of one item.
    """

    max_item_bytes = _BESIDE_BYTES

    def __init__(self, path: str, most: int, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        self.many: Mapping[str, int] = {"out": most}
        self._path = Path(path)

    def open(self) -> None:
        """Reads the letters."""
        self._found = _read(self._path)

    def process(self, place: Place) -> Iterator[Place]:
        """Yields the place of each element."""
        for k in range(self._found[place.number].width):
            yield Place(place.source, place.number, k)


class Parent(Processor):
    """Stands in the place of a parent: says what the letter holds of it, and nothing else.

    Args:
        path: What `write_letters` wrote.
        ports: Its ports.
        gathered: Those whose items the failed node is given as a list, with their bounds.
        inputs: Port → the input of the failed node that is fed from there.
        absent: A member that is None was missing.
    """

    def __init__(
        self,
        path: str,
        ports: list[str],
        gathered: dict[str, int],
        inputs: dict[str, str],
        absent: bool,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        self.ports = tuple(ports)
        self.many: Mapping[str, int] = gathered
        self._path = Path(path)
        self._inputs = inputs
        self._absent = absent

    def max_item_bytes(self) -> int:
        """Returns the size of all letters together."""
        return self._path.stat().st_size + _BESIDE_BYTES

    def open(self) -> None:
        """Reads the letters."""
        self._found = _read(self._path)

    def process(self, place: Place) -> Iterator[Any]:
        """Yields the members that come from this parent."""
        letters = self._found[place.number].letters
        letter = next((letter for letter in letters if letter.k == place.k), None)
        members = {} if letter is None else letter.members
        for port, name in self._inputs.items():
            if name not in members:
                continue
            value: Value = decode_value(members[name])
            if value is None and self._absent:
                continue
            for one in value if port in self.many else [value]:
                yield Out(one, port)


def write_letters(path: Path, letters: list[Together]) -> None:
    """Writes letters for `Letters` and the others."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.msgpack.encode(letters))


def _read(path: Path) -> list[Together]:
    return msgspec.msgpack.decode(path.read_bytes(), type=list[Together])


def is_sink(node: object) -> bool:
    """Whether a node ends a flow."""
    return isinstance(node, Consumer)
