"""Standard output and standard error, whose readers may be gone before the run has ended.

Used by the boundary, around every command. What a closed pipe or terminal does not take is dropped, and the
command goes on to its own end and exit status. It refuses to drop results in silence: an output that exists
and takes nothing, such as a full disk, is said.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, TypeVar, cast

from videoflow.errors import OutputUnwritable

T = TypeVar("T")


class _Lenient:
    """A text stream that outlives its reader; all but writing is the stream's own."""

    def __init__(self, stream: TextIO, *, results: bool) -> None:
        self._stream = stream
        self._results = results

    def write(self, text: str) -> int:
        """Writes, or drops what has no reader."""
        return self._attempt(lambda: self._stream.write(text), len(text))

    def flush(self) -> None:
        """Hands over what was written."""
        self._attempt(self._stream.flush, None)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def _attempt(self, work: Callable[[], T], dropped: T) -> T:
        try:
            return work()
        except OSError as error:
            self._silence()
            if not self._results or isinstance(error, BrokenPipeError):
                return dropped
            raise OutputUnwritable(
                "the results cannot be written to standard output",
                cause=error.strerror or str(error),
                effect="they are not all there",
                remedy="free the place, or send them elsewhere",
            ) from error

    def _silence(self) -> None:
        """Lets everything from now on, and what is still held back, go nowhere."""
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def lenient_streams() -> Iterator[None]:
    """Makes the standard streams outlive their readers.

    Results that cannot be written although somebody is there to read them raise `OutputUnwritable` where they
    are written or flushed.
    """
    output, errors = sys.stdout, sys.stderr  # None where the process was started without
    if output is not None:
        sys.stdout = cast(TextIO, _Lenient(output, results=True))
    if errors is not None:
        sys.stderr = cast(TextIO, _Lenient(errors, results=False))
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OutputUnwritable):  # said already, or an error that came before is
                    stream.flush()
        sys.stdout, sys.stderr = output, errors
