"""Small nodes of every kind, of which simulated graphs are made.

Used by the generator of graphs. Their results depend on nothing but their inputs, and on what they keep apart
for each source, so that any schedule must give the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from videoflow import faults
from videoflow.graph import SKIP, Consumer, Context, Disposition, Item, NodeOptions, Out, Processor, Producer
from videoflow.simulation._record import mark
from videoflow.simulation._script import SimulatedDeath

LARGE = 16384
ITEM_BYTES = 2 * LARGE + 1024
MARKERS = ":markers"
Value = Any


def number_of(value: Value) -> int:
    """Returns a number that stands for a value."""
    if isinstance(value, int):
        return value
    if isinstance(value, np.ndarray):
        return int(value[0]) + 256 * int(value[-1])
    if isinstance(value, list):
        return mixed(*(number_of(part) for part in value))
    if isinstance(value, dict):
        return mixed(*(number_of(part) for part in value.values()))
    return 7


def mixed(*numbers: int) -> int:
    """Returns a number that depends on all, and on their order."""
    result = 17
    for number in numbers:
        result = (result * 1_000_003 + number * 31 + 7) & 0x7FFFFFFF
    return result


def shaped(number: int, large: bool) -> Value:
    """Returns a number as it is, or within an array that has to be stored."""
    if not large:
        return number
    array = np.zeros(LARGE, np.uint8)
    array[0], array[-1] = number & 255, (number >> 8) & 255
    return {"number": number, "array": array}


class Source(Producer):
    """Items 0, 1, 2, …: numbers, or arrays."""

    max_item_bytes = ITEM_BYTES

    def __init__(
        self, items: int, salt: int = 0, large: bool = False, **options: Unpack[NodeOptions]
    ) -> None:
        super().__init__(**options)
        self.items = items
        self.salt = salt
        self.large = large

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields the items from `resume` on."""
        for number in range(resume or 0, self.items):
            yield Item(
                shaped(mixed(self.salt, number), self.large),
                offset=number,
                time_seconds=number / 10,
                key=str(number % 3),
            )


class TwoPorts(Source):
    """A source with a second port, which says nothing of every third item."""

    ports = ("out", "more")

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields the items from `resume` on."""
        for number in range(resume or 0, self.items):
            value = shaped(mixed(self.salt, number), self.large)
            ports = {} if number % 3 == 1 else {"more": mixed(self.salt, number, 1)}
            key = str(number % 3)
            yield Item(SKIP if number % 5 == 4 else value, offset=number, ports=ports, key=key)


class Live(Source):
    """A source that cannot go back: what it made once does not come again."""

    resumable = False
    feed: Mapping[str, int] = {}
    key = ""

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields the items that have not been made yet."""
        feed: Any = self.feed
        key = self.key
        while feed.get(key, 0) < self.items:
            number = feed[key] = feed.get(key, 0) + 1
            yield Item(
                shaped(mixed(self.salt, number), self.large),
                offset=number,
                time_seconds=number / 10,
                key=str(number % 3),
            )


