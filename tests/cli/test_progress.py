"""What a person sees while a run goes on: rates, time left, tables drawn over, and what workers print."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from videoflow.cli._logs import Logs
from videoflow.cli._progress import LiveProgress, NoProgress, PlainProgress, Progress, progress_on
from videoflow.cli._rates import Rates
from videoflow.graph.running import NodeStatus, RunPhase, RunStatus
from videoflow.graph.spec import CodeKind, FlowSpec, NodeKind, NodeSpec

NODES = {"camera": NodeKind.PRODUCER, "detect": NodeKind.PROCESSOR, "video": NodeKind.CONSUMER}
SPEC = FlowSpec(
    flow_id="people",
    folder="/",
    nodes=tuple(
        NodeSpec(name=name, kind=kind, code=CodeKind.MODULE, module="m", qualname="N")
        for name, kind in NODES.items()
    ),
    edges=(),
)


@pytest.fixture(autouse=True)
def _a_terminal_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever terminal runs the tests, these are of one that moves its cursor and knows colours."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


def look(seconds: float, items: int, **more: int) -> RunStatus:
    camera = NodeStatus("camera", items, expected=795)
    detect = NodeStatus("detect", items, None, 0.0371, 8, **more)
    return RunStatus(
        "r", RunPhase.RUNNING, seconds, (camera, detect, NodeStatus("video", items, None, None, 0))
    )


def terminal(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, height=40, force_terminal=True, soft_wrap=True), out


def last_screen(text: str) -> list[str]:
    """The lines that were drawn last, without the codes that draw them."""
    drawn = text[text.rindex("people on local") - 40 :] if "people on local" in text else text
    plain = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", drawn)
    return [line.rstrip() for line in plain.replace("\r", "").splitlines()]


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 500)), min_size=2, max_size=40))
def test_a_rate_is_that_of_the_last_seconds(steps: list[tuple[int, int]]) -> None:
    rates = Rates()
    seconds, items = 0.0, 1
    looks = [(seconds, items)]
    rates.add(look(seconds, items))
    for quarters, more in steps:
        seconds, items = seconds + quarters / 4, items + more
        looks.append((seconds, items))
        rates.add(look(seconds, items))
    before = max((s for s, _ in looks if s <= seconds - 5), default=0.0)
    since = next(count for s, count in looks if s == before)
    assert rates.rate("camera") == pytest.approx((items - since) / (seconds - before))


def test_no_rate_and_no_end_are_named_before_they_are_known() -> None:
    rates = Rates()
    assert rates.rate("camera") is None
    rates.add(look(0, 10))
    assert rates.rate("camera") is None
    rates.add(look(2, 30))
    assert rates.rate("camera") == 10
    assert rates.seconds_left(NodeStatus("camera", 30, expected=795)) == 76.5
    assert rates.seconds_left(NodeStatus("camera", 800, expected=795)) == 0
    assert rates.seconds_left(NodeStatus("camera", 30)) is None
    assert rates.rate("nobody") is None


@pytest.mark.parametrize("phase", [RunPhase.RUNNING, RunPhase.STOPPING])
def test_no_end_is_foretold_of_a_source_that_is_to_stop(phase: RunPhase) -> None:
    (live, drawn), plain = terminal(80), io.StringIO()
    displays: list[Progress] = [LiveProgress(live, SPEC, "local"), PlainProgress(Console(file=plain), SPEC)]
    for progress in displays:
        for second in range(1, 8):
            progress.show(replace(look(second, 30 * second), state=phase))
        progress.close()
    for text in (drawn.getvalue(), plain.getvalue()):
        assert ("left" in text) == (phase is RunPhase.RUNNING)
        assert ("stopping" in text) == (phase is RunPhase.STOPPING)


def test_a_run_without_a_first_item_says_so() -> None:
    console, out = terminal(80)
    progress = LiveProgress(console, SPEC, "local")
    progress.show(look(1, 0))
    assert "running, no item yet" in out.getvalue()
    progress.show(look(2, 1))
    progress.close()
    assert "no item yet" not in "\n".join(last_screen(out.getvalue()))


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_tables_keep_to_the_terminal(width: int) -> None:
    console, out = terminal(width)
    progress = LiveProgress(console, SPEC, "local")
    for second in range(1, 8):
        progress.show(look(second, 30 * second, restarts=1))
    lines = last_screen(out.getvalue())
    progress.close()
    text = "\n".join(lines)
    assert all(len(line) <= width for line in lines)
    assert re.search(r"people on local  running  7\.0 s", text)
    assert re.search(r"camera +210 +795 +━+─+ +30\.0/s +19\.5 s", text)
    assert re.search(r"detect +210 +30\.0/s +37\.1 ms +8 +1", text)
    assert "dropped" not in text, "a column of zeros says nothing"


def test_the_terminal_is_left_as_it_was() -> None:
    console, out = terminal(80)
    progress = LiveProgress(console, SPEC, "local")
    progress.show(look(1, 30))
    progress.note("stopping")
    progress.close()
    progress.close()
    assert out.getvalue().count("\x1b[?25h") >= 1, "the cursor is back"
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")
    assert "stopping" in out.getvalue()


def test_plain_lines_come_slowly_and_without_control_characters() -> None:
    out = io.StringIO()
    progress = PlainProgress(Console(file=out, soft_wrap=True), SPEC)
    for quarter in range(4 * 180):
        progress.show(look(quarter / 4, quarter, drops=2, errors=1))
    lines = out.getvalue().splitlines()
    assert 12 <= len(lines) <= 20, "every five seconds at first, every half minute later"
    assert "detect 20 (37.1 ms, 8 waiting, 2 dropped, 1 error)" in lines[0]
    assert "camera 20 of 795 (4.0/s, 3:14 left)" in lines[0]
    assert out.getvalue().replace("\n", "").isprintable()


def test_the_display_suits_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    live = progress_on(terminal(80)[0], SPEC, "local", quiet=False)
    live.close()
    assert isinstance(live, LiveProgress)
    piped = Console(file=io.StringIO())
    assert isinstance(progress_on(piped, SPEC, "local", quiet=False), PlainProgress)
    assert isinstance(progress_on(piped, SPEC, "local", quiet=True), NoProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress_on(terminal(80)[0], SPEC, "local", quiet=False), PlainProgress)


def test_what_workers_print_is_read_on_from_where_the_last_look_ended(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    assert list(logs.new_lines()) == []
    log = tmp_path / "say-0.log"
    log.write_bytes(b"say  a\nhal")
    assert list(logs.new_lines()) == ["say  a"]
    with log.open("ab") as file:
        file.write("f é\n10 %\r\x1b[31mred\x1b[0m\r\n".encode() + b"\xff last")
    assert list(logs.new_lines()) == ["say-0: half é", "say-0: red"]
    assert list(logs.new_lines()) == []
    assert list(logs.new_lines(rest=True)) == ["say-0: \ufffd last"]


def test_a_flood_of_prints_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    (tmp_path / "chatty-1.log").write_text("".join(f"line {n}\n" for n in range(1000)))
    lines = list(Logs(tmp_path).new_lines())
    assert lines[0] == "chatty-1: line 0"
    assert lines[-1] == "chatty-1: and 980 more lines in chatty-1.log"
    assert len(lines) == 21


def test_a_trace_is_shown_once_however_many_workers_print_it_how_often(tmp_path: Path) -> None:
    trace = ["Traceback (most recent call last):", '  File "flow.py", line 3, in open', "OSError: gone"]
    (tmp_path / "x-0.log").write_text("\n".join([*trace, "between", *trace, "after", ""]))
    (tmp_path / "y-0.log").write_text(
        "\n".join([*trace, *trace[:-1], "KeyError: 'x'", trace[0], trace[1], ""])
    )
    again = "OSError: gone (with the same trace as before)"
    assert list(Logs(tmp_path).new_lines()) == [
        *(f"x-0: {line}" for line in [*trace, "between", again, "after"]),
        *(f"y-0: {line}" for line in [again, *trace[:-1], "KeyError: 'x'", *trace[:-1]]),
    ]
