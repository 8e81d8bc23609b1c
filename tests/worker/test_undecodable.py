"""What cannot be decoded is put aside with a record; what cannot be read for now is waited for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows, same
from tests.planner.building import threads_facts
from tests.worker.test_shell import Silent
from videoflow import wire
from videoflow.backends.coverage import Origin
from videoflow.backends.memory import (
    MemoryBroker,
    MemoryMessaging,
    MemoryPayloads,
    MemoryPool,
    MemoryRuntimeStore,
)
from videoflow.backends.messaging import Delivery, DeliveryToken, Envelope, Kind, Writer
from videoflow.backends.payload import (
    Corrupt,
    Missing,
    PayloadBytes,
    PayloadRef,
    RetentionContract,
    TransientFailure,
)
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import RealClock, Waitable
from videoflow.engines.replay import replay_flow
from videoflow.planner import plan_flow
from videoflow.worker import (
    Backends,
    Job,
    RunControl,
    Shell,
    TaskNodes,
    channel_id,
    make_program,
    subscription_id,
)
from videoflow.worker._job import Quit
from videoflow.worker.core import actions as a

COUNT = 6
DAMAGED = b"\xc1"


@pytest.mark.parametrize("replicas", [1, 2])
def test_what_cannot_be_decoded_is_put_aside_once_and_the_rest_passes(
    replicas: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    encode = wire.encode_small

    def damaging(value: Any) -> wire.EncodedValue | None:
        encoded = encode(value)
        return msgspec.structs.replace(encoded, body=DAMAGED) if encoded and value == 2 else encoded

    with monkeypatch.context() as changed:
        changed.setattr(wire, "encode_small", damaging)
        step = same(name="same", replicas=replicas)(Numbers(COUNT, name="numbers"))
        report = vf.Flow([Rows(name="rows")(step)]).run(runs_folder=tmp_path)
    assert report.values["rows"] == [number for number in range(COUNT) if number != 2]
    (letter,) = report.dead_letters
    assert (letter.node, letter.origin, letter.attempts) == ("same", "numbers/0/2", 1)
    assert report.verdict == "incomplete"
    assert all(edge.closed for edge in report.edges)
    with pytest.raises(vf.UsageError, match="cannot be made with the code as it is now"):
        replay_flow(report.run_id, runs_folder=tmp_path)  # the record holds the bytes as they came


class Flaky(MemoryPayloads):
    """A store that cannot be read now and then, or any more."""

    answers: list[TransientFailure | Missing | Corrupt]

    def read(
        self, ref: PayloadRef, *, deadline: float
    ) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        return self.answers.pop(0) if self.answers else super().read(ref, deadline=deadline)


class Impatient(RealClock):
    """A clock whose waits are over at once."""

    def wait(self, waitables: Sequence[Waitable], deadline: float) -> set[Waitable]:
        return super().wait(waitables, self.monotonic())


class Reader:
    """A worker that reads one array from a flaky store."""

    def __init__(self, *answers: TransientFailure | Missing | Corrupt) -> None:
        flow = vf.Flow([Rows(name="rows")(Numbers(1, name="numbers"))], name="f")
        plan = plan_flow(flow.compile(), threads_facts())
        self.program = make_program(plan, plan.task("rows"), "run")
        pool, clock, self.control = MemoryPool(1 << 20), Impatient(), RunControl()
        self.store = Flaky(pool, "w", clock)
        self.store.answers = []
        messaging = MemoryMessaging(MemoryBroker(pool), "w", clock)
        backends = Backends(messaging, self.store, FlowRuntime(MemoryRuntimeStore(clock), "run"), clock)
        self.nodes = TaskNodes(self.program, {"rows": Rows()}, {}, 0, self.control)
        job = Job(self.program, plan.spec.flow_id, 0, "rows-0-1")
        self.shell = Shell(job, backends, self.nodes, self.control, Silent())
        (_, planned) = self.program.subscriptions[0]
        self.channel = channel_id(planned.channel, "f", "run")
        self.subscription = subscription_id(planned, "f", "run", 0)
        self.delivery = self._delivery()
        self.store.answers = list(answers)

    def _delivery(self) -> Delivery:
        def keep(array: Any, index: int) -> PayloadRef:
            found = self.store.put(array.data, f"x/{index}", RetentionContract(), deadline=0.0)
            assert found is not None
            return found

        encoded = wire.encode_value(wire.freeze(np.arange(1 << 14)), keep)
        envelope = Envelope(
            channel=self.channel,
            publication_id="x",
            kind=Kind.DATA,
            writer=Writer("numbers", 0, 1),
            input_id="x",
            origin=Origin("numbers", 0, 0),
            body=encoded.body,
            payloads=encoded.payloads,
            size_bytes=encoded.size_bytes,
        )
        return Delivery(DeliveryToken(self.subscription, "1", (0, 0), 1, 0), envelope, 0.0)

    def load(self) -> Any:
        return self.shell.perform(a.Load((self.delivery,)))


def test_a_hiccup_of_the_store_is_waited_for_however_long_it_lasts() -> None:
    reader = Reader(*(TransientFailure("not now") for _ in range(17)))
    (value,) = reader.load()
    assert np.array_equal(value, np.arange(1 << 14))
    assert reader.store.answers == []


@pytest.mark.parametrize("answer", [Missing("it is gone"), Corrupt("1", "2")])
def test_bytes_that_are_lost_are_told_at_once(answer: Missing | Corrupt) -> None:
    failure = Reader(answer).load()
    assert isinstance(failure, a.Failure)
    assert failure.disposition is a.Disposition.POISON


def test_a_worker_that_waits_for_bytes_can_be_ended() -> None:
    reader = Reader(*(TransientFailure("not now") for _ in range(1000)))
    reader.control.end_now()
    with pytest.raises(Quit):
        reader.load()
