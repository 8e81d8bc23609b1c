"""The edge of the process: whatever a command raises becomes one block and an exit status.

Used by `main` alone. It refuses to hide a defect: an error that is not of the vocabulary is shown with its
trace.
"""

import traceback
from types import TracebackType
from typing import Self

import typer

from videoflow.cli._console import show_block, watched
from videoflow.errors import ContractBroken, FlowError, UsageError, said_by

INTERRUPTED = 130
_MISUSE = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Boundary:
    """Around one command: shows what it raises, and holds the exit status.

    Args:
        debug: Whether the trace of an expected error is shown too.
    """

    def __init__(self, *, debug: bool) -> None:
        self.status = 0
        self._debug = debug

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        match error:
            case None:
                return False
            case SystemExit():
                return False
            case KeyboardInterrupt() | typer.Abort():
                self.status = INTERRUPTED
            case FlowError():
                self._show(error, error, trace=self._debug)
            case _ if isinstance(error, _MISUSE):
                self._show(_misuse(error), error, trace=self._debug)
            case _:
                self._show(_defect(error), error, trace=True)
        return True

    def _show(self, shown: FlowError, raised: BaseException, *, trace: bool) -> None:
        console = watched()
        if trace:
            console.print("".join(traceback.format_exception(raised)).rstrip(), style="dim")
        show_block(console, shown.block())
        self.status = shown.exit_status


def _misuse(error: BaseException) -> UsageError:
    """Returns what typer found wrong with the command line, as an error of ours."""
    format_message = getattr(error, "format_message", error.__str__)
    message = " ".join(str(format_message()).split()).rstrip(".")
    command = getattr(getattr(error, "ctx", None), "command_path", "videoflow")
    return UsageError(message, remedy=f"see `{command} --help`")


def _defect(error: BaseException) -> ContractBroken:
    return ContractBroken(
        "videoflow itself failed",
        cause=said_by(error),
        remedy="this is a defect; please report it with the trace above",
    )
