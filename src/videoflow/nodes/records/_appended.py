"""A file that is appended to, and cut back to what is durable.

Used by sinks that write records one after the other. What was appended is visible at once; what counts is
the length that was committed. It refuses to go on with a file that is shorter than that.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from videoflow.errors import OutputUnwritable

T = TypeVar("T")


class AppendedFile:
    """A file that grows.

    Attributes:
        path: The file.
        length: Bytes in it.

    Args:
        path: The file; the folders above it are made.
        durable: Bytes that were committed; anything behind them is cut off.

    Raises:
        OutputUnwritable: The place cannot be written, or the file is shorter than it was.
    """

    def __init__(self, path: Path, durable: int) -> None:
        self.path = path
        self.length = durable
        self._attempt(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        self._file = self._attempt(lambda: path.open("ab", buffering=0))
        found = self._attempt(self._file.tell)
        if found < durable:
            self._file.close()
            raise OutputUnwritable(
                f"{path}: the file cannot be continued",
                cause=f"it has {found} bytes of {durable}",
                effect="what was written is lost",
                remedy="run anew, from the beginning",
            )
        self.cut_back(durable)

    def append(self, data: bytes) -> None:
        """Appends bytes.

        Raises:
            OutputUnwritable: They could not be written.
        """
        rest = data
        while rest:
            rest = rest[self._written(rest) :]
        self.length += len(data)

    def cut_back(self, length: int) -> None:
        """Leaves the first bytes.

        Args:
            length: How many.

        Raises:
            OutputUnwritable: The file cannot be changed.
        """
        self._attempt(lambda: self._file.truncate(length))
        self.length = length

    def close(self) -> None:
        """Closes the file; doing it twice is doing it once."""
        self._file.close()

    def _written(self, data: bytes) -> int:
        return self._attempt(lambda: self._file.write(data)) or 0

    def _attempt(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            raise OutputUnwritable(
                f"{self.path}: the file cannot be written",
                cause=error.strerror or str(error),
                remedy="make room, or choose a folder that you may write to, and run again",
            ) from error
