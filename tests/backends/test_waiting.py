"""Waiting on the machine's clock: signals, descriptors, and wakes from anywhere."""

import gc
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from videoflow.clock import ManualClock, RealClock, Signal, Waitable, Waker, WouldBlock


class Pipe:
    """A waitable with a descriptor."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.full = False

    def fill(self) -> None:
        self.full = True
        os.write(self.writer, b"x")

    def ready(self) -> bool:
        return self.full

    def fileno(self) -> int:
        return self.reader

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


class Flag(Signal):
    """A signal with its own state."""

    def __init__(self) -> None:
        self.up = False
        super().__init__(lambda: self.up)

    def fill(self) -> None:
        self.up = True
        self.notify()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def soon(clock: RealClock) -> float:
    return clock.monotonic() + 30


def later(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("which", [0, 1, 2])
def test_whichever_becomes_ready_ends_the_wait(pipe: Pipe, which: int) -> None:
    clock, first, second = RealClock(), Flag(), Flag()
    waitables: list[Flag | Pipe] = [first, second, pipe]
    given: list[Waitable] = [*waitables]
    thread = later(waitables[which].fill)
    assert clock.wait(given, soon(clock)) == {waitables[which]}
    thread.join()
    assert clock.wait(given, soon(clock)) == {waitables[which]}


def test_signals_alone_wake_without_a_descriptor() -> None:
    clock, flag = RealClock(), Flag()
    thread = later(flag.fill)
    assert clock.wait([flag, Flag()], soon(clock)) == {flag}
    thread.join()


def test_at_the_deadline_nothing_is_ready(pipe: Pipe) -> None:
    clock = RealClock()
    assert clock.wait([Flag(), pipe], clock.monotonic() + 0.01) == set()
    assert clock.wait([Flag()], clock.monotonic() + 0.01) == set()
    assert clock.wait([], clock.monotonic() - 1) == set()


def test_a_wake_before_the_wait_is_not_lost_and_many_are_one(pipe: Pipe) -> None:
    waker = Waker()
    waker.wait([pipe.reader], 0.0)
    for _ in range(70_000):
        waker.wake()
    waker.wait([pipe.reader], None)
    waker.wake()
    waker.wait([], None)
    waker.wait([pipe.reader], 0.0)


def test_a_destructor_may_wake_whoever_waits() -> None:
    """An array may be collected while its thread holds any lock."""
    clock, flag = RealClock(), Flag()

    class Holder:
        me: object = None

        def __del__(self) -> None:
            flag.fill()

    def collect() -> None:
        holder = Holder()
        holder.me = holder  # a cycle, for the collector
        del holder
        gc.collect()

    thread = later(collect)
    assert clock.wait([flag], soon(clock)) == {flag}
    thread.join()


def test_a_manual_clock_never_blocks() -> None:
    clock, flag = ManualClock(5.0), Flag()
    assert clock.wait([flag], 5.0) == set()
    with pytest.raises(WouldBlock):
        clock.wait([flag], 5.1)
    flag.fill()
    assert clock.wait([flag], 9.0) == {flag}
    clock.advance(1.5)
    assert clock.monotonic() == 6.5
