"""Every way in which a method may be written is called alike."""

import asyncio
import math
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import videoflow as vf
from tests.graph.nodes import turned
from videoflow.graph import Emitted, Invoker, remedy_for

UNTYPED: dict[str, Any] = {"time": {"time_seconds": "0.5"}, "key": {"key": 5}}
CTX = vf.Context(node="node", attempt=3)


def processor(process: Any, **attributes: Any) -> Invoker:
    made = type("Made", (vf.Processor,), {"process": process, **attributes})
    return Invoker(made(), "made")


def plain(self: Any, value: int) -> int:
    return value + 1


def with_context(self: Any, value: int, ctx: vf.Context) -> int:
    return value + ctx.attempt - 2


def keyword_context(self: Any, *values: int, surroundings: vf.Context) -> int:
    return values[0] + surroundings.attempt - 2


def chosen(self: Any, value: int) -> vf.Out:
    return vf.Out(value + 1)


def generated(self: Any, value: int) -> Iterator[int]:
    yield value + 1


def handed_on(self: Any, value: int) -> Any:
    return generated(self, value)


async def awaited(self: Any, value: int) -> int:
    await turned()
    return value + 1


async def awaited_with_context(self: Any, value: int, ctx: vf.Context) -> int:
    return value + ctx.attempt - 2


async def generated_later(self: Any, value: int) -> AsyncIterator[int]:
    await turned()
    yield value + 1


@pytest.mark.parametrize(
    "process",
    [
        plain,
        with_context,
        keyword_context,
        chosen,
        generated,
        handed_on,
        awaited,
        awaited_with_context,
        generated_later,
    ],
)
def test_each_way_gives_the_same_output(process: Any) -> None:
    invoker = processor(process)
    invoker.open(CTX)
    assert invoker.call((4,), CTX) == [("out", 5, None)]
    assert invoker.call((5,), CTX) == [("out", 6, None)]
    invoker.close()


@pytest.mark.parametrize(
    ("result", "outputs"),
    [
        (None, [("out", None, None)]),
        (vf.SKIP, []),
        (vf.Out(vf.SKIP), []),
        ([1, 2], [("out", [1, 2], None)]),
        ((), [("out", (), None)]),
        (vf.Out(1, key="k"), [("out", 1, "k")]),
    ],
)
def test_none_is_a_value_and_a_skip_is_none(result: Any, outputs: list[Emitted]) -> None:
    assert processor(lambda self, value: result).call((0,), CTX) == outputs


def test_a_plain_value_goes_to_the_first_port() -> None:
    invoker = processor(lambda self, value: value, ports=("boxes", "events"))
    assert invoker.call((1,), CTX) == [("boxes", 1, None)]


def test_several_ports_and_a_many_port_keep_their_order() -> None:
    def split(self: Any, value: int) -> Iterator[Any]:
        yield vf.Out("a", port="crops")
        yield value
        yield vf.SKIP
        yield vf.Out("b", port="crops")

    invoker = processor(split, ports=("out", "crops"), many={"crops": 2})
    assert invoker.call((1,), CTX) == [("crops", "a", None), ("out", 1, None), ("crops", "b", None)]


def twice(self: Any, value: int) -> Iterator[int]:
    yield value
    yield value


@pytest.mark.parametrize(
    ("process", "attributes", "said"),
    [
        (twice, {}, "two outputs on port out"),
        (twice, {"many": {"out": 1}}, "more than 1 outputs on port out"),
        (twice, {"many": ("out",)}, ""),
        (lambda self, value: vf.Out(value, port="outt"), {}, "no port 'outt'"),
    ],
)
def test_outputs_that_the_ports_do_not_allow_are_refused(process: Any, attributes: Any, said: str) -> None:
    invoker = processor(process, **attributes)
    if not said:
        assert len(invoker.call((1,), CTX)) == 2
        return
    with pytest.raises(vf.EmissionRefused, match="made") as caught:
        invoker.call((1,), CTX)
    assert said in caught.value.message
    assert caught.value.remedy


def test_a_generator_that_fails_has_no_outputs() -> None:
    def half(self: Any, value: int) -> Iterator[Any]:
        yield value
        raise ZeroDivisionError("half way")

    with pytest.raises(ZeroDivisionError, match="half way"):
        processor(half).call((1,), CTX)


