"""Whatever user code raises becomes a failure of its node, in text that can be stored and shown."""

import asyncio
from typing import NoReturn

import msgspec
import pytest

import videoflow as vf
from videoflow.graph import Invoker
from videoflow.worker._calls import guarded
from videoflow.worker.core.actions import Disposition, Failure


class Mute(Exception):
    """Fails while it is printed."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Passing(vf.Processor):
    """Judges nothing itself."""

    def process(self, value: int) -> int:
        return value


class Misjudging(Passing):
    """Fails in its own judgement."""

    def classify(self, error: Exception) -> NoReturn:
        raise LookupError("no judgement")


def raised(error: BaseException, node: vf.Node | None = None) -> Failure:
    def call() -> None:
        raise error

    answer = guarded(Invoker(node or Passing()).classify, call)
    assert isinstance(answer, Failure)
    return answer


@pytest.mark.parametrize(
    "error",
    [Mute(), ValueError("\ud800"), ValueError("x" * 1_000_000), ExceptionGroup("g", [Mute()])],
    ids=["mute", "surrogate", "long", "group"],
)
def test_what_a_node_says_of_its_failure_can_be_sent_and_is_short(error: Exception) -> None:
    failure = raised(error)
    assert failure.error.startswith(type(error).__name__)
    assert len(msgspec.msgpack.encode([failure.error, failure.where, failure.trace])) < 100_000


def test_a_message_cannot_steer_the_terminal() -> None:
    failure = raised(ValueError("one\ntwo\t\x1b[2J\x00"))
    assert failure.error == "ValueError: one\ntwo\t\\x1b[2J\\x00"
    assert "\x1b" not in failure.trace


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), BaseException("odd")])
def test_odd_exceptions_are_tried_again_as_any_other(error: BaseException) -> None:
    assert raised(error).disposition is Disposition.TRANSIENT


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt()])
def test_a_node_that_ends_the_program_ends_the_run(error: BaseException) -> None:
    assert raised(error).disposition is Disposition.FATAL


def test_a_judgement_that_fails_ends_the_run_and_both_errors_are_told() -> None:
    failure = raised(OSError("the disk"), Misjudging())
    assert (failure.disposition, failure.error) == (Disposition.FATAL, "LookupError: no judgement")
    assert "the disk" in failure.trace


def test_what_it_returns_comes_through() -> None:
    assert guarded(Invoker(Passing()).classify, lambda: "fine") == "fine"
