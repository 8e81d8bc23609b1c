"""`drive`: one node by itself, as a worker would run it, without a flow.

Used in tests of nodes, and in notebooks to try one. It refuses what a run would refuse of a single node:
values that no edge carries, outputs that the ports do not allow, checkpoints that do not add up.
"""

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from videoflow import wire
from videoflow.errors import EmissionRefused, UsageError
from videoflow.graph import (
    Consumer,
    Context,
    Emitted,
    Invoker,
    Node,
    Producer,
    has_snapshots,
    is_stateful,
    shape_of,
)
from videoflow.wire import Value
from videoflow.worker import Kept

T = TypeVar("T")
SECONDS_PER_INPUT = 0.04


def drive(
    node: Node,
    inputs: Iterable[Any],
    port: str = "out",
    *,
    seconds_per_input: float = SECONDS_PER_INPUT,
    markers: Mapping[int, Sequence[Any]] | None = None,
) -> list[Any]:
    """Opens a node, gives it the inputs, flushes and closes it, and returns what it made on a port.

    The context is a made-up one: `ctx.time_seconds` is that of the first value where it has one, else a clock
    that moves by `seconds_per_input`; `ctx.state` is kept between the inputs. Arrays come in read-only. One
    that has `snapshot` is asked for it after every call.

    Args:
        node: A node; it may be wired or not, and is not used up.
        inputs: One value per input; for a node with several inputs a tuple of them. For a producer nothing.
        port: Whose outputs to return; a node without the port `out` is asked for its first.
        seconds_per_input: Steps of the clock.
        markers: Number of an input → the markers that come before it; the number of inputs: after the last.

    Returns:
        The outputs in order, skips left out; nothing for a consumer.

    Raises:
        UsageError: The node has no such port, or inputs were given to a producer, or markers to a node that
            takes none, or before an input that is not there.
        EmissionRefused: Outputs or checkpoints that a run would refuse.
        ValueRefused: A value that no edge carries, in an output, the state or a snapshot.
        StateTooLarge: The node keeps more than its class allows.

    Example:
        >>> import videoflow as vf
        >>> @vf.processor
        ... def double(number):
        ...     return vf.SKIP if number < 0 else 2 * number
        >>> drive(double(), [1, -1, 3])
        [2, 6]
    """
    wanted = _port(node, port)
    run = _Driven(node)
    values = list(inputs)
    if isinstance(node, Producer) and values:
        raise UsageError(f"{node!r} takes no inputs", remedy="write drive(node, [])")
    told = _markers(node, markers or {}, len(values))
    made: list[Emitted] = []
    try:
        run.attempt(lambda: run.invoker.open(run.context))
        if isinstance(node, Producer):
            made += run.produced()
        for number, value in enumerate(values):
            run.controlled(number, told)
            run.context.ordinal, run.context.input_id = number, str(number)
            made += run.called(value, number * seconds_per_input)
        run.controlled(len(values), told)
        run.context.input_id = None
        run.settle(final=True)
        made += run.attempt(lambda: run.invoker.flush(run.context))
    finally:
        run.invoker.close()
    return [wire.freeze(value) for at, value, _ in made if at == wanted]


