"""Calls user code: every way in which a method may be written, and what it may hand back.

Used by the worker and by `drive`, one invoker per node and thread. It refuses outputs that the ports of the
node do not allow, and items out of turn, with `EmissionRefused`; what user code raises it lets through.
"""

import math
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from videoflow.errors import EmissionRefused, StateTooLarge, UsageError, ValueRefused, plain_text, said_by
from videoflow.graph import _coroutines
from videoflow.graph._context import Context
from videoflow.graph._methods import Method, Shape, shape_of
from videoflow.graph._node import Node, Producer
from videoflow.graph._options import Disposition, nearest
from videoflow.graph._traits import many_of, overrides
from videoflow.graph._types import Value
from videoflow.graph._values import SKIP, Item, Out

Emitted = tuple[str, Value, str | None]
"""What a node emits: the port, the value, and a key or None."""

_END = object()
_LARGEST_OFFSET = 2**63 - 2  # the one after it is what `resume` says next
READ_ONLY_REMEDY = (
    "arrays on an edge are read-only: image = frame.copy() to draw, then frame.with_image(image)"
)


def remedy_for(error: BaseException) -> str:
    """Returns what to do about an exception of user code, where videoflow knows; else an empty text."""
    if isinstance(error, UsageError):
        return error.remedy
    if isinstance(error, ValueError) and "read-only" in said_by(error):
        return READ_ONLY_REMEDY
    return ""


