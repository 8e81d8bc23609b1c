"""Lays out what the planner says of a plan. Used by `videoflow explain`.

The words are `videoflow.planner.explain`'s; it computes nothing, so that it cannot disagree with the engine.
"""

from collections.abc import Iterator

from rich.text import Text

from videoflow.cli._table import Table, indented
from videoflow.planner.explain import Section, explain_text
from videoflow.planner.plan import Plan


def plan_lines(plan: Plan, width: int | None) -> Iterator[Text]:
    """Yields the plan line by line.

    Args:
        plan: What the engine would run.
        width: Columns to keep to, or None for lines as long as they are.
    """
    for number, section in enumerate(explain_text(plan)):
        if number:
            yield Text("")
        yield Text(section.title, style="bold" if number == 0 else "bold underline")
        for sentence in section.sentences:
            yield from indented(sentence, width)
        if section.rows:
            yield from _table(section).lines(width)


def _table(section: Section) -> Table:
    made = Table(section.columns, numbers=section.numbers)
    for row in section.rows:
        name, *rest = row.cells
        made.add((name, "cyan"), *rest, notes=row.why)
    return made.without_zeros(*section.columns[1:])
