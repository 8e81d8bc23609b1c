"""Where the time of a replica goes: parts exclude each other, and nothing is counted twice or left out."""

import threading
from collections.abc import Callable

import pytest

from videoflow.worker import Meter, Part, Spending, Spent


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> Callable[[], None]:
        """Something that takes so long."""

        def take() -> None:
            self.now += seconds

        return take


def started() -> tuple[Meter, Hands]:
    hands = Hands()
    meter = Meter(hands, hands, hands)
    meter.start()
    return meter, hands


def test_a_wait_within_a_publication_is_waiting_for_room_and_no_part_of_it() -> None:
    meter, hands = started()
    meter.begin(Part.PUBLISH)
    hands.now += 1.0
    meter.wait(hands.passes(4.0), for_input=False)
    hands.now += 1.0
    meter.end((("a", 1), ("b", 3)), (("a", 1), ("b", 3)))
    found = meter.snapshot({})
    assert found.of(Part.PUBLISH, "a") == Spent(1, 0.5, 0.5)
    assert found.of(Part.PUBLISH, "b") == Spent(3, 1.5, 1.5)
    assert found.of(Part.BLOCKED, "a").seconds == pytest.approx(1.0)
    assert found.of(Part.BLOCKED).seconds == pytest.approx(4.0)
    assert found.seconds == pytest.approx(6.0)


def test_a_wait_beside_everything_is_for_input_or_a_pause() -> None:
    meter, hands = started()
    meter.wait(hands.passes(2.0), for_input=True)
    meter.wait(hands.passes(3.0), for_input=False)
    found = meter.snapshot({})
    assert (found.of(Part.STARVED).seconds, found.of(Part.PAUSED).seconds) == (2.0, 3.0)


def test_a_wait_for_input_is_told_by_where_it_came_from_in_the_end() -> None:
    meter, hands = started()
    meter.wait(hands.passes(2.0), for_input=True)
    meter.begin(Part.RECEIVE)
    meter.end(())  # nothing yet
    meter.wait(hands.passes(3.0), for_input=True)
    for port in ("late", "early"):
        meter.begin(Part.RECEIVE)
        meter.end(((port, 1),), ((port, 1),))
    meter.wait(hands.passes(1.0), for_input=True)
    found = meter.snapshot({})
    assert (found.of(Part.STARVED, "late").seconds, found.of(Part.STARVED, "early").seconds) == (5.0, 0.0)
    assert found.of(Part.STARVED).seconds == 6.0


def test_what_is_within_another_part_is_taken_off_it() -> None:
    meter, hands = started()

    def commit() -> None:
        hands.now += 1.0
        meter.spend(Part.ENCODE, "a", hands.passes(2.0))

    meter.spend(Part.COMMIT, "", commit)
    found = meter.snapshot({})
    assert (found.of(Part.COMMIT).seconds, found.of(Part.ENCODE).seconds) == (1.0, 2.0)


def test_what_finds_nothing_goes_back_to_what_is_around_it() -> None:
    meter, hands = started()
    meter.begin(Part.RECEIVE)
    hands.now += 1.0
    meter.end(())
    assert meter.snapshot({}).of(Part.RECEIVE) == Spent()


def test_what_fails_has_taken_its_time_and_is_no_item() -> None:
    meter, hands = started()

    def fail() -> None:
        hands.now += 1.0
        raise KeyError("no")

    with pytest.raises(KeyError):
        meter.spend(Part.DECODE, "a", fail)
    assert meter.snapshot({}).of(Part.DECODE, "a") == Spent(0, 1.0, 1.0)


def test_another_thread_is_not_counted() -> None:
    meter, hands = started()
    other = threading.Thread(target=lambda: meter.spend(Part.ENCODE, "a", hands.passes(5.0)))
    other.start()
    other.join()
    assert meter.snapshot({}).of(Part.ENCODE) == Spent()


def test_what_replicas_spent_adds_up() -> None:
    total = Spending()
    for seconds in (1.0, 2.0):
        total.add(Spending(seconds, 0.5, {Part.CALL: {"a": Spent(1, seconds)}}))
    assert (total.seconds, total.processor_seconds) == (3.0, 1.0)
    assert total.of(Part.CALL, "a") == Spent(2, 3.0)
