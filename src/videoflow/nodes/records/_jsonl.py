"""`JsonlSink`: one line of JSON for each input, each exactly once.

Used as the sink of counts and events. It refuses a place that cannot be written, before the run starts.
"""

from pathlib import Path
from typing import Any, Unpack

from videoflow import faults
from videoflow.errors import FlowError
from videoflow.graph import Consumer, Context, Disposition, NodeOptions, flow_folder
from videoflow.nodes.records._appended import AppendedFile
from videoflow.nodes.records._lines import Value, line_of

_DURABLE = "durable"
_LINES_HELD = 32


class JsonlSink(Consumer):
    """Writes one line of JSON for each input.

    A line is `{"source", "index", "time_seconds", …the fields of the value}` with sorted keys and shortest
    floats. `Detections` have `image_size` and `detections`, a list of boxes; a `Frame` has no pixels; a value
    without fields stands in `value`; NaN and infinity are null. A line holds no run id and no time of
    writing, so that the same input gives the same bytes in every engine.

    The first line of a run replaces the file of an earlier one. Lines can be read as they come; each is there
    exactly once, whatever process was killed meanwhile. When a run ends without having drained, lines that
    it does not count as delivered are taken back.

    Args:
        path: The file, relative to the folder where the flow was built; the folders above it are made.

    Example:
        >>> from videoflow.testing import drive
        >>> drive(JsonlSink("counts.jsonl"), [{"up": 1}, {"up": 2}])
        []
        >>> print(Path("counts.jsonl").read_text().splitlines()[0])
        {"index":0,"source":"","time_seconds":0.0,"up":1}
    """

    stateful = True
    holds_items = _LINES_HELD

    def __init__(self, path: str | Path, **options: Unpack[NodeOptions]) -> None:
        super().__init__(**options)
        self._given = str(path)
        self._path = flow_folder() / path
        self._file: AppendedFile | None = None
        self._durable = {"bytes": 0, "lines": 0}
        self._lines = 0
        self._drained = False

    def open(self, ctx: Context) -> None:
        """Opens the file, and cuts it back to what was committed.

        Raises:
            OutputUnwritable: The file cannot be written, or is shorter than it was.
        """
        self._durable = ctx.state.get(_DURABLE, {"bytes": 0, "lines": 0})
        self._lines = self._durable["lines"]
        self._drained = False
        self._file = AppendedFile(self._path, self._durable["bytes"])

    def consume(self, value: Value, ctx: Context) -> None:
        """Writes one line.

        Raises:
            ValueError: The value holds an array that is too large for a line.
            OutputUnwritable: The line could not be written.
        """
        line = line_of(value, source=ctx.source, index=ctx.ordinal, time_seconds=ctx.time_seconds)
        self._opened().append(line)
        faults.reach("effect.done")
        self._lines += 1

    def checkpoint(self, ctx: Context) -> int | None:
        """Commits the length of the file, every 32 lines and at the end."""
        fresh = self._lines - self._durable["lines"]
        self._drained = ctx.draining
        if not fresh or (fresh < _LINES_HELD and not ctx.draining):
            return None
        self._durable = {"bytes": self._opened().length, "lines": self._lines}
        ctx.state[_DURABLE] = self._durable
        return fresh

    def close(self) -> None:
        """Closes the file.

        Raises:
            OutputUnwritable: Lines that do not count could not be taken back.
        """
        if self._file is None:
            return
        if self._drained:
            self._file.finish()
        else:
            self._file.abandon(self._durable["bytes"])

    def classify(self, error: Exception) -> Disposition | None:
        """A value without a line is put aside; a file that cannot be written ends the run."""
        if isinstance(error, FlowError):
            return "fatal"
        return "poison" if isinstance(error, ValueError | TypeError) else None

    def outputs(self) -> tuple[str, ...]:
        """Returns the file, as given."""
        return (self._given,)

    def summary(self) -> dict[str, Any]:
        """Returns how much was written."""
        return dict(self._durable)

    def _opened(self) -> AppendedFile:
        if self._file is None:
            raise RuntimeError("JsonlSink.consume was called before open")
        return self._file
