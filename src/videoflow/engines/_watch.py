"""Looking at values while a run goes on: one more consumer, whose items the caller takes out.

Used by the threads engine for `Flow.watch`. It holds few items, so that who looks slowly slows the flow and
loses nothing. It refuses nothing: what may be watched was judged when the flow was compiled.
"""

import queue
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from videoflow.graph import Consumer, Context
from videoflow.graph.spec import CodeKind, EdgeSpec, FlowSpec, NodeKind, NodeSpec, OptionsSpec, PortRef

WATCH_NODE = "watch"
_ROOM = 4
_LOOK_SECONDS = 0.2
_END: tuple[Any, ...] = ("the end",)


class WatchSink(Consumer):
    """Hands what it consumes to the thread that watches."""

    def __init__(self) -> None:
        super().__init__()
        self._items: queue.Queue[tuple[Any, ...]] = queue.Queue(_ROOM)
        self._left = False

    def consume(self, *inputs: object, ctx: Context) -> None:
        """Waits until there is room, unless nobody looks any more."""
        while not self._left:
            try:
                self._items.put(inputs, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def close(self) -> None:
        """Says that nothing more comes."""
        while not self._left:
            try:
                self._items.put(_END, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def leave(self) -> None:
        """Lets everything pass from now on."""
        self._left = True

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yields what was consumed, until the end."""
        while (item := self._items.get()) is not _END:
            yield item


def with_watch(spec: FlowSpec, watched: Sequence[PortRef]) -> FlowSpec:
    """Returns a flow with the watching consumer behind the watched ports."""
    node = NodeSpec(
        name=WATCH_NODE,
        kind=NodeKind.CONSUMER,
        code=CodeKind.MODULE,
        module=__name__,
        qualname=WatchSink.__qualname__,
        options=OptionsSpec(missing="none", missing_chosen=True, fuse=False),
    )
    edges = tuple(
        EdgeSpec(child=WATCH_NODE, input=number, parents=(port,)) for number, port in enumerate(watched)
    )
    return msgspec.structs.replace(spec, nodes=(*spec.nodes, node), edges=(*spec.edges, *edges))
