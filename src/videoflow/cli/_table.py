"""Tables in the one look of this command line: a bold head, two spaces between columns, no frame.

Used by every command that lists something. It refuses to cut text: where a terminal is too narrow, the
widest column of words is folded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from videoflow.cli._fold import fold

_GAP = "  "
_LEAST_FOLDED = 12

Cell = str | tuple[str, str]
"""Text, or text and its style."""


@dataclass
class Table:
    """Rows under heads.

    Attributes:
        heads: Column heads; an empty one has no head, and a line break divides a long one.
        numbers: The heads of columns that stand on the right, and in which a 0 is dim.
        rows: Cells by column.
        notes: Number of a row → sentences that stand below it.
    """

    heads: Sequence[str]
    numbers: Sequence[str] = ()
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: dict[int, Sequence[str]] = field(default_factory=dict)

    def add(self, *cells: Cell, notes: Sequence[str] = ()) -> None:
        """Adds a row, and sentences that stand below it."""
        if notes:
            self.notes[len(self.rows)] = notes
        self.rows.append(cells)

    def without_zeros(self, *heads: str) -> "Table":
        """Returns the table without those of the named columns that hold only zeros and nothing."""
        empty = {
            index
            for index, head in enumerate(self.heads)
            if head in heads and all(_text(row[index]) in ("", "0") for row in self.rows)
        }
        kept = [index for index in range(len(self.heads)) if index not in empty]
        return Table(
            [self.heads[index] for index in kept],
            self.numbers,
            [[row[index] for index in kept] for row in self.rows],
            self.notes,
        )

    def lines(self, width: int | None) -> Iterator[Text]:
        """Yields the lines; folded to `width` columns, or as long as they are for None."""
        widths = [
            max(map(cell_len, [*head.split("\n"), *(_text(row[index]) for row in self.rows)]))
            for index, head in enumerate(self.heads)
        ]
        if width is not None:
            self._fold(widths, width)
        if any(self.heads):
            yield from self._head(widths)
        for number, row in enumerate(self.rows):
            yield from self._folded(row, widths)
            for note in self.notes.get(number, ()):
                yield from indented(note, width, style="dim")

    def _head(self, widths: Sequence[int]) -> Iterator[Text]:
        """Yields the heads, those of two words one above the other, at the bottom of the head."""
        parts = [head.split("\n") for head in self.heads]
        height = max(map(len, parts))
        for number in range(height):
            shown = [["", *part][max(0, number - height + len(part) + 1)] for part in parts]
            yield self._line([(text, "bold") for text in shown], widths)

    def _fold(self, widths: list[int], width: int) -> None:
        """Narrows the widest columns of words until the whole fits, as far as it can."""
        words = [index for index, head in enumerate(self.heads) if head not in self.numbers]
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
        while over > 0 and words:
            widest = max(words, key=lambda index: widths[index])
            if widths[widest] <= _LEAST_FOLDED:
                return
            widths[widest] -= 1
            over -= 1

    def _folded(self, row: Sequence[Cell], widths: Sequence[int]) -> Iterator[Text]:
        parts = [
            [_text(cell)] if cell_len(_text(cell)) <= widths[index] else fold(_text(cell), widths[index])
            for index, cell in enumerate(row)
        ]
        for number in range(max(map(len, parts))):
            cells = [
                (parts[index][number] if number < len(parts[index]) else "", self._style(index, cell))
                for index, cell in enumerate(row)
            ]
            yield self._line(cells, widths)

    def _style(self, index: int, cell: Cell) -> str:
        """Returns the style of a cell; nothing stands back behind something."""
        if self.heads[index] in self.numbers and _text(cell) == "0":
            return "dim"
        return "" if isinstance(cell, str) else cell[1]

    def _line(self, cells: Sequence[tuple[str, str]], widths: Sequence[int]) -> Text:
        line = Text()
        for index, (text, style) in enumerate(cells):
            space = " " * (widths[index] - cell_len(text))
            right = self.heads[index] in self.numbers
            line.append(space if right else "").append(text, style or None).append("" if right else space)
            line.append(_GAP)
        line.rstrip()
        return line


def indented(text: str, width: int | None, *, style: str = "") -> Iterator[Text]:
    """Yields a sentence two columns in, folded to `width` columns, or as one line for None."""
    inner = [text] if width is None else fold(text, width - len(_GAP))
    for part in inner:
        yield Text(_GAP + part, style=style)


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]
