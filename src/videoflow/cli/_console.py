"""Where text goes and how it looks: standard error for what people watch, standard output for results.

Used by every command. It refuses colour and control characters where the stream is not a terminal, and
never cuts or folds a line there, so that what is piped can be searched.
"""

import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from videoflow.cli._fold import fold

_HANG = 11  # columns before the text of an error block's line
_LEAST_COLUMNS = 50
_ERROR_STYLES = {"error": "bold red", "cause": "", "where": "", "effect": "", "remedy": ""}


def watched() -> Console:
    """Returns the console on standard error, for progress, summaries and errors."""
    return _console(sys.stderr)


def results() -> Console:
    """Returns the console on standard output, for what a command was asked for."""
    return _console(sys.stdout)


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, emoji=False, markup=False, soft_wrap=True)


def columns(console: Console) -> int | None:
    """Returns the width that lines should keep to, or None where nobody looks at a width."""
    return max(console.width, _LEAST_COLUMNS) if console.is_terminal else None


def show_block(console: Console, block: str) -> None:
    """Prints an error block; on a terminal with colour, long lines folded under where their text starts."""
    width = columns(console)
    first, *rest = block.splitlines()
    word, code, message = [*first.split(" ", 2), ""][:3]
    head = Text.assemble((word, "bold red"), " ", (code, "bold"), " ", message)
    console.print(head)
    for line in rest:
        label, text = line[:_HANG], line[_HANG:]
        parts = [text] if width is None else fold(text, width - _HANG)
        for number, part in enumerate(parts or [""]):
            console.print(Text.assemble((label if number == 0 else " " * _HANG, "dim"), part))


def home_short(path: Path) -> str:
    """Returns a path with `~` for the home folder, as a shell takes it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
