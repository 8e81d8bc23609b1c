"""What is held back for company comes out when user code takes its time."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import videoflow as vf
from videoflow.backends.coverage import Origin
from videoflow.backends.messaging import ChannelId, Envelope, Kind, Writer
from videoflow.backends.outcomes import Accepted, Durability, PublicationOutcome
from videoflow.worker import Publishes
from videoflow.worker._linger import Linger
from videoflow.worker.core.actions import InnerFate, Publication, Statement

PATIENCE = 10.0
ACCEPTED: Sequence[PublicationOutcome] = (Accepted("p", 0, duplicate=False, durability=Durability.HOST),)


def statement() -> Statement:
    channel = ChannelId("flow", "run", "source", "out")
    origin = Origin("source", 0, 0)
    envelope = Envelope(channel, "p", Kind.DATA, Writer("source", 0, 1), "i", origin)
    return "i", [Publication(0, envelope, 1)]


@pytest.fixture
def lingers() -> Iterator[Callable[[Publishes], Linger]]:
    made: list[Linger] = []

    def make(publish: Publishes) -> Linger:
        made.append(Linger(publish))
        return made[-1]

    yield make
    for linger in made:
        linger.close()


def test_what_is_held_is_published_while_user_code_runs(lingers: Callable[[Publishes], Linger]) -> None:
    out = threading.Event()
    told: list[Sequence[Statement]] = []

    def publish(held: Sequence[Statement], inner: Sequence[InnerFate]) -> Sequence[PublicationOutcome]:
        told.append(held)
        out.set()
        return ACCEPTED

    linger, held = lingers(publish), [statement()]
    linger.hold(held)
    linger.inside = True
    assert out.wait(PATIENCE), "nobody published what was held"
    linger.inside = False
    assert linger.published
    assert linger.release() == ACCEPTED
    assert not linger.published
    assert linger.release() == ()
    assert told == [tuple(held)]


def test_what_goes_wrong_there_comes_out_in_the_thread_that_works(
    lingers: Callable[[Publishes], Linger],
) -> None:
    tried = threading.Event()

    def publish(held: Sequence[Statement], inner: Sequence[InnerFate]) -> Sequence[PublicationOutcome]:
        tried.set()
        raise OSError("the log is gone")

    linger = lingers(publish)
    linger.hold([statement()])
    linger.inside = True
    assert tried.wait(PATIENCE)
    with pytest.raises(OSError, match="the log is gone"):
        linger.release()


SEEN = threading.Event()


class Halting(vf.Producer):
    """Makes an item at once, and ends when it has come out at the other end."""

    def produce(self) -> Iterator[vf.Item]:
        yield vf.Item(1, offset=0)
        assert SEEN.wait(PATIENCE), "the item did not come out while the source was busy"


class Sees(vf.Consumer):
    def consume(self, number: int) -> None:
        SEEN.set()


class Quick(vf.Producer):
    """Makes items so quickly that they come together."""

    max_item_bytes = 64

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, 4):
            yield vf.Item(number, offset=number)


def halts(number: int) -> int:
    if number == 3:
        assert SEEN.wait(PATIENCE), "what was made before did not come out meanwhile"
    return number


class QuickAfterASkip(Quick):
    """Skips its first item, so that what follows is not worked on in a burst."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for item in super().produce(resume):
            yield vf.Item(item.value or vf.SKIP, offset=item.offset)


class Halts(vf.Processor):
    """Takes its time for the last item: until what came before it is out at the other end."""

    max_item_bytes = 64

    def process(self, number: int) -> int:
        return halts(number)


class HaltsTogether(Halts):
    """Takes two inputs at a time."""

    def process_batch(self, numbers: list[int]) -> list[int]:
        return [self.process(number) for number in numbers]


@pytest.mark.parametrize(
    ("source", "node"),
    [
        (Quick(name="quick"), Halts(name="halts", retries=0)),
        (QuickAfterASkip(name="quick"), Halts(name="halts", retries=0)),
        (Quick(name="quick"), HaltsTogether(name="halts", batch=vf.Batch(2), retries=0)),
    ],
)
def test_results_come_out_while_an_input_that_came_with_theirs_is_worked_on(
    source: vf.Producer, node: vf.Processor
) -> None:
    SEEN.clear()
    report: Any = vf.Flow([Sees(name="sees")(node(source))]).run(engine="threads")
    assert report.verdict == "complete", "a result did not come out while what came with it was worked on"


def test_an_item_comes_out_while_its_source_works_on_the_next_one() -> None:
    SEEN.clear()
    report: Any = vf.Flow([Sees(name="sees")(Halting(name="halting"))]).run(engine="threads")
    assert report.verdict == "complete", report.failure
