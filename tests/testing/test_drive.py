"""`drive` runs one node as a worker would."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

import videoflow as vf
from tests.graph.nodes import Double, Last, Numbers, Pair, Sink, Split, Total, halve, turned
from videoflow.testing import drive


def test_a_processor_gives_its_outputs_in_order() -> None:
    assert drive(Double(), [1, 2, 3]) == [2, 4, 6]
    assert drive(halve(by=4), [2, 4]) == [0.5, 1.0]


def test_state_is_kept_and_a_flush_comes_last() -> None:
    assert drive(Total(), [1, 2, 3]) == [1, 3, 6]
    assert drive(Last(), [1, 2, 3]) == [1, 2, 3, 3]
    assert drive(Last(), []) == []


def test_a_port_is_chosen() -> None:
    assert drive(Split(), [2, 0, 1]) == [2, 0, 1]
    assert drive(Split(), [2, 0, 1], port="crops") == [0, 1, 0]
    with pytest.raises(vf.UsageError, match="no port 'x'"):
        drive(Split(), [1], port="x")


def test_several_inputs_are_a_tuple() -> None:
    assert [list(pair) for pair in drive(Pair(), [(1, "a"), (2, "b")])] == [[1, "a"], [2, "b"]]


def test_a_producer_gives_its_items() -> None:
    assert drive(Numbers(4), []) == [0, 1, 2, 3]
    with pytest.raises(vf.UsageError, match="takes no inputs"):
        drive(Numbers(4), [1])


def test_a_consumer_gives_nothing() -> None:
    assert drive(Sink(), [1, 2]) == []


def test_asynchronous_nodes_work() -> None:
    class Later(vf.Processor):
        async def open(self) -> None:
            await turned()
            self.step = 10

        async def process(self, value: int) -> AsyncIterator[int]:
            await turned()
            yield value + self.step

    assert drive(Later(), [1, 2]) == [11, 12]


def test_what_the_node_raises_is_raised_and_it_is_closed() -> None:
    closed: list[bool] = []

    class Fails(vf.Processor):
        def process(self, value: int) -> float:
            return 1 / value

        def close(self) -> None:
            closed.append(True)

    with pytest.raises(ZeroDivisionError):
        drive(Fails(), [1, 0])
    assert closed == [True]


def test_arrays_come_in_read_only_as_in_a_run() -> None:
    class Draws(vf.Processor):
        def process(self, image: Any) -> Any:
            image[0] = 1
            return image

    image = np.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        drive(Draws(), [image])
    assert image.flags.writeable


def test_what_no_edge_carries_is_refused() -> None:
    class Hands(vf.Processor):
        def process(self, value: Any) -> Any:
            return {value}

    with pytest.raises(vf.ValueRefused):
        drive(Hands(), [1])
    with pytest.raises(vf.ValueRefused):
        drive(Double(), [object()])


def test_a_one_to_one_port_that_emits_twice_is_refused() -> None:
    class Twice(vf.Processor):
        def process(self, value: int) -> Iterator[int]:
            yield value
            yield value

    with pytest.raises(vf.EmissionRefused, match="two outputs on port out"):
        drive(Twice(), [1])


def test_the_clock_is_that_of_the_items_or_moves_steadily() -> None:
    class Times(vf.Processor):
        def process(self, value: Any, ctx: vf.Context) -> float | None:
            return ctx.time_seconds

    assert drive(Times(), [1, 2, 3], seconds_per_input=0.5) == [0.0, 0.5, 1.0]
    event = vf.Event(kind="a", time_seconds=7.5, source="s", track_id=1, data={})
    assert drive(Times(), [event]) == [7.5]


class Buffer(vf.Consumer):
    holds_items = 2

    def __init__(self, keeps: int = 0) -> None:
        super().__init__()
        self.keeps = keeps
        self.waiting: list[int] = []

    def consume(self, value: int) -> None:
        self.waiting.append(value)

    def checkpoint(self, ctx: vf.Context) -> int | None:
        if len(self.waiting) < 2 and not ctx.draining:
            return None
        done = len(self.waiting) - self.keeps
        ctx.state["written"] = ctx.state.get("written", 0) + done
        del self.waiting[:done]
        return done


def test_checkpoints_must_add_up() -> None:
    assert drive(Buffer(), [1, 2, 3]) == []
    with pytest.raises(vf.EmissionRefused, match="left 1 inputs unsettled"):
        drive(Buffer(1), [1, 2, 3])

    class Hoarder(Buffer):
        def checkpoint(self, ctx: vf.Context) -> int | None:
            return None

    with pytest.raises(vf.EmissionRefused, match="keeps 3 inputs"):
        drive(Hoarder(), [1, 2, 3])

    class Boaster(Buffer):
        def checkpoint(self, ctx: vf.Context) -> int | None:
            return 5

    with pytest.raises(vf.EmissionRefused, match="5 inputs are durable, of 1"):
        drive(Boaster(), [1])


class Shifted(vf.Processor):
    def process(self, value: int, ctx: vf.Context) -> int:
        return value + int(ctx.state.get("by", 0))

    def on_control(self, marker: int, ctx: vf.Context) -> None:
        ctx.state["by"] = marker


def test_markers_come_before_the_input_of_their_number() -> None:
    assert drive(Shifted(), [1, 2, 3], markers={1: [10], 2: [20, 30], 3: [40]}) == [1, 12, 33]
    with pytest.raises(vf.UsageError, match="there are 1"):
        drive(Shifted(), [1], markers={2: [1]})
    with pytest.raises(vf.UsageError, match="takes no markers"):
        drive(Buffer(), [1], markers={0: [1]})


def test_state_in_a_node_judged_stateless_is_refused_as_in_a_run() -> None:
    def sneak(context: Any) -> int:
        return len(context.state)

    class Sneaky(vf.Processor):
        def process(self, value: int, ctx: vf.Context) -> int:
            return sneak(ctx)

    with pytest.raises(vf.UsageError, match="without state"):
        drive(Sneaky(), [1])
