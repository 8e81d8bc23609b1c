"""Replays of letters whose fan-out is gathered below, and of flows with markers; on both engines."""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

import pytest

import videoflow as vf
from tests.state.nodes import Numbers
from videoflow.engines.replay import replay_flow
from videoflow.graph.report import RunReport
from videoflow.nodes import JsonlSink

COUNT = 5


class Parts(vf.Processor):
    """Three parts of each number."""

    many: Mapping[str, int] = {"out": 4}
    max_item_bytes = 1000

    def process(self, number: int) -> Iterator[int]:
        for turn in range(3):
            yield 10 * number + turn


class Mended(vf.Processor):
    """Cannot do some parts until a file says so."""

    ports = ("out", "events")
    max_item_bytes = 1000

    def __init__(self, mark: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.mark = Path(mark)

    def process(self, part: int) -> Iterator[Any]:
        if part in (11, 30, 32) and not self.mark.exists():
            raise ValueError(f"cannot do {part}")
        yield -part
        if part % 10 == 2:
            yield vf.Out(part, "events")


class Gathers(vf.Processor):
    """Says what it is given of a number, its parts, and what was made of them."""

    max_item_bytes = 4000

    def process(self, number: int | None, parts: list[Any] | None, made: list[Any]) -> list[Any]:
        return [number, parts, made]

    def on_control(self, marker: int, ctx: vf.Context) -> None:
        ctx.state[f"{marker}"] = True

    def flush(self, ctx: vf.Context) -> vf.Out:
        return vf.Out(sorted(ctx.state))


def flow_of(folder: Path) -> vf.Flow:
    numbers = Numbers(COUNT, name="numbers")
    parts = Parts(name="parts")(numbers)
    mended = Mended(str(folder / "mended"), name="work", on_error={"ValueError": "poison"})(parts)
    gathers = Gathers(name="gathers", missing="none")(numbers, parts, mended)
    gathers.control(mended.port("events"))
    strict = Gathers(name="strict")(numbers, parts, mended)
    return vf.Flow(
        [JsonlSink("rows.jsonl", name="rows")(gathers), JsonlSink("strict.jsonl", name="log")(strict)],
        name="gathered",
    )


def values(path: Path) -> list[Any]:
    return [json.loads(line)["value"] for line in path.read_text(encoding="ascii").splitlines()]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunReport]:
    """A run that put three parts aside, mended since."""
    folder = tmp_path_factory.mktemp("failed")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        report = flow_of(folder).run(runs_folder=folder / "runs")
    assert sorted(letter.origin[-1] for letter in report.dead_letters) == ["1", "3", "3"]
    (folder / "mended").touch()
    return folder, report


@pytest.mark.parametrize("engine", ["threads", pytest.param("local", marks=pytest.mark.nightly)])
def test_elements_without_a_letter_are_missing(
    engine: str, failed: tuple[Path, RunReport], tmp_path: Path
) -> None:
    folder, report = failed
    replay = replay_flow(report.run_id, runs_folder=folder / "runs", into=tmp_path / "into")
    again = replay.run(engine, runs_folder=tmp_path / "runs")
    assert again.verdict == "complete", (again.failure, again.gaps)
    rows = values(tmp_path / "into" / "rows.jsonl")
    assert rows == [
        [None, [None, 11, None], [None, -11, None]],
        [None, [30, None, 32], [-30, None, -32]],
        ["32"],
    ], "the last is what it was told by markers"
    assert values(tmp_path / "into" / "strict.jsonl") == [[]], "it was called without a number"
    ran = {node.node for node in again.nodes}
    assert {"work", "gathers", "rows"} <= ran
    assert {node.node: node.items for node in again.nodes}["work"] == 3


