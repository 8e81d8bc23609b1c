"""What the shared-memory log promises beyond the contract: slabs, deaths, what a long run costs."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.contracts.shm_subject import SLAB_BYTES, ShmSubject
from videoflow.backends.outcomes import Unknown
from videoflow.backends.payload import RetentionContract
from videoflow.errors import IncompatibleProfile, UnknownName
from videoflow.faults import Fault, FaultAction, InjectedFault
from videoflow.testing import injected
from videoflow.testing.examiners.envelopes import (
    channel_id,
    competing,
    data,
    exclusive,
    fan_out,
    live,
    ordinals,
    reliable,
)


@pytest.fixture
def subject() -> Iterator[ShmSubject]:
    made = ShmSubject()
    yield made
    made.close()


def test_what_nobody_made_is_unknown_at_the_supervisor(subject: ShmSubject) -> None:
    subject.provision(reliable(competing()))
    engine, other = subject.backend("engine"), channel_id("other")
    reader = competing("stranger")
    assert isinstance(engine.observe_channel(other, deadline=0.0), Unknown)
    assert isinstance(engine.observe_subscription(reader, deadline=0.0), Unknown)
    assert isinstance(engine.announced(other, deadline=0.0), Unknown)
    assert isinstance(engine.settled(reader, deadline=0.0), Unknown)
    with pytest.raises(UnknownName):
        subject.backend("reader").receive(reader, deadline=0.0)


def test_a_full_slab_is_backpressure_for_reliable_items_and_eviction_for_live_ones(
    subject: ShmSubject,
) -> None:
    now, work = competing("now"), competing("work")
    channel = subject.provision(live(now, capacity=10_000), reliable(work))
    writer, contract = subject.payloads("writer"), RetentionContract()

    def fill(first: int) -> int:
        number = first
        while (ref := writer.put(bytes(4096), f"{number}/0", contract, deadline=0.0)) is not None:
            subject.accepted(data(channel, number, payloads=(ref,)))
            number += 1
        return number

    full = fill(0)
    assert full == SLAB_BYTES // 4096
    assert subject.status(now).evicted == 0, "what another reader keeps was dropped in vain"
    subject.settle(*subject.receive(work, full))
    subject.settle_down()
    ref = writer.put(bytes(4096), "more/0", contract, deadline=subject.soon())
    assert ref is not None, "the live reader kept the last slot"
    assert subject.status(now).evicted == 1


def test_a_long_run_costs_what_a_short_one_costs(subject: ShmSubject) -> None:
    work = competing()
    channel = subject.provision(reliable(work), slots=2)
    subject.used()
    writers = [subject.workers["write", slot][0] for slot in range(2)]
    for start in range(0, 3000, 50):
        mine = [data(channel, start + n, slot=n % 2) for n in range(50)]
        subject.accepted(*sorted(mine, key=lambda envelope: envelope.writer.slot))
        subject.settle(*subject.receive(work, 50))
    subject.announced(channel)
    subject.settle_down()
    for writer in writers:
        (outlet,) = writer._process.outlets.values()
        assert not outlet.records
        (known,) = outlet.closed.origins.values()
        assert len(known.closed.intervals()) < 600, "what is closed is not joined over the writers"


def test_what_was_settled_as_its_reader_died_is_settled(subject: ShmSubject) -> None:
    work, sink = competing(), exclusive()
    channel = subject.provision(reliable(work), reliable(sink))
    subject.accepted(data(channel, 0), data(channel, 1))
    subject.backend("a").acquire(sink, 1, deadline=0.0)
    taken = [*subject.receive(work, 1, "a"), *subject.receive(sink, 1, "a", after={0: -1})]
    with injected(Fault("shm.settled", FaultAction.RAISE)), pytest.raises(InjectedFault):
        subject.settle(*taken, owner="a")
    subject.kill("a")
    assert ordinals(subject.receive(work, 1, "b")) == [1]
    assert ordinals(subject.receive(sink, 1, "b", after={0: -1})) == [1]
    subject.nothing(work, "b")


def test_what_a_dead_writer_said_is_not_said_again_by_another(subject: ShmSubject) -> None:
    channel = subject.provision(reliable(competing()), slots=2)
    workers = subject.workers
    subject.accepted(data(channel, 0), *fan_out(channel, 1, 3))
    workers.pop(("write", 0))[0]._process.close()
    subject.used().worker_died("write", 0)
    subject.settle_down()
    subject.duplicates(data(channel, 0, slot=1), *fan_out(channel, 1, 3, slot=1))
    subject.accepted(data(channel, 2, slot=1))


def test_workers_read_back_what_was_provisioned_and_refuse_another(subject: ShmSubject) -> None:
    channel = subject.provision(reliable(competing()))
    backend = subject.backend("reader")
    (spec, *_) = [place.spec for place in subject.used()._made().channels]
    assert backend.ensure_channel(spec, "op", deadline=0.0) == spec
    with pytest.raises(IncompatibleProfile) as caught:
        backend.ensure_channel(msgspec.structs.replace(spec, slots=2), "op", deadline=0.0)
    assert [miss.guarantee for miss in caught.value.misses] == ["slots"]
    assert channel == spec.channel
