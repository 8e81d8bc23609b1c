"""Dead letters replayed: the node that failed and what is below it run, from the letters alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import videoflow as vf
from tests.state.nodes import Numbers, Rows
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import Change, DeadLetter
from videoflow.cli.app import main
from videoflow.clock import RealClock
from videoflow.engines.replay import replay_flow
from videoflow.engines.run_folder import RunFolder
from videoflow.nodes import JsonlSink


class Mended:
    """Whether the nodes here are mended."""

    now = False
    produced = 0


class Counts(Numbers):
    """Numbers whose making is counted."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for item in super().produce(resume):
            Mended.produced += 1
            yield item


class Parts(vf.Processor):
    """As many arrays as the remainder by three says."""

    many: Mapping[str, int] = {"out": 4}
    max_item_bytes = 4096

    def process(self, number: int) -> Iterator[Any]:
        for turn in range(number % 3):
            yield np.full((2, 3), 10 * number + turn, np.int32)


class Fails(vf.Processor):
    """Adds a number to the parts of it; cannot do 4 and 5 until it is mended."""

    ports = ("out", "seen")
    max_item_bytes = 4096

    def process(self, number: int, parts: list[Any]) -> Iterator[Any]:
        if number in (4, 5) and not Mended.now:
            raise ValueError(f"cannot do {number}")
        yield number + sum(int(part.sum()) for part in parts)
        yield vf.Out(number, "seen")


@vf.processor
def doubled(number: int) -> int:
    return 2 * number


class Beside(vf.Processor):
    """A join of what the failed node makes and a sibling."""

    max_item_bytes = 4096

    def process(self, made: int, number: int | None, ctx: vf.Context) -> list[Any]:
        return [made, number, {name: str(cause) for name, cause in ctx.missing.items()}]


def flow_of(folder: Path) -> vf.Flow:
    numbers = Counts(8, name="numbers")
    failing = Fails(name="failing", on_error={"ValueError": "poison"})(numbers, Parts(name="parts")(numbers))
    double = doubled(name="double")(numbers)
    beside = Beside(name="beside", missing="none")(failing, double)
    strict = Beside(name="strict")(failing, double)
    known = Beside(name="known")(failing.seen, numbers)
    return vf.Flow(
        [
            Rows(name="rows")(beside),
            Rows(name="others")(strict),
            Rows(name="both")(known),
            JsonlSink(folder / "seen.jsonl", name="seen")(failing.seen),
            JsonlSink(folder / "all.jsonl", name="all")(numbers),
        ],
        name="replayed",
    )


@pytest.fixture
def failed(tmp_path: Path) -> Iterator[RunFolder]:
    """A run that has put two inputs aside."""
    Mended.now, Mended.produced = False, 0
    report = flow_of(tmp_path).run(runs_folder=tmp_path / "runs")
    assert [letter.origin for letter in report.dead_letters] == ["numbers/0/4", "numbers/0/5"]
    yield RunFolder(Path(report.folder))
    Mended.now = False


def test_the_node_and_what_is_below_it_run_and_nothing_else(failed: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "seen.jsonl").unlink()
    before, Mended.now, Mended.produced = (tmp_path / "all.jsonl").read_bytes(), True, 0
    report = replay_flow(failed.run_id, runs_folder=failed.path.parent).run()
    assert (report.verdict, report.run_id != failed.run_id) == ("complete", True)
    gone = {"double": "skipped"}
    sums = {4: 4 + 6 * 40, 5: 5 + 6 * 50 + 6 * 51}
    assert report.values["rows"] == [[sums[4], None, gone], [sums[5], None, gone]]
    assert report.values["others"] == [], "a join that takes no missing parent was called"
    assert report.values["both"] == [[4, 4, {}], [5, 5, {}]], "what the letter holds is there for all"
    lines = (tmp_path / "seen.jsonl").read_text(encoding="ascii").splitlines()
    assert [msgspec.json.decode(line)["value"] for line in lines] == [4, 5]
    assert [msgspec.json.decode(line)["time_seconds"] for line in lines] == [0.4, 0.5]
    assert Mended.produced == 0, "the source ran again"
    assert "all" not in {node.node for node in report.nodes}
    assert (tmp_path / "all.jsonl").read_bytes() == before


def test_one_letter_from_the_command_line_with_a_folder_for_what_is_relative(
    failed: RunFolder, tmp_path: Path
) -> None:
    Mended.now = True
    (tmp_path / "seen.jsonl").unlink()
    label = flow_letters(failed)[1].label
    words = [
        "dead-letters",
        "replay",
        "last",
        label,
        "--run-dir",
        str(failed.path.parent),
        "--engine",
        "threads",
    ]
    assert main(words) == 0
    [line] = (tmp_path / "seen.jsonl").read_text(encoding="ascii").splitlines()
    assert msgspec.json.decode(line)["value"] == 5


def flow_letters(folder: RunFolder) -> list[DeadLetter]:
    store = SqliteStore(folder.store_path, RealClock())
    try:
        found: Any = store.scan(f"run/{folder.run_id}/dead/", deadline=RealClock().monotonic() + 10)
        letters = [msgspec.msgpack.decode(each.value, type=DeadLetter) for each in found.value.values()]
        return sorted(letters, key=lambda letter: letter.origin)
    finally:
        store.close()


def rewritten(folder: RunFolder, **changes: Any) -> None:
    """Changes the first letter of a run."""
    letter = flow_letters(folder)[0]
    store = SqliteStore(folder.store_path, RealClock())
    key = f"run/{folder.run_id}/dead/{letter.record_id}"
    body = msgspec.msgpack.encode(msgspec.structs.replace(letter, **changes))
    store.commit([Change(key, body)], deadline=RealClock().monotonic() + 10)
    store.close()


def test_what_cannot_be_replayed_is_refused_by_name(
    failed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*labels: str) -> str:
        with pytest.raises(vf.UsageError) as caught:
            replay_flow(failed.run_id, labels, runs_folder=failed.path.parent)
        assert caught.value.effect == "nothing was started"
        return str(caught.value)

    assert "seen.jsonl is there already" in refused()
    assert "it has no letter 'x'" in refused("x")
    with monkeypatch.context() as changed:
        changed.setattr(Fails, "ports", ("out",))
        assert "its ports are out, and were out, seen" in refused()
    rewritten(failed, members={"numbers": b"\xc1", "parts": b"\x90"})
    assert "cannot be made with the code as it is now" in refused()
    rewritten(failed, members={}, omitted={"parts": 70_000_000})
    assert "parts was left out, since its 70000000 bytes" in refused()
    rewritten(failed, members={}, omitted={})
    assert "it is of its last words" in refused()
