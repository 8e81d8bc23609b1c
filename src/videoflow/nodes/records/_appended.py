"""A file that is appended to, and cut back to what is durable.

Used by sinks that write records one after the other. What was appended is visible at once; what counts is
the length that was committed. It refuses to go on with a file that is shorter than that. A file of an
earlier run stays until the first bytes of this one.
"""

from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import TypeVar

from videoflow.errors import OutputUnwritable

T = TypeVar("T")


class AppendedFile:
    """A file that grows.

    Attributes:
        path: The file.
        length: Bytes in it that are of this run.

    Args:
        path: The file; the folders above it are made.
        durable: Bytes that were committed; anything behind them is cut off.

    Raises:
        OutputUnwritable: The place cannot be written, or the file is shorter than it was.
    """

    def __init__(self, path: Path, durable: int) -> None:
        self.path = path
        self.length = durable
        self._file: FileIO | None = None
        self._attempt(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        if durable:
            self._begin()

    def append(self, data: bytes) -> None:
        """Appends bytes.

        Raises:
            OutputUnwritable: They could not be written.
        """
        file = self._file or self._begin()
        rest = data
        while rest:
            rest = rest[self._written(file, rest) :]
        self.length += len(data)

    def finish(self) -> None:
        """Closes the file; there is one now, even if nothing was appended.

        Raises:
            OutputUnwritable: It could not be made.
        """
        (self._file or self._begin()).close()

    def abandon(self, durable: int) -> None:
        """Takes back what does not count, and closes the file; without anything that counts there is none.

        Args:
            durable: Bytes that count.

        Raises:
            OutputUnwritable: The file cannot be changed.
        """
        file = self._file
        if file is None:
            return
        self._attempt(lambda: file.truncate(durable))
        file.close()
        if not durable:
            self._attempt(self.path.unlink)

    def _written(self, file: FileIO, data: bytes) -> int:
        return self._attempt(lambda: file.write(data)) or 0

    def _begin(self) -> FileIO:
        file = self._file = self._attempt(lambda: self.path.open("ab", buffering=0))
        found = self._attempt(file.tell)
        if found < self.length:
            file.close()
            raise OutputUnwritable(
                f"{self.path}: the file cannot be continued",
                cause=f"it has {found} bytes of {self.length}",
                effect="what was written is lost",
                remedy="run anew, from the beginning",
            )
        self._attempt(lambda: file.truncate(self.length))
        return file

    def _attempt(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            raise OutputUnwritable(
                f"{self.path}: the file cannot be written",
                cause=error.strerror or str(error),
                remedy="make room, or choose a folder that you may write to, and run again",
            ) from error
