"""`Console`: says now and then what passes by.

Used to look at a flow that runs. It refuses nothing, and is no record: lines may come twice after a crash.
"""

import sys
from typing import Unpack

from videoflow.graph import Consumer, Context, NodeOptions
from videoflow.nodes._arguments import require
from videoflow.nodes.records._lines import Value, words_of

_WIDEST = 160


class Console(Consumer):
    """Prints a line on standard error, for each source at most one per interval of event time.

    The first value of a source is printed, then the first one of each interval, and the last one at the end.
    Values without a time are all printed. A restart may print a line again.

    Args:
        every_seconds: Length of the interval, by the times of the values; 0 prints everything.

    Raises:
        ArgumentInvalid: It is below 0.

    Example:
        >>> Console(every_seconds=5, name="say")
        <Console 'say'>
    """

    def __init__(self, every_seconds: float = 1, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        require(every_seconds >= 0, "Console", "every_seconds", every_seconds, "0 or more")
        self._every = every_seconds
        self._printed: dict[str, float] = {}
        self._unprinted: dict[str, str] = {}

    def consume(self, value: Value, ctx: Context) -> None:
        """Prints the value, if its interval has nothing yet."""
        line = _line(value, ctx)
        if self._is_due(ctx):
            self._unprinted.pop(ctx.source, None)
            _print(line)
        else:
            self._unprinted[ctx.source] = line

    def close(self) -> None:
        """Prints the last value of each source, if it was not."""
        for line in self._unprinted.values():
            _print(line)
        self._unprinted.clear()

    def _is_due(self, ctx: Context) -> bool:
        now = ctx.time_seconds
        if now is None:
            return True
        last = self._printed.get(ctx.source)
        # A time that went back begins anew.
        if last is not None and 0 <= now - last < self._every:
            return False
        self._printed[ctx.source] = now
        return True


def _line(value: Value, ctx: Context) -> str:
    words = words_of(value)
    shown = words if len(words) <= _WIDEST else f"{words[: _WIDEST - 1]}…"
    when = "" if ctx.time_seconds is None else f"{ctx.time_seconds:.3f} s"
    return "  ".join(part for part in (ctx.node, ctx.source, when, shown) if part)


def _print(line: str) -> None:
    sys.stderr.write(f"{line}\n")
