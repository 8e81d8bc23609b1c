"""What the compiler reads from a class: above all whether it uses state."""

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import videoflow as vf
from tests.graph.nodes import Last, Numbers
from videoflow.graph import is_stateful
from videoflow.graph._traits import traits_of


class Direct(vf.Processor):
    def process(self, value: int, ctx: vf.Context) -> int:
        ctx.state["n"] = value
        return value


class Renamed(vf.Processor):
    def process(self, value: int, surroundings: vf.Context) -> int:
        return len(surroundings.state)


class Nested(vf.Processor):
    def process(self, value: int, ctx: vf.Context) -> list[int]:
        return [ctx.state.get(str(number), 0) for number in range(value)]


class Helper(vf.Processor):
    def process(self, value: int, ctx: vf.Context) -> int:
        return self._count(ctx)

    def _count(self, ctx: vf.Context) -> int:
        return len(ctx.state)


class Inherited(Helper):
    pass


class Flushing(vf.Processor):
    def process(self, value: int) -> int:
        return value

    def flush(self, ctx: vf.Context) -> Any:
        return ctx.state.get("n")


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


class Wrapped(vf.Processor):
    @logged
    def process(self, value: int, ctx: vf.Context) -> int:
        return len(ctx.state)


@vf.processor
def function(value: int, ctx: vf.Context) -> int:
    ctx.state["n"] = value
    return value


class OwnAttribute(vf.Processor):
    """Has an attribute `state` of its own, which is none of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.state = "idle"

    def process(self, value: int, ctx: vf.Context) -> str:
        ctx.logger.debug("%s", self.state)
        return self.state


class NoContext(vf.Processor):
    def process(self, event: Any) -> Any:
        return event.state


class Hidden(vf.Processor):
    stateful = True

    def process(self, value: int, ctx: vf.Context) -> Any:
        return getattr(ctx, "st" + "ate")


class Denied(Direct):
    stateful = False


@pytest.mark.parametrize(
    "make", [Direct, Renamed, Nested, Helper, Inherited, Flushing, Wrapped, function, Hidden]
)
def test_a_node_whose_methods_read_ctx_state_is_stateful(make: Any) -> None:
    assert is_stateful(make())


@pytest.mark.parametrize("make", [OwnAttribute, NoContext, Denied, Numbers])
def test_a_node_that_does_not_is_not(make: Any) -> None:
    assert not is_stateful(make())


def test_state_in_a_node_judged_stateless_says_what_to_set() -> None:
    context = vf.Context(node="blur")
    with pytest.raises(vf.UsageError, match="blur") as caught:
        _ = context.state
    assert caught.value.remedy == "set stateful = True on the class"


class Slow(vf.Producer):
    resumable = False
    required = False

    async def produce(self, resume: int | None) -> AsyncIterator[vf.Item]:
        yield vf.Item(1, offset=0)

    def max_item_bytes(self) -> int:
        return 77


class Buffered(vf.Consumer):
    holds_items = 3
    collects = True

    async def consume(self, value: Any) -> None: ...

    def checkpoint(self, ctx: vf.Context) -> int | None:
        return None

    def outputs(self) -> tuple[str, ...]:
        return ("a.txt",)


class Batched(vf.Processor):
    batch_invariant = True

    def process_batch(self, inputs: list[int]) -> list[int]:
        return inputs


def test_the_other_traits_are_read_from_class_and_instance() -> None:
    slow, buffered, batched = traits_of(Slow()), traits_of(Buffered()), traits_of(Batched())
    assert (slow.resumable, slow.required, slow.asynchronous, slow.max_item_bytes) == (False, False, True, 77)
    assert (buffered.checkpoints, buffered.holds_items, buffered.collects) == (True, 3, True)
    assert (buffered.asynchronous, buffered.outputs) == (True, ("a.txt",))
    assert (batched.batches, batched.batch_invariant, batched.flushes) == (True, True, False)
    assert traits_of(Last()).flushes