def test_a_batch_method_alone_is_called_with_one_input() -> None:
    class Batched(vf.Processor):
        def process_batch(self, inputs: list[int]) -> list[int]:
            return [value * 2 for value in inputs]

    class Short(vf.Processor):
        def process_batch(self, inputs: list[int]) -> list[int]:
            return []

    assert Invoker(Batched()).call((4,), CTX) == [("out", 8, None)]
    with pytest.raises(vf.EmissionRefused, match="given 1 input"):
        Invoker(Short()).call((4,), CTX)


def test_results_of_a_batch_are_all_that_results_of_one_may_be() -> None:
    class Batched(vf.Processor):
        ports = ("out", "more")
        many: Mapping[str, int] = {"out": 2}

        def process_batch(self, inputs: list[int]) -> Iterator[Any]:
            yield inputs[0] * 2
            yield vf.SKIP
            yield vf.Out(inputs[2], "more")
            yield (value for value in (inputs[3], None))

    made = Invoker(Batched()).call_batch([(1,), (2,), (3,), (4,)], CTX)
    assert made == [[("out", 2, None)], [], [("more", 3, None)], [("out", 4, None), ("out", None, None)]]
    with pytest.raises(IndexError):
        Invoker(Batched()).call((1,), CTX)


def test_inputs_that_meet_come_to_a_batch_as_they_meet_and_each_has_one_result() -> None:
    class Pairs(vf.Processor):
        def process(self, one: int, other: int) -> int:
            raise AssertionError("a node that batches is not called alone in another way")

        def process_batch(self, inputs: list[tuple[int, int]]) -> list[int]:
            return [one + other for one, other in inputs][:2]

    pairs = Invoker(Pairs(), batches=True)
    assert pairs.call_batch([(1, 2), (3, 4)], CTX) == [[("out", 3, None)], [("out", 7, None)]]
    assert pairs.call((5, 6), CTX) == [("out", 11, None)]
    with pytest.raises(vf.EmissionRefused, match="given 3 inputs"):
        pairs.call_batch([(1, 2), (3, 4), (5, 6)], CTX)


def test_flush_has_any_number_of_outputs_and_none_of_them_by_none() -> None:
    silent = processor(plain)
    assert silent.flush(CTX) == []

    def flush(self: Any) -> Iterator[Any]:
        yield 1
        yield None
        yield vf.SKIP

    assert processor(plain, flush=flush).flush(CTX) == [("out", 1, None), ("out", None, None)]


class Source(vf.Producer):
    ports = ("out", "truth")

    closed = False

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        try:
            for number in range(resume or 0, 4):
                yield vf.Item(number, offset=number, ports={"truth": -number})
        finally:
            self.closed = True


def test_items_start_at_resume_and_closing_the_iterator_closes_the_source() -> None:
    source = Source()
    invoker = Invoker(source)
    items = invoker.items(2, CTX)
    assert next(items).offset == 2
    assert not source.closed
    assert isinstance(items, Generator)
    items.close()
    assert source.closed
    assert [item.offset for item in invoker.items(None, CTX)] == [0, 1, 2, 3]


def test_an_item_is_put_on_its_ports() -> None:
    invoker = Invoker(Source())
    assert invoker.outputs_of(vf.Item(1, offset=0, key="k", ports={"truth": 2})) == [
        ("out", 1, "k"),
        ("truth", 2, "k"),
    ]
    assert invoker.outputs_of(vf.Item(vf.SKIP, offset=0, ports={"truth": vf.SKIP})) == []