class Troubled(Processor):
    """A processor with inputs that make trouble, by the ordinal of their source item.

    Args:
        salt: Makes its results its own.
        skips: Of so many inputs, it says nothing of one; 0: of none.
        large: Whether its results have to be stored.
        trouble: `poison`, `killer`, `flaky` or `fatal` → ordinals.

    Attributes:
        peaceful: Nothing is fatal, and nothing fails once; set for the run that the others are compared with.
    """

    max_item_bytes = ITEM_BYTES
    peaceful = False

    def __init__(
        self,
        salt: int = 0,
        skips: int = 0,
        large: bool = False,
        trouble: dict[str, list[int]] | None = None,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        self.salt = salt
        self.skips = skips
        self.large = large
        self.trouble = trouble or {}

    def meet(self, ctx: Context) -> None:
        """Raises, or dies, where the input makes trouble."""
        kinds = [kind for kind, ordinals in self.trouble.items() if ctx.ordinal in ordinals]
        if "killer" in kinds:  # before all else, so that nothing else is ever seen of it
            raise SimulatedDeath
        for kind in kinds:
            if kind == "poison":
                raise LookupError("poison")
            if kind == "fatal" and not self.peaceful:
                raise MemoryError("fatal")
            if kind == "flaky" and ctx.attempt == 1 and not self.peaceful:
                raise OSError("try again")

    def answer(self, number: int) -> Value:
        """Returns the result for a number, or `SKIP`."""
        return SKIP if self.skips and number % self.skips == 0 else shaped(number, self.large)

    def classify(self, error: Exception) -> Disposition | None:
        """Poison is put aside at once, and what is fatal ends the run."""
        if isinstance(error, MemoryError):
            return "fatal"
        return "poison" if isinstance(error, LookupError) else None


class Step(Troubled):
    """Makes another value of each, or of several that meet."""

    def process(self, *values: Value, ctx: Context) -> Value:
        """Returns it."""
        self.meet(ctx)
        return self.answer(mixed(self.salt, *map(number_of, values)))


class Gathers(Troubled):
    """A step that is given several inputs in one call; where inputs make trouble, none goes with others."""

    def process_batch(self, inputs: Sequence[Value], ctx: Context) -> list[Value]:
        """Returns what `Step` makes of each."""
        if self.trouble and len(inputs) > 1:
            raise OSError("one by one")
        self.meet(ctx)
        each = [values if isinstance(values, tuple) else (values,) for values in inputs]
        return [self.answer(mixed(self.salt, *map(number_of, values))) for values in each]


class Same(Troubled):
    """Passes its first input on, as it is."""

    def process(self, *values: Value, ctx: Context) -> Value:
        """Returns it."""
        self.meet(ctx)
        number = mixed(self.salt, *map(number_of, values))
        return SKIP if self.skips and number % self.skips == 0 else values[0]


class Split(Troubled):
    """Makes none to three values of each."""

    many: Mapping[str, int] = {"out": 3}

    def process(self, value: Value, ctx: Context) -> Iterator[Value]:
        """Yields them."""
        self.meet(ctx)
        number = mixed(self.salt, number_of(value))
        for k in range(number % 4):
            yield shaped(mixed(number, k), self.large)


class Fork(Troubled):
    """Two ports: one or the other, or both."""

    ports = ("out", "more")

    def process(self, *values: Value, ctx: Context) -> Iterator[Out]:
        """Yields them."""
        self.meet(ctx)
        number = mixed(self.salt, *map(number_of, values))
        if number % 3:
            yield Out(shaped(number, self.large))
        if number % 3 != 1:
            yield Out(mixed(number, 1), "more")


class Sum(Troubled):
    """Keeps a sum for each source."""

    stateful = True

    def process(self, *values: Value, ctx: Context) -> Value:
        """Returns the sum so far."""
        total = mixed(ctx.state.get(ctx.source, self.salt), *map(number_of, values))
        ctx.state[ctx.source] = total
        self.meet(ctx)
        return self.answer(total)


class LastWords(Sum):
    """Says at the end what the sums came to."""

    def flush(self, ctx: Context) -> Iterator[Out]:
        """Yields one output for each source."""
        for source in sorted(ctx.state):
            yield Out(mixed(ctx.state[source], 1))


class Private(Troubled):
    """Keeps its sums to itself, and hands them over as a snapshot."""

    def open(self, ctx: Context) -> None:
        """Begins with none."""
        self.sums: dict[str, int] = {}

    def snapshot(self) -> dict[str, int]:
        """Returns them, in the same order whatever came first."""
        return dict(sorted(self.sums.items()))

    def restore(self, value: dict[str, int]) -> None:
        """Takes them back."""
        self.sums = dict(value)

    def process(self, *values: Value, ctx: Context) -> Value:
        """Returns the sum so far."""
        self.meet(ctx)
        total = mixed(self.sums.get(ctx.source, self.salt), *map(number_of, values))
        self.sums[ctx.source] = total
        return self.answer(total)


class Steered(Step):
    """A step that is given markers; what it makes does not depend on them."""

    def on_control(self, marker: Value) -> None:
        """Does nothing with it."""


class SteeredSum(Sum):
    """A sum that counts its markers in its state; what it makes does not depend on them."""

    def on_control(self, marker: Value, ctx: Context) -> None:
        """Counts it."""
        ctx.state[MARKERS] = ctx.state.get(MARKERS, 0) + 1


class Moody(Troubled):
    """Answers differently when it runs again, and says so."""

    feed: Mapping[str, int] = {}
    key = ""

    def process(self, *values: Value, ctx: Context) -> Value:
        """Returns a value that no second call returns."""
        self.meet(ctx)
        feed: Any = self.feed
        turn = feed[self.key] = feed.get(self.key, 0) + 1
        return mixed(turn, *map(number_of, values))


class Sink(Consumer):
    """Takes everything in."""

    def consume(self, *values: Value) -> None:
        """Does nothing with it."""


class Keyed(Consumer):
    """Writes to something that knows a repetition by its key."""

    effect_key_seconds = None
    table: Mapping[str, Any] = {}

    def consume(self, *values: Value, ctx: Context) -> None:
        """Writes a row under the key of this effect."""
        table: Any = self.table
        table.setdefault(ctx.effect_key, []).append((ctx.source, ctx.ordinal, tuple(map(mark, values))))


class Rows(Consumer):
    """Keeps what it takes in its state."""

    stateful = True
    collects = True

    def consume(self, *values: Value, ctx: Context) -> None:
        """Keeps a row."""
        count = ctx.state.get("count", 0)
        ctx.state[f"row/{count:08d}"] = [ctx.source, *map(number_of, values)]
        ctx.state["count"] = count + 1


class Saver(Consumer):
    """Writes what it takes to something like a file, several inputs at a time."""

    stateful = True
    holds_items = 4

    def __init__(self, hold: int = 3, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        self.disk: list[Any] = []
        self.hold = hold
        self.buffer: list[Any] = []

    def open(self, ctx: Context) -> None:
        """Cuts the file back to what was committed."""
        self.buffer = []
        del self.disk[ctx.state.get("length", 0) :]

    def consume(self, *values: Value, ctx: Context) -> None:
        """Keeps what is to be written."""
        self.buffer.append((ctx.source, ctx.ordinal, tuple(map(mark, values))))

    def checkpoint(self, ctx: Context) -> int | None:
        """Writes, and says how much."""
        count = len(self.buffer)
        if not ctx.draining:
            count -= count % self.hold
        if not count:
            return None
        for row in self.buffer[:count]:
            self.disk.append(row)
            faults.reach("effect.done")
        del self.buffer[:count]
        ctx.state["length"] = len(self.disk)
        return count
