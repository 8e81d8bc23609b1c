"""The parts of an explanation: titled sections of sentences and plain tables."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of a table, and sentences below it that say why."""

    cells: tuple[str, ...]
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A titled part: sentences, then a table.

    Attributes:
        title: What it is about.
        sentences: To be shown one below the other.
        columns: Headings, or none where there is no table.
        rows: As many cells as there are columns.
        numbers: Columns to be set flush right.
    """

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    numbers: tuple[str, ...] = ()