class _Driven:
    """A node in the middle of being driven."""

    def __init__(self, node: Node) -> None:
        self.invoker = Invoker(node)
        self._node = node
        self.context = Context(
            node=self.invoker.name,
            task=self.invoker.name,
            run_id="drive",
            logger=logging.getLogger(f"videoflow.node.{self.invoker.name}"),
        )
        self._kept = Kept(self.invoker.name, node.max_state_bytes, {}) if is_stateful(node) else None
        self.context.keyed_state = None if self._kept is None else self._kept.state
        self._unsettled = 0

    def attempt(self, call: Callable[[], T]) -> T:
        """Calls user code; what it changed of its state is kept only when it returns."""
        kept = self._kept
        if kept is None:
            return call()
        kept.state.begin()
        result = call()
        kept.keep()
        if has_snapshots(self._node):
            kept.take_snapshot(self.invoker.snapshot(self.context))
        return result

    def produced(self) -> list[Emitted]:
        """Returns what a producer makes on all ports."""
        items = self.invoker.items(None, self.context)
        return [made for item in items for made in self.invoker.outputs_of(item)]

    def called(self, value: Value, seconds: float) -> Sequence[Emitted]:
        """Returns what one input makes on all ports."""
        parts = self._parts(value)
        times = (getattr(part, "time_seconds", None) for part in parts)
        self.context.time_seconds = next((time for time in times if time is not None), seconds)
        sources = (getattr(part, "source", None) for part in parts)
        self.context.source = next((source for source in sources if isinstance(source, str)), "")
        made: Sequence[Emitted] = ()
        if isinstance(self._node, Consumer):
            self.attempt(lambda: self.invoker.consume(parts, self.context))
        else:
            made = self.attempt(lambda: self.invoker.call(parts, self.context))
        self._unsettled += 1
        self.settle(final=False)
        return made

    def controlled(self, number: int, markers: Mapping[int, Sequence[Any]]) -> None:
        """Gives the node the markers that come before an input."""
        for place, marker in enumerate(markers.get(number, ())):
            self.context.ordinal, self.context.input_id = number, f"{number} marker {place}"
            given = wire.freeze(_own(marker))
            self.attempt(partial(self.invoker.on_control, given, self.context))

    def settle(self, *, final: bool) -> None:
        """Asks for a checkpoint, and checks that the counts add up."""
        if not hasattr(self._node, "checkpoint"):
            return
        self.context.draining = final
        durable = self.attempt(lambda: self.invoker.checkpoint(self.context)) or 0
        if durable > self._unsettled:
            raise self._miscounted(f"said that {durable} inputs are durable, of {self._unsettled} unsettled")
        self._unsettled -= durable
        if self._unsettled > self._node.holds_items:
            raise self._miscounted(
                f"keeps {self._unsettled} inputs, and holds_items = {self._node.holds_items}"
            )
        if final and self._unsettled:
            raise self._miscounted(f"left {self._unsettled} inputs unsettled at the end (ctx.draining)")

    def _miscounted(self, what: str) -> EmissionRefused:
        return EmissionRefused(
            f"node {self.invoker.name}: checkpoint {what}",
            remedy="return how many of the oldest unsettled inputs are durable now",
        )

    def _parts(self, value: Value) -> tuple[Any, ...]:
        several = isinstance(value, tuple) and self._takes_several(value)
        parts = value if several else (value,)
        return tuple(wire.freeze(_own(part)) for part in parts)

    def _takes_several(self, value: tuple[Any, ...]) -> bool:
        inputs = self._node._videoflow_record.inputs
        if inputs is not None:
            return len(inputs) > 1
        main: Any = getattr(self._node, "consume" if isinstance(self._node, Consumer) else "process")
        shape = shape_of(main)
        return shape.least > 1 or (shape.most != 1 and len(value) > 1)


def _markers(node: Node, markers: Mapping[int, Sequence[Any]], inputs: int) -> Mapping[int, Sequence[Any]]:
    if markers and (not hasattr(node, "on_control") or isinstance(node, Producer)):
        raise UsageError(f"{node!r} takes no markers", remedy="write on_control(self, marker) on its class")
    if not markers.keys() <= set(range(inputs + 1)):
        raise UsageError(
            f"markers are to come before inputs {sorted(markers)}, and there are {inputs}",
            remedy="number inputs from 0; what comes after the last has their number",
        )
    return markers


def _own(value: Value) -> Value:
    """Returns a copy of what freezing would make read-only in the hands of the caller."""
    return copy.deepcopy(value) if isinstance(value, np.ndarray | list | tuple | dict) else value


def _port(node: Node, port: str) -> str:
    if not node.ports:
        return ""
    if port in node.ports:
        return port
    if port == "out":
        return node.ports[0]
    raise UsageError(f"{node!r} has no port {port!r}", remedy=f"ports are {', '.join(node.ports)}")
