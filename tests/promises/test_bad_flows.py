"""Mistakes in a flow or on its command line: one block with a remedy, status 2, nothing left behind."""

from pathlib import Path

import pytest

from tests.promises.commands import command

NODES = """
from collections.abc import Iterator
from enum import Enum

import videoflow as vf


class Pace(Enum):
    SLOW = "slow"
    FAST = "fast"


class Numbers(vf.Producer):
    def __init__(self, count: int = 5) -> None:
        self.count = count

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number)


class Scale(vf.Processor):
    def __init__(self, by: float = 1.0) -> None:
        self.by = by

    def process(self, number: int) -> float:
        return number * self.by


class Show(vf.Consumer):
    def consume(self, number: float) -> None:
        pass

"""
GOOD = """
def build_flow(
    count: int = 5, by: float = 0.5, pace: Pace = Pace.FAST, span: tuple[int, int] = (0, 9)
) -> vf.Flow:
    return vf.Flow([Show(name="show")(Scale(by, name="scale")(Numbers(count, name="numbers")))])
"""


def flow(line: str) -> str:
    return f"{NODES}\ndef build_flow() -> vf.Flow:\n    {line}\n"


SYNTAX = (
    "import videoflow as vf\n\ndef build_flow() -> vf.Flow:\n    camera = vf.Nothing(\n    return camera\n"
)
CYCLE = 'a = Scale(name="a"); b = Scale(name="b")(a); a(vf.merge(Numbers(), b)); return vf.Flow([Show()(b)])'
TWICE = 'return vf.Flow([Show(name="same")(Numbers(name="same"))])'
FUNCTION = 'return vf.Flow([Show()(Scale(lambda x: x, name="scale")(Numbers()))])'
NOT_FINITE = 'return vf.Flow([Show()(Scale(float("nan"), name="scale")(Numbers()))])'
SEVERAL = (
    'return vf.Flow([Show(name="Loud One")(Scale(name="lone")), Show(replicas=0, name="show")(Numbers())])'
)

# Name → flow file, words after it, code, then what the block says.
MISTAKES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "a syntax error": (
        SYNTAX,
        "",
        "VF-FLOW-FILE",
        ("flow.py is not valid Python", "'(' was never closed", "flow.py:4", "mend that line"),
    ),
    "no factory": (
        "import videoflow as vf\n",
        "",
        "VF-FLOW-FILE",
        ("flow.py has no factory", "there is no build_flow", "write def build_flow() -> vf.Flow"),
    ),
    "a factory that fails": (
        flow('raise KeyError("settings")'),
        "",
        "VF-FLOW-FILE",
        ("build_flow failed", "KeyError: 'settings'", "flow.py:"),
    ),
    "not a text": ("\0\0", "", "VF-FLOW-FILE", ("flow.py is not Python", "name a Python file")),
    "a cycle": (flow(CYCLE), "", "VF-FLOW-INVALID", ("a cycle: b reads a reads b", "nothing was started")),
    "a name twice": (
        flow(TWICE),
        "",
        "VF-FLOW-INVALID",
        ("same: two nodes have this name, Numbers and Show", "name them differently"),
    ),
    "several problems": (
        flow(SEVERAL),
        "",
        "VF-FLOW-INVALID",
        ("the flow has 3 problems", "'Loud One' is no name", "lone: it is not wired", "show: replicas is 0"),
    ),
    "a function as an argument": (
        flow(FUNCTION),
        "",
        "VF-ARGUMENT",
        ("Scale: argument by cannot be <function build_flow.<locals>.<lambda>> (function)", "flow.py:"),
    ),
    "a number that is none": (
        flow(NOT_FINITE),
        "",
        "VF-ARGUMENT",
        ("Scale: argument by cannot be nan", "flow.py:", "pass a finite number"),
    ),
    "an option that is not known": (
        NODES + GOOD,
        "--cuont 3",
        "VF-ARGUMENT",
        ("there is no option --cuont", "this flow has --count, --by", "did you mean '--count'?"),
    ),
    "an option of the run that is not known": (
        NODES + GOOD,
        "--drain-second 3",
        "VF-ARGUMENT",
        ("there is no option --drain-second", "did you mean '--drain-seconds'?"),
    ),
    "a word for a number": (
        NODES + GOOD,
        "--count three",
        "VF-ARGUMENT",
        ("--count cannot be 'three'", "wanted a whole number", "write --count 10"),
    ),
    "no number given": (
        NODES + GOOD,
        "--count",
        "VF-ARGUMENT",
        ("--count needs a value", "write --count VALUE"),
    ),
    "a number that is none, given": (
        NODES + GOOD,
        "--by nan",
        "VF-ARGUMENT",
        ("argument by cannot be nan", "pass a finite number"),
    ),
    "not one of the choices": (
        NODES + GOOD,
        "--pace medium",
        "VF-ARGUMENT",
        ("--pace cannot be 'medium'", "wanted one of slow, fast"),
    ),
    "too many values": (
        NODES + GOOD,
        "--span 1,2,3",
        "VF-ARGUMENT",
        ("--span cannot be '1,2,3'", "wanted 2 values with commas between them, not 3", "write --span 10,20"),
    ),
    "an engine that is not known": (
        NODES + GOOD,
        "--engine thread",
        "VF-USAGE",
        ("there is no engine named 'thread'", "did you mean 'threads'?"),
    ),
    "no size": (NODES + GOOD, "--memory-bytes lots", "VF-ARGUMENT", ("'lots' is not a size", '"2 GiB"')),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_its_block(name: str, tmp_path: Path) -> None:
    text, words, code, said = MISTAKES[name]
    (tmp_path / "flow.py").write_text(text, encoding="utf-8")
    ended = command(tmp_path, "run-local", "flow.py", *words.split())
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (2, code, frozenset())
    shown = f"{block.message}\n{block.fields}"
    for words_said in said:
        assert words_said in shown, shown
    assert ended.err.startswith(f"error {code}  "), "nothing but the block"
    assert ended.out == ""


def test_a_flow_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = command(tmp_path, "run-local", "nowhere.py")
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (2, "VF-FLOW-FILE", frozenset())
    assert block.message == "the flow file nowhere.py cannot be read"


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_memory_budget_beyond_the_machine_is_refused_with_one_that_fits(
    engine: str, tmp_path: Path
) -> None:
    (tmp_path / "flow.py").write_text(NODES + GOOD, encoding="utf-8")
    words = ("run-local", "flow.py", "--engine", engine, "--memory-bytes")
    ended = command(tmp_path, *words, "900 TiB")
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (3, "VF-MEMORY", frozenset())
    assert block.message.startswith("the memory budget is 900 TiB, and ")
    fitting = block.fields.partition('--memory-bytes "')[2].partition('"')[0]
    assert command(tmp_path, *words, fitting, "--quiet").status == 0
