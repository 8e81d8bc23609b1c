"""What a source holds back for company comes out when its next item is long in coming."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import videoflow as vf
from videoflow.backends.coverage import Origin
from videoflow.backends.messaging import ChannelId, Envelope, Kind, Writer
from videoflow.backends.outcomes import Accepted, Durability, PublicationOutcome
from videoflow.clock import RealClock
from videoflow.worker import Publishes
from videoflow.worker._linger import Linger
from videoflow.worker.core.actions import Publication

PATIENCE = 10.0
ACCEPTED: Sequence[PublicationOutcome] = (Accepted("p", 0, duplicate=False, durability=Durability.HOST),)


def publication() -> Publication:
    channel = ChannelId("flow", "run", "source", "out")
    origin = Origin("source", 0, 0)
    return Publication(0, Envelope(channel, "p", Kind.DATA, Writer("source", 0, 1), "i", origin), 1)


@pytest.fixture
def lingers() -> Iterator[Callable[[Publishes], Linger]]:
    made: list[Linger] = []

    def make(publish: Publishes) -> Linger:
        made.append(Linger(publish, RealClock()))
        return made[-1]

    yield make
    for linger in made:
        linger.close()


def test_what_is_held_is_published_while_user_code_runs(lingers: Callable[[Publishes], Linger]) -> None:
    out = threading.Event()
    told: list[Sequence[Publication]] = []

    def publish(held: Sequence[Publication]) -> Sequence[PublicationOutcome]:
        told.append(held)
        out.set()
        return ACCEPTED

    linger, held = lingers(publish), [publication()]
    linger.hold(held)
    assert out.wait(PATIENCE), "nobody published what was held"
    assert linger.release() == ACCEPTED
    assert linger.release() == ()
    assert told == [held]


def test_what_goes_wrong_there_comes_out_in_the_thread_that_works(
    lingers: Callable[[Publishes], Linger],
) -> None:
    tried = threading.Event()

    def publish(held: Sequence[Publication]) -> Sequence[PublicationOutcome]:
        tried.set()
        raise OSError("the log is gone")

    linger = lingers(publish)
    linger.hold([publication()])
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


def test_an_item_comes_out_while_its_source_works_on_the_next_one() -> None:
    SEEN.clear()
    report: Any = vf.Flow([Sees(name="sees")(Halting(name="halting"))]).run(engine="threads")
    assert report.verdict == "complete"
