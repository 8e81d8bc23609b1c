"""`Collect`: brings values back to whoever ran the flow.

Used in flows whose results are small and wanted in Python. It refuses to keep more than its limit.
"""

from typing import Any, Unpack

from videoflow.errors import NodeFailed
from videoflow.graph import Consumer, Context, Disposition, NodeOptions
from videoflow.nodes._arguments import require

_COUNT = "count"
_MOST_BYTES = 1 << 30


class Collect(Consumer):
    """Keeps every input, to be found in `report.values` under the node's name, in order.

    With several inputs a row is a list of them. The rows are held in the state of the run; it is for results
    that fit into memory, not for frames of a whole video.

    Args:
        limit: The most rows; one more ends the run, which then names this node.

    Raises:
        ArgumentInvalid: A limit below 1.

    Example:
        >>> import videoflow as vf
        >>> from videoflow.nodes import SyntheticScene
        >>> @vf.processor
        ... def width(frame):
        ...     return frame.width
        >>> scene = SyntheticScene(frames=3, size=(64, 48))
        >>> flow = vf.Flow([Collect(name="widths")(width(scene))])
        >>> flow.run().values
        {'widths': [64, 64, 64]}
    """

    stateful = True
    collects = True
    max_state_bytes = _MOST_BYTES

    def __init__(self, limit: int = 10_000, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        require(limit >= 1, "Collect", "limit", limit, "at least 1")
        self._limit = limit

    def consume(self, *values: Any, ctx: Context) -> None:
        """Keeps a row.

        Raises:
            NodeFailed: It is one too many.
        """
        count: int = ctx.state.get(_COUNT, 0)
        if count >= self._limit:
            raise NodeFailed(
                f"node {ctx.node} has collected {count} rows and was given one more",
                node=ctx.node,
                cause=f"its limit is {self._limit}",
                remedy="raise limit=, collect less, or write to a file with JsonlSink",
            )
        ctx.state[f"row/{count:08d}"] = values[0] if len(values) == 1 else list(values)
        ctx.state[_COUNT] = count + 1

    def classify(self, error: Exception) -> Disposition | None:
        """A full collection ends the run."""
        return "fatal" if isinstance(error, NodeFailed) else None
