"""What the workers of a run print, read from its log files while it goes on.

Used by `run-local`, so that a print in a node is seen wherever the node runs. It refuses to flood a terminal:
of many lines at once it shows the first, and says where the rest is; a trace is shown once.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_MOST_LINES = 20
_TRACE = "Traceback (most recent call last):"
_MOST_BYTES = 1 << 20
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|.)?|[\x00-\x08\x0b-\x1f\x7f]")


class Logs:
    """The log files of one run, read on from where the last look ended.

    Args:
        folder: Where the files `<task>-<slot>.log` are, or will be.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._traces: set[tuple[str, ...]] = set()

    def new_lines(self, *, rest: bool = False) -> Iterator[str]:
        """Yields the whole lines that were added, behind the name of its worker where they do not begin so.

        Args:
            rest: Take a last line without its end too, since no more will come.
        """
        for path in sorted(self._folder.glob("*.log")):
            lines = self._told_once(self._added(path, rest=rest))
            task = path.stem.rpartition("-")[0]
            for line in lines[:_MOST_LINES]:
                yield line if line.startswith(task) else f"{path.stem}: {line}"
            if len(lines) > _MOST_LINES:
                yield f"{path.stem}: and {len(lines) - _MOST_LINES} more lines in {path.name}"

    def _told_once(self, lines: list[str]) -> list[str]:
        """Returns the lines with one in place of each trace that was printed before, by any worker."""
        shown: list[str] = []
        while _TRACE in lines:
            start = lines.index(_TRACE)
            end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith(" ")), None)
            if end is None:
                break
            trace = tuple(lines[start : end + 1])
            shown += lines[:start]
            shown += [f"{lines[end]} (with the same trace as before)"] if trace in self._traces else trace
            self._traces.add(trace)
            lines = lines[end + 1 :]
        return shown + lines

    def _added(self, path: Path, *, rest: bool) -> list[str]:
        start = self._read.get(path, 0)
        try:
            with path.open("rb") as file:
                file.seek(start)
                data = file.read(_MOST_BYTES)
        except OSError:
            return []
        if not rest and len(data) < _MOST_BYTES:
            data = data[: data.rfind(b"\n") + 1]
        self._read[path] = start + len(data)
        text = data.decode("utf-8", errors="replace")
        return [_seen(line) for line in text.removesuffix("\n").split("\n")] if text else []


def _seen(line: str) -> str:
    """Returns what a terminal would show of a line in the end, without colours and other codes."""
    return _ESCAPES.sub("", line.rstrip("\r").rpartition("\r")[2])