class Tally(vf.Processor):
    """Counts in its state; cannot do one number until a file says so."""

    max_item_bytes = 1000

    def __init__(self, mark: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.mark = Path(mark)

    def process(self, number: int, ctx: vf.Context) -> list[int]:
        if number == 3 and not self.mark.exists():
            raise ValueError("not yet")
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        return [number, ctx.state["count"]]


class Meets(vf.Processor):
    """Meets what was counted with what it was."""

    max_item_bytes = 1000

    def process(self, number: int | None, counted: list[int]) -> list[Any]:
        return [number, counted]


def test_what_ran_in_a_group_is_replayed_without_it_and_with_state_of_its_own(tmp_path: Path) -> None:
    """Another node of the group reads what began it, which does not run again."""
    group: Any = {"fuse": "group"}
    picks = Picks(name="picks", **group)(Numbers(COUNT, name="numbers"))
    tally = Tally(str(tmp_path / "mended"), name="tally", on_error={"ValueError": "poison"}, **group)(picks)
    meets = Meets(name="meets", missing="none", **group)(picks, tally)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        flow = vf.Flow([JsonlSink("rows.jsonl", name="rows")(meets)], name="grouped")
        report = flow.run(runs_folder=tmp_path / "runs")
    assert [letter.origin for letter in report.dead_letters] == ["numbers/0/3"]
    (tmp_path / "mended").touch()
    again = replay_flow(report.run_id, runs_folder=tmp_path / "runs", into=tmp_path / "into").run()
    assert again.verdict == "complete", again.gaps
    assert values(tmp_path / "into" / "rows.jsonl") == [[3, [3, 1]]]


class Picks(vf.Processor):
    """Begins a group."""

    max_item_bytes = 1000

    def process(self, number: int) -> int:
        return number


class Twice(vf.Processor):
    """Each part twice."""

    many: Mapping[str, int] = {"out": 2}
    max_item_bytes = 1000

    def process(self, part: int) -> Iterator[int]:
        yield part
        yield part


class Lists(vf.Processor):
    """Fails on the lists of one part."""

    max_item_bytes = 1000

    def __init__(self, at: int, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.at = at

    def process(self, part: int | None, twice: list[int]) -> int:
        if part == self.at:
            raise ValueError("never")
        return len(twice)


MARKED = threading.Event()


class Patient(vf.Producer):
    """Makes one number, and ends when a marker has come."""

    def produce(self) -> Iterator[vf.Item]:
        yield vf.Item(1, offset=0)
        assert MARKED.wait(20)


class Picky(vf.Consumer):
    """Takes no markers."""

    def consume(self, number: int) -> None:
        """Takes it."""

    def on_control(self, marker: int) -> None:
        MARKED.set()
        raise ValueError("no markers, please")


def refused(folder: Path, *sinks: vf.Node) -> str:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        report = vf.Flow(list(sinks), name="refused").run(runs_folder=folder / "runs")
    assert report.dead_letters
    with pytest.raises(vf.UsageError) as caught:
        replay_flow(report.run_id, runs_folder=folder / "runs")
    assert not isinstance(caught.value, vf.NotYet)
    assert caught.value.effect == "nothing was started"
    return str(caught.value)


def test_what_would_be_called_for_what_nobody_made_is_refused_by_name(tmp_path: Path) -> None:
    numbers = Numbers(2, name="numbers")
    parts = Parts(name="parts")(numbers)
    twice = Twice(name="twice")(parts)
    work = Mended(str(tmp_path / "never"), name="work", on_error={"ValueError": "poison"})(twice)
    inner = Lists(-1, name="inner", missing="none")(parts, work)
    outer = Gathers(name="outer")(numbers, parts, inner)
    told = refused(tmp_path, JsonlSink("rows.jsonl", name="rows")(outer))
    assert "gathers the items of parts.out and twice.out one after the other" in told

    poison: Any = {"on_error": {"ValueError": "poison"}, "missing": "none"}
    lists = Lists(11, name="lists", **poison)(parts, Twice(name="two")(parts))
    told = refused(tmp_path, JsonlSink("r.jsonl", name="r")(Gathers(name="g")(numbers, parts, lists)))
    assert "it is given lists, and what lies below gathers the items of parts.out" in told


def test_a_letter_of_a_marker_is_refused_by_name(tmp_path: Path) -> None:
    picky = Picky(name="picky", on_error={"ValueError": "poison"})(Patient(name="patient"))
    picky.control(Numbers(1, name="markers"))
    assert "of picky is of a marker" in refused(tmp_path, picky)
