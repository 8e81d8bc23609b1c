"""Folds text to a number of terminal columns, between words only, so that a path can still be copied."""

import re

from rich.cells import cell_len


def fold(text: str, width: int) -> list[str]:
    """Returns the lines of a text; a word wider than `width` columns has a line of its own.

    >>> fold("up to the end", 9), fold("", 9)
    (['up to the', 'end'], [''])
    """
    lines: list[str] = []
    line, columns = "", 0
    for part in re.findall(r"\s+|\S+", text):
        size = cell_len(part)
        if part.isspace() and not line:
            continue
        if not part.isspace() and line and columns + size > width:
            lines.append(line.rstrip())
            line, columns = "", 0
        line += part
        columns += size
    return [*lines, line.rstrip()] if line or not lines else lines
