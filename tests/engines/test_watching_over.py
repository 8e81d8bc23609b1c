"""What the engine of threads takes for a hang, and what it does not: a slow start, a quiet source."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows
from videoflow.graph.report import Verdict

STALLS_SECONDS = 0.5
LONGER_SECONDS = 1.1


class Slow(vf.Processor):
    """Takes long for one number."""

    def process(self, number: int) -> int:
        threading.Event().wait(LONGER_SECONDS if number == 1 else 0)
        return number


class Model(vf.Processor):
    """Takes long to open."""

    def open(self) -> None:
        threading.Event().wait(LONGER_SECONDS)

    def process(self, number: int) -> int:
        return number


class Quiet(vf.Producer):
    """Makes nothing for a while."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        yield vf.Item(0, offset=0)
        threading.Event().wait(LONGER_SECONDS)
        yield vf.Item(1, offset=1)


def test_a_call_that_hangs_is_named_although_the_others_go_on() -> None:
    hangs = Slow(name="hangs", timeout_seconds=STALLS_SECONDS)(Numbers(4, name="numbers"))
    beside = Rows(name="beside")(Numbers(4000, name="many"))
    report = vf.Flow([Rows(name="rows")(hangs), beside]).start("threads").wait()
    assert (report.verdict, report.exit_status) == (Verdict.STALLED, 5)
    assert report.failure is not None
    assert report.failure.node == "hangs"
    assert "did not return within its timeout of 0.5 s" in report.failure.message


@pytest.mark.parametrize(
    ("source", "node"),
    [(Numbers(2), Model()), (Numbers(2), Slow()), (Quiet(), Slow())],
    ids=["warm-up", "long-call", "quiet-source"],
)
def test_warming_up_a_long_call_and_a_quiet_source_are_no_stalls(source: Any, node: Any) -> None:
    report = vf.Flow([Rows(name="rows")(node(source))]).start("threads", stall_seconds=STALLS_SECONDS).wait()
    assert (report.verdict, report.values["rows"]) == (Verdict.COMPLETE, [0, 1]), report.failure
