"""Classes that cross edges in the tests of `wire`, importable by name."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec


@dataclass(frozen=True)
class Box:
    corners: tuple[int, int, int, int]
    label: str = ""
    extra: Any = None


@dataclass
class Tally:
    counts: dict[str, int]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.counts.values())

    @cached_property
    def mean(self) -> float:
        return self.total / max(1, len(self.counts))


@dataclass(frozen=True, slots=True)
class Doubled:
    number: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", self.number * 2)


class Point(msgspec.Struct, frozen=True):
    x: float
    y: float
    tags: tuple[str, ...] = ()


class Sorted(msgspec.Struct):
    numbers: list[int]

    def __post_init__(self) -> None:
        self.numbers = [*sorted(self.numbers), 0]


@dataclass
class Loose:
    number: int


class Outer:
    @dataclass(frozen=True)
    class Inner:
        number: int


@dataclass
class Shouting(list[int]):
    loud: bool = True


class Plain:
    pass
