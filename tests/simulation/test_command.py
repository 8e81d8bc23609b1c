"""`videoflow simulate`: what a user sees of a flow that keeps its promises, and of one that does not."""

from pathlib import Path

import pytest

from videoflow.cli.app import main

_FLOW = """
import videoflow as vf
from videoflow.nodes import Collect, JsonlSink

turns = []

class Numbers(vf.Producer):
    def __init__(self, count: int) -> None:
        self.count = count

    def produce(self, resume):
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number)

@vf.processor
def counted(number):
    turns.append(number)
    return len(turns)

@vf.processor
def doubled(number):
    return number * 2

def build_flow(count: int = 9, honest: bool = True) -> vf.Flow:
    numbers = Numbers(count, name="numbers")
    made = doubled(numbers) if honest else counted(numbers)
    return vf.Flow([Collect(name="rows")(made), JsonlSink("never-written.jsonl", name="log")(made)])
"""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "flow.py"
    file.write_text(_FLOW, encoding="utf-8")
    return file


def test_a_flow_that_keeps_its_promises(flow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(flow), "--seeds", "25", "--items", "5", "--count", "7"]) == 0
    said = capsys.readouterr()
    assert "numbers: a source" in said.err
    assert "log: it writes never-written.jsonl" in said.err
    assert "rows" not in said.err
    assert "25 schedules" in said.out
    assert "no promise was broken" in said.out
    happened = said.out.partition("what went wrong, and where:\n")[2].partition("\n\n")[0].splitlines()
    assert any(line.startswith("  call publish ") for line in happened)
    assert max(map(len, happened)) <= 80
    assert list(flow.parent.iterdir()) == [flow]


def test_a_flow_that_answers_differently_each_time_is_told_how(
    flow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(flow), "--seeds", "200", "--no-honest"]) == 4
    said = capsys.readouterr().out
    assert "what goes wrong:" in said
    assert "results: " in said
    assert "--seeds 1" in said
