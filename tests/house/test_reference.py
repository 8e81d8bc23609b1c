"""The reference page for authors of nodes names every option and every member of the context."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import videoflow as vf

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "nodes.md"
INNER = {"keyed_state", "ask_stopping", "input_id", "make_array"}  # the worker's own


def rows(heading: str) -> set[str]:
    """The code words in the first cells of the tables of a section."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def context_members() -> set[str]:
    public = {name for name in vars(vf.Context) if not name.startswith("_")}
    return {field.name for field in fields(vf.Context)} | public


@pytest.mark.parametrize(
    ("heading", "named"),
    [
        ("Options", set(vf.NodeOptions.__annotations__)),
        ("Context", {f"ctx.{name}" for name in context_members() - INNER}),
    ],
)
def test_the_page_names_all_and_nothing_else(heading: str, named: set[str]) -> None:
    assert rows(heading) == named