class Invoker:
    """Calls the methods of one node.

    Attributes:
        node: The node.
        name: What the node is called in errors.
    """

    def __init__(
        self,
        node: Node,
        name: str | None = None,
        on_error: Mapping[str, Disposition] | None = None,
        *,
        batches: bool = False,
    ) -> None:
        """Looks at the methods of a node; calls none.

        Args:
            node: The node.
            name: What the node is called in errors; by default its option, or its class.
            on_error: Exception name → what it means.
            batches: `process_batch` is called for single inputs too, though there may be a `process`.
        """
        self.node = node
        self.name = name or node._videoflow_record.options.get("name") or type(node).__qualname__
        self._on_error = on_error or {}
        self._ports = tuple(node.ports)
        self._many = many_of(node)
        self._single = len(self._ports) == 1 and not self._many
        self._methods: dict[str, tuple[Method, Shape]] = {}
        self._loop: _coroutines.Loop | None = None
        self._context: Context | None = None
        single = not batches and overrides(node, "process")
        self._by_batch = overrides(node, "process_batch") and not single

    def open(self, ctx: Context) -> None:
        """Calls `open`."""
        self._context = ctx
        self._finished(self._call("open", (), ctx))

    def call(self, inputs: Sequence[Value], ctx: Context) -> list[Emitted]:
        """Calls a processor, and returns what it emits, in order; skips are left out.

        Raises:
            EmissionRefused: A one-to-one port twice, a many port beyond its bound, an unknown port.
        """
        if self._by_batch:
            return self.call_batch([inputs], ctx)[0]
        method, shape = self._methods.get("process") or self._method("process")
        result = method(*inputs) if shape.context is None else method(*inputs, **{shape.context: ctx})
        kind = type(result)
        if kind is CoroutineType:
            result = self._run(result)
            kind = type(result)
        if kind is GeneratorType or kind is AsyncGeneratorType:
            return self._outputs(self._iterate(result))
        if self._single and kind is not Out and result is not SKIP:
            return [(self._ports[0], result, None)]
        return self._outputs((result,))

    def call_batch(self, batch: Sequence[Sequence[Value]], ctx: Context) -> list[list[Emitted]]:
        """Calls `process_batch`, and returns for each input what `call` returns for one.

        A result may be all that `process` may return; a generator may yield the results.

        Raises:
            EmissionRefused: Not one result for each input, or what `call` refuses.
        """
        given = [inputs[0] if len(inputs) == 1 else tuple(inputs) for inputs in batch]
        made = self._finished(self._call("process_batch", (given,), ctx))
        if type(made) is GeneratorType or type(made) is AsyncGeneratorType:
            made = list(self._iterate(made))
        if not isinstance(made, list | tuple) or len(made) != len(given):
            count = "1 input" if len(given) == 1 else f"{len(given)} inputs"
            raise EmissionRefused(
                f"node {self.name}: process_batch was given {count} and returned {made!r}"[:200],
                cause="it returns one result per input, in order",
                remedy="return a list that is as long as the list of inputs",
            )
        return [self._outputs(self._results(one)) for one in made]

    def consume(self, inputs: Sequence[Value], ctx: Context) -> None:
        """Calls a consumer."""
        self._finished(self._call("consume", inputs, ctx))

    def items(self, resume: int | None, ctx: Context) -> Iterator[Item]:
        """Yields the items of a producer; closing the iterator closes the producer's own.

        Args:
            resume: The last committed offset + 1, or None. A producer that does not take it starts from its
                beginning, and the items before `resume` are left out here.
            ctx: The context.

        Raises:
            EmissionRefused: No `Item`, an offset out of turn, an unknown port.
        """
        _, shape = self._method("produce")
        takes_resume = shape.most is None or shape.most > 0
        made = self._call("produce", (resume,) if takes_resume else (), ctx)
        last: int | None = None
        items = self._iterate(self._run(made) if type(made) is CoroutineType else made)
        try:
            for item in items:
                self._check_item(item, last, resume if takes_resume else None)
                last = item.offset
                if resume is None or item.offset >= resume:
                    yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def outputs_of(self, item: Item) -> list[Emitted]:
        """Returns what an item puts on which port, in the order of the ports; skips are left out."""
        outputs: list[Emitted] = []
        for number, port in enumerate(self._ports):
            value = item.value if number == 0 else item.ports.get(port, SKIP)
            if value is not SKIP:
                outputs.append((port, value, item.key))
        return outputs

    def flush(self, ctx: Context) -> list[Emitted]:
        """Calls `flush`; a bare None is no output, and a port may have several outputs."""
        result = self._call("flush", (), ctx)
        if type(result) is CoroutineType:
            result = self._run(result)
        if result is None:
            return []
        several = type(result) is GeneratorType or type(result) is AsyncGeneratorType
        return self._outputs(self._iterate(result) if several else (result,), bounded=False)

    def checkpoint(self, ctx: Context) -> int | None:
        """Returns how many of the oldest unsettled inputs are durable now; None for none.

        Raises:
            EmissionRefused: The answer is no number of inputs.
        """
        if not hasattr(self.node, "checkpoint"):
            return None
        count = self._finished(self._call("checkpoint", (), ctx))
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise EmissionRefused(
                f"node {self.name}: checkpoint returned {count!r}",
                cause="it returns how many of its oldest unsettled inputs are durable now, or None",
                remedy="return a whole number from 0, or None",
            )
        return count or None

    def on_control(self, marker: Value, ctx: Context) -> None:
        """Gives the node a marker."""
        self._finished(self._call("on_control", (marker,), ctx))

    def snapshot(self, ctx: Context) -> Value:
        """Returns what the node keeps in itself."""
        return self._finished(self._call("snapshot", (), ctx))

    def restore(self, value: Value, ctx: Context) -> None:
        """Gives the node what an earlier `snapshot` returned."""
        self._finished(self._call("restore", (value,), ctx))

    def classify(self, error: Exception) -> Disposition:
        """Returns what an exception means: as the node says, else `on_error`, else by its kind."""
        chosen = self.node.classify(error)
        if chosen is not None:
            return chosen
        for kind in type(error).__mro__:
            if kind.__name__ in self._on_error:
                return self._on_error[kind.__name__]
        if isinstance(error, ValueRefused):
            return "poison"
        return "fatal" if isinstance(error, UsageError | StateTooLarge) else "transient"

    def interrupt(self) -> None:
        """Ends a blocked producer; may be called from another thread."""
        if isinstance(self.node, Producer):
            self.node.interrupt()

    def summary(self) -> dict[str, Any]:
        """Returns the node's own figures."""
        return dict(self.node.summary())

    def close(self) -> None:
        """Calls `close`, and ends what asynchronous code left running."""
        try:
            method, shape = self._method("close")
            if shape.context is None:
                self._finished(method())
            elif self._context is not None:
                self._finished(method(**{shape.context: self._context}))
        finally:
            if self._loop is not None:
                self._loop.close()
                self._loop = None

    # --- calling ---------------------------------------------------------------------------------------

    def _method(self, name: str) -> tuple[Method, Shape]:
        method = getattr(self.node, name)
        found = self._methods[name] = (method, shape_of(method))
        return found

    def _call(self, name: str, inputs: Sequence[Value], ctx: Context) -> Value:
        method, shape = self._methods.get(name) or self._method(name)
        if shape.context is None:
            return method(*inputs)
        return method(*inputs, **{shape.context: ctx})

    def _finished(self, result: Value) -> Value:
        return self._run(result) if type(result) is CoroutineType else result

    def _results(self, result: Value) -> Iterable[Value]:
        if type(result) is CoroutineType:
            result = self._run(result)
        several = type(result) is GeneratorType or type(result) is AsyncGeneratorType
        return self._iterate(result) if several else (result,)

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Value:
        if self._loop is None:
            self._loop = _coroutines.Loop()
        return self._loop.run(coroutine)

    def _iterate(self, result: Value) -> Iterator[Any]:
        if isinstance(result, AsyncIterator):
            return self._step(result)
        try:
            return iter(result)
        except TypeError:
            raise EmissionRefused(
                f"node {self.name} made {type(result).__name__} where items are yielded",
                remedy="write a generator: yield vf.Item(value, offset=...)",
            ) from None

    def _step(self, made: AsyncIterator[Any]) -> Iterator[Any]:
        try:
            while True:
                item = self._run(_next(made))
                if item is _END:
                    return
                yield item
        finally:
            if isinstance(made, AsyncGeneratorType):
                self._run(_closed(made))

    # --- what comes back -------------------------------------------------------------------------------

    def _outputs(self, results: Iterable[Value], *, bounded: bool = True) -> list[Emitted]:
        outputs: list[Emitted] = []
        counts: dict[str, int] = {}
        for result in results:
            port, value, key = self._ports[0], result, None
            if type(result) is Out:
                port, value, key = result.port, result.value, result.key
                if port not in self._ports:
                    raise self._unknown_port(port)
                self._check_key(key)
            if value is SKIP:
                continue
            count = counts[port] = counts.get(port, 0) + 1
            if bounded and count > self._many.get(port, 1):
                raise self._too_many(port)
            outputs.append((port, value, key))
        return outputs

    def _check_item(self, item: Value, last: int | None, resume: int | None) -> None:
        if type(item) is not Item:
            raise EmissionRefused(
                f"producer {self.name} yielded {type(item).__name__}",
                cause="a producer yields vf.Item(value, offset=...)",
                remedy="wrap the value, and give it a strictly increasing offset",
            )
        least = resume if last is None else last + 1
        offset: object = item.offset
        number = isinstance(offset, int) and not isinstance(offset, bool) and abs(offset) <= _LARGEST_OFFSET
        if not number or (least is not None and item.offset < least):
            wanted = "any int of 63 bits" if least is None else f"{least} or more"
            raise EmissionRefused(
                f"producer {self.name} yielded offset {plain_text(repr(item.offset), 50)}",
                cause=f"offsets are strictly increasing whole numbers; here it must be {wanted}",
                remedy="count positions of the source, and start at `resume`",
            )
        time: object = item.time_seconds
        if time is not None and not (isinstance(time, Real) and math.isfinite(time)):
            raise EmissionRefused(
                f"producer {self.name} yielded an item at {plain_text(repr(time), 50)}",
                cause="time_seconds is a finite number, or None where the time is not known",
                remedy="give seconds since the source began",
            )
        self._check_key(item.key)
        for port in item.ports:
            if port not in self._ports[1:]:
                raise self._unknown_port(port) if port not in self._ports else self._twice(port)

    def _check_key(self, key: object) -> None:
        if key is not None and type(key) is not str:
            raise EmissionRefused(
                f"node {self.name} gave an item the key {plain_text(repr(key), 50)}",
                cause=f"a key is text, not {type(key).__name__}",
                remedy="write key=str(...)",
            )

    def _twice(self, port: str) -> EmissionRefused:
        return EmissionRefused(
            f"producer {self.name}: an item names its first port {port} in `ports`",
            cause="what goes to the first port is the value of the item",
            remedy="write vf.Item(value, offset=...), or vf.Item(vf.SKIP, ...) for no output there",
        )

    def _unknown_port(self, port: str) -> EmissionRefused:
        return EmissionRefused(
            f"node {self.name} has no port {port!r}",
            remedy=f"{nearest(port, self._ports)}; or declare it in `ports` of the class",
        )

    def _too_many(self, port: str) -> EmissionRefused:
        if port in self._many:
            return EmissionRefused(
                f"node {self.name}: more than {self._many[port]} outputs on port {port} for one input",
                cause=f"the class declares many = {{{port!r}: {self._many[port]}}}",
                remedy="raise the bound, or emit less",
            )
        return EmissionRefused(
            f"node {self.name}: two outputs on port {port} for one input",
            cause="a port that is not declared many emits at most one",
            remedy=f"declare many = {{{port!r}: 64}} on the class, with the most that it may emit",
        )


async def _next(made: AsyncIterator[Any]) -> Value:
    return await anext(made, _END)


async def _closed(made: AsyncGeneratorType[Any, Any]) -> None:
    await made.aclose()