@pytest.mark.parametrize(
    ("items", "resume", "said"),
    [
        ([3], None, "yielded int"),
        ([vf.Item(1, offset=1), vf.Item(1, offset=1)], None, "offset 1"),
        ([vf.Item(1, offset=0)], 1, "offset 0"),
        ([vf.Item(1, offset=True)], None, "offset True"),
        ([vf.Item(1, offset=2**63 - 1)], None, "offset 9223372036854775807"),
        ([vf.Item(1, offset=0, time_seconds=math.nan)], None, "an item at nan"),
        ([vf.Item(1, offset=0, **UNTYPED["time"])], None, "an item at '0.5'"),
        ([vf.Item(1, offset=0, **UNTYPED["key"])], None, "the key 5"),
        ([vf.Item(1, offset=0, ports={"thruth": 1})], None, "no port 'thruth'"),
        ([vf.Item(1, offset=0, ports={"out": 1})], None, "first port out"),
    ],
)
def test_items_out_of_turn_are_refused(items: list[Any], resume: int | None, said: str) -> None:
    made = type("Odd", (Source,), {"produce": lambda self, resume: iter(items)})
    with pytest.raises(vf.EmissionRefused) as caught:
        list(Invoker(made(), "source").items(resume, CTX))
    assert said in caught.value.message


def test_a_producer_without_resume_starts_over_and_what_is_committed_is_left_out() -> None:
    @vf.producer
    def letters() -> Iterator[vf.Item]:
        for number, letter in enumerate("abcd"):
            yield vf.Item(letter, offset=number)

    assert [item.value for item in Invoker(letters()).items(2, CTX)] == ["c", "d"]


def test_an_asynchronous_producer_and_consumer_work() -> None:
    taken: list[int] = []

    class Ticks(vf.Producer):
        async def produce(self, resume: int | None, ctx: vf.Context) -> AsyncIterator[vf.Item]:
            for number in range(3):
                await turned()
                yield vf.Item(number, offset=number)

    @vf.consumer
    async def take(value: int) -> None:
        await turned()
        taken.append(value)

    ticks, sink = Invoker(Ticks()), Invoker(take())
    for item in ticks.items(None, CTX):
        sink.consume((item.value,), CTX)
    ticks.close()
    sink.close()
    assert taken == [0, 1, 2]


def test_close_ends_what_asynchronous_code_left_running() -> None:
    ended: list[str] = []

    class Background(vf.Processor):
        async def open(self) -> None:
            self.task = asyncio.get_running_loop().create_task(self.work())

        async def work(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        async def process(self, value: int) -> int:
            await turned()
            return value

        async def close(self, ctx: vf.Context) -> None:
            ended.append(f"close {ctx.node}")

    invoker = Invoker(Background())
    invoker.open(CTX)
    assert invoker.call((1,), CTX) == [("out", 1, None)]
    invoker.close()
    assert ended == ["close node", "work"]


@pytest.mark.parametrize(("answer", "count"), [(None, None), (0, None), (3, 3)])
def test_a_checkpoint_is_a_number_of_inputs_or_none(answer: Any, count: int | None) -> None:
    made = type("Buffer", (vf.Consumer,), {"checkpoint": lambda self, ctx: answer})
    assert Invoker(made()).checkpoint(CTX) == count


@pytest.mark.parametrize("answer", [-1, True, "2", 1.5])
def test_another_answer_of_checkpoint_is_refused(answer: Any) -> None:
    made = type("Buffer", (vf.Consumer,), {"checkpoint": lambda self, ctx: answer})
    with pytest.raises(vf.EmissionRefused, match="checkpoint returned"):
        Invoker(made()).checkpoint(CTX)


class Judge(vf.Processor):
    def process(self, value: int) -> int:
        return value

    def classify(self, error: Exception) -> Any:
        return "fatal" if isinstance(error, MemoryError) else None


@pytest.mark.parametrize(
    ("error", "disposition"),
    [
        (MemoryError(), "fatal"),
        (KeyError(), "poison"),
        (IndexError(), "poison"),
        (ValueError(), "transient"),
        (vf.EmissionRefused("x"), "poison"),
        (vf.ValueRefused("x"), "poison"),
        (vf.NotYet("x"), "fatal"),
    ],
)
def test_an_exception_means_what_the_node_or_its_options_say(error: Exception, disposition: str) -> None:
    invoker = Invoker(Judge(), on_error={"LookupError": "poison", "MemoryError": "transient"})
    assert invoker.classify(error) == disposition


def test_who_writes_on_a_read_only_array_is_told_so() -> None:
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only") as caught:
        array[0] = 1
    assert "frame.copy()" in remedy_for(caught.value)
    assert remedy_for(ValueError("something else")) == ""
