"""What is printed: tables, error blocks, units; on a terminal and where nobody looks at a width."""

import io
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from videoflow.cli._console import columns, show_block
from videoflow.cli._table import Table
from videoflow.cli._units import parse_bytes, parse_duration, show_bytes, show_seconds
from videoflow.errors import ArgumentInvalid, FlowInvalid, NodeFailed, Problem

BLOCK = NodeFailed(
    "node detect, frame 318 of street.mp4 (12.720 s), attempt 4 of 4",
    node="detect",
    cause="ValueError: expected an image of (H, W, 3), got (300, 300)",
    where="flow.py:31 in process",
    effect="put aside as dead letter 318-7f3a; 794 of 795 frames completed; verdict incomplete",
    remedy="videoflow dead-letters show 318-7f3a; mend the node and run again",
).block()


def terminal(width: int, *, colour: bool = False) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    made = Console(file=out, width=width, force_terminal=True, color_system=system, soft_wrap=True)
    return made, out


def piped() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, soft_wrap=True), out


def test_a_block_has_the_form_of_the_authoring_page() -> None:
    assert BLOCK == (
        "error VF-NODE-FAILED  node detect, frame 318 of street.mp4 (12.720 s), attempt 4 of 4\n"
        "  cause    ValueError: expected an image of (H, W, 3), got (300, 300)        flow.py:31 in process\n"
        "  effect   put aside as dead letter 318-7f3a; 794 of 795 frames completed; verdict incomplete\n"
        "  remedy   videoflow dead-letters show 318-7f3a; mend the node and run again"
    )


def test_a_block_of_several_problems_has_a_line_for_each() -> None:
    block = FlowInvalid(
        [Problem("a", "it is wired to itself", "cut it"), Problem("b", "twice", "rename")]
    ).block()
    assert block.splitlines()[:3] == [
        "error VF-FLOW-INVALID  the flow has 2 problems",
        "  cause    a: it is wired to itself (cut it)",
        "           b: twice (rename)",
    ]


def test_a_piped_block_is_the_very_text_of_the_error() -> None:
    console, out = piped()
    show_block(console, BLOCK)
    assert out.getvalue() == BLOCK + "\n"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_block_on_a_terminal_is_folded_under_where_its_text_starts(width: int) -> None:
    console, out = terminal(width)
    show_block(console, BLOCK)
    first, *rest = (line.rstrip() for line in out.getvalue().splitlines())
    assert all(len(line) <= width for line in rest)
    assert all(line.startswith(("  cause    ", "  effect   ", "  remedy   ", " " * 11)) for line in rest)
    assert " ".join(BLOCK.split()) == " ".join(f"{first} {' '.join(rest)}".split())


def test_colour_is_only_where_there_is_a_terminal() -> None:
    console, out = terminal(80, colour=True)
    show_block(console, BLOCK)
    assert "\x1b[" in out.getvalue()
    console, out = piped()
    show_block(console, BLOCK)
    assert "\x1b" not in out.getvalue()


def test_numbers_stand_on_the_right_and_heads_at_the_bottom() -> None:
    table = Table(("node", "dead\nletters", "p50"), numbers=("dead\nletters", "p50"))
    table.add("detect", "1", "37.1")
    table.add("é→漢字", "120", "2")
    assert [line.plain for line in table.lines(None)] == [
        "           dead",
        "node    letters   p50",
        "detect        1  37.1",
        "é→漢字      120     2",
    ]


def test_only_columns_of_nothing_but_zeros_are_left_out() -> None:
    table = Table(("edge", "delivered", "dropped", "expired"), numbers=("delivered", "dropped", "expired"))
    table.add("a → b", "0", "0", "0")
    table.add("b → c", "0", "3", "")
    shown = table.without_zeros("dropped", "expired")
    assert shown.heads == ["edge", "delivered", "dropped"]
    assert [line.plain for line in shown.lines(None)][1:] == [
        "a → b          0        0",
        "b → c          0        3",
    ]


WORDS = st.text("aZ9é漢字→", min_size=1, max_size=12)
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)


@given(
    st.lists(st.tuples(WORDS, st.integers(0, 10**6), SENTENCES), min_size=1, max_size=4), st.integers(50, 120)
)
def test_a_table_never_loses_a_word_and_keeps_to_the_width(
    rows: list[tuple[str, int, str]], width: int
) -> None:
    table = Table(("name", "count", "detail"), numbers=("count",))
    for name, count, detail in rows:
        table.add(name, str(count), detail, notes=[detail])
    lines = [line.plain for line in table.lines(width)]
    shown = sorted(" ".join(lines).split())
    wanted = [w for name, count, detail in rows for w in (name, str(count), *detail.split(), *detail.split())]
    assert shown == sorted([*wanted, "name", "count", "detail"])
    assert all(cell_len(line) <= width for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_long_path_is_not_cut_into_pieces() -> None:
    table = Table(("", ""))
    path = "/somewhere" * 12
    table.add("report", path)
    assert any(path in line.plain for line in table.lines(60))


def test_no_width_counts_where_nobody_looks() -> None:
    assert columns(piped()[0]) is None
    assert columns(terminal(90)[0]) == 90


@pytest.mark.parametrize(
    ("text", "size"),
    [("2 GiB", 2 << 30), ("1.5gib", 3 << 29), ("500 MB", 500_000_000), ("64 KiB", 65536), ("17", 17)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "2 GiBs", "-1", "1 2", "GiB", "1e9", "nan"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(ArgumentInvalid) as caught:
        parse_bytes(text)
    assert repr(text) in caught.value.message
    assert caught.value.exit_status == 2


def test_durations_are_read_as_people_write_them() -> None:
    assert [parse_duration(text) for text in ("90", "10 min", "2h", "7 d", "0.5 s")] == [
        90,
        600,
        7200,
        604800,
        0.5,
    ]
    with pytest.raises(ArgumentInvalid):
        parse_duration("soon")


@given(st.integers(0, 1 << 50))
def test_a_shown_size_is_the_size_to_a_twentieth(size: int) -> None:
    assert parse_bytes(show_bytes(size)) == pytest.approx(size, rel=0.06)


def test_seconds_are_shown_in_words_of_their_length() -> None:
    assert [show_seconds(s) for s in (0.04, 59.94, 60, 3599.4, 3600)] == [
        "0.0 s",
        "59.9 s",
        "1:00",
        "59:59",
        "1:00:00",
    ]
