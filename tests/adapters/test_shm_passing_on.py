"""Payloads that outlive what they came with: kept by a reader, passed on, said again after a death."""

from collections.abc import Iterator
from contextlib import contextmanager

from videoflow.adapters.shm import ShmHost, ShmMessaging, ShmPayloads, TaskShape, open_worker
from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import (
    ChannelSpec,
    Completed,
    Delivery,
    Envelope,
    SubscriptionId,
    SubscriptionKind,
)
from videoflow.backends.outcomes import Accepted, Known
from videoflow.backends.payload import PayloadBytes, PayloadRef, RetentionContract
from videoflow.clock import RealClock
from videoflow.testing.examiners.envelopes import (
    LABELS,
    ROOMY,
    channel_id,
    competing,
    data,
    exclusive,
    reliable,
)

CLOCK = RealClock()
SIZE = 4096
SLOTS = 4
FIRST, SECOND = channel_id("source"), channel_id("middle")
READS_FIRST, READS_SECOND = competing("middle", FIRST), exclusive("sink", SECOND)


class Run:
    """source → middle → sink, each a process as far as the log can tell."""

    def __init__(self, reads_first: SubscriptionId = READS_FIRST, size: int = SIZE) -> None:
        self.host = ShmHost(CLOCK, 1 << 28)
        self.workers: dict[str, tuple[ShmMessaging, ShmPayloads]] = {}
        self.incarnations = dict.fromkeys(("source", "middle", "sink"), 0)
        specs = [reliable(reads_first), reliable(READS_SECOND)]
        channels = [
            ChannelSpec(
                channel=spec.subscription.channel,
                profile=Profile.RELIABLE_WORK,
                slots=1,
                bounds=ROOMY,
                subscriptions=(spec.subscription,),
                labels=LABELS,
            )
            for spec in specs
        ]
        self.host.provision(
            channels,
            specs,
            [
                TaskShape(name="source", writes=(FIRST,), slab_bytes=SLOTS * size, largest_bytes=size),
                TaskShape(name="middle", reads=(reads_first,), writes=(SECOND,)),
                TaskShape(name="sink", reads=(READS_SECOND,)),
            ],
        )
        for name in self.incarnations:
            self.start(name)

    def start(self, name: str) -> None:
        self.incarnations[name] += 1
        kit = self.host.kit(name, 0, self.incarnations[name])
        self.workers[name] = open_worker(kit.document, kit.descriptors, CLOCK, name, lost=lambda: None)

    def die(self, name: str) -> None:
        self.workers.pop(name)[0]._process.close()
        self.host.worker_died(name, 0)

    def publish(self, name: str, envelope: Envelope) -> None:
        messaging, deadline = self.workers[name][0], CLOCK.monotonic() + 10
        (outcome,) = messaging.outcomes(
            messaging.begin_publish([envelope], deadline=deadline), deadline=deadline
        )
        assert isinstance(outcome, Accepted)

    def put(self, number: int, seconds: float = 10.0) -> PayloadRef | None:
        contract, deadline = RetentionContract(), CLOCK.monotonic() + seconds
        return self.workers["source"][1].put(
            bytes([number]) * SIZE, f"{number}/0", contract, deadline=deadline
        )

    def say(self, number: int) -> None:
        ref = self.put(number)
        assert ref is not None
        self.publish("source", data(FIRST, number, payloads=(ref,)))

    def take(self, name: str, subscription: SubscriptionId) -> Delivery:
        after = None if subscription.kind is SubscriptionKind.COMPETING else {0: -1}
        messaging, deadline = self.workers[name][0], CLOCK.monotonic() + 10
        (delivery,) = messaging.receive(subscription, deadline=deadline, max_items=1, after=after)
        return delivery

    def settle(self, name: str, delivery: Delivery) -> None:
        self.workers[name][0].settle([(delivery.token, Completed())], deadline=0.0)

    def pin(self, name: str, ref: PayloadRef) -> PayloadBytes:
        found = self.workers[name][1].read(ref, deadline=0.0)
        assert isinstance(found, PayloadBytes)
        return found

    def kept(self) -> int:
        found = self.workers["source"][1].inventory(deadline=0.0)
        assert isinstance(found, Known)
        return len(found.value)

    def emptied(self) -> None:
        """Waits until every slot has come back."""
        process, deadline = self.workers["source"][0]._process, CLOCK.monotonic() + 10
        while self.kept():
            assert CLOCK.monotonic() < deadline, "a slot did not come back"
            process.wait(deadline)


@contextmanager
def running(reads_first: SubscriptionId = READS_FIRST, size: int = SIZE) -> Iterator[Run]:
    run = Run(reads_first, size)
    try:
        yield run
    finally:
        for messaging, _ in run.workers.values():
            messaging._process.close()
        run.host.close()


def test_a_pinned_slot_is_not_written_over_and_comes_back_with_the_pin() -> None:
    with running() as run:
        run.say(1)
        delivery = run.take("middle", READS_FIRST)
        pinned = run.pin("middle", delivery.envelope.payloads[0])
        run.settle("middle", delivery)
        for number in range(2, 2 + SLOTS - 1):
            assert run.put(number) is not None
        assert run.put(9, seconds=0.1) is None
        assert bytes(pinned.data) == bytes([1]) * SIZE
        pinned.close()
        assert run.put(10) is not None


def test_what_is_passed_on_stays_until_the_last_reader_is_done() -> None:
    with running() as run:
        run.say(1)
        delivery = run.take("middle", READS_FIRST)
        ref = delivery.envelope.payloads[0]
        run.publish("middle", data(SECOND, 1, payloads=(ref,)))
        run.settle("middle", delivery)
        last = run.take("sink", READS_SECOND)
        assert run.kept() == 1
        pinned = run.pin("sink", ref)
        run.settle("sink", last)
        assert bytes(pinned.data) == bytes([1]) * SIZE
        assert run.kept() == 1
        pinned.close()
        run.emptied()


def test_an_outbox_may_name_a_frame_that_only_the_dead_process_kept() -> None:
    with running() as run:
        run.say(1)
        delivery = run.take("middle", READS_FIRST)
        ref = delivery.envelope.payloads[0]
        pinned = run.pin("middle", ref)
        run.settle("middle", delivery)
        run.die("middle")
        run.start("middle")
        while run.put(2, seconds=0.1) is not None:
            """All that is free is used."""
        run.publish("middle", data(SECOND, 1, payloads=(ref,)))
        while run.put(3, seconds=0.1) is not None:
            """All that is free now is used too."""
        last = run.take("sink", READS_SECOND)
        with run.pin("sink", last.envelope.payloads[0]) as found:
            assert bytes(found.data) == bytes([1]) * SIZE
        run.settle("sink", last)
        assert run.put(4) is not None, "the slot came back"
        pinned.close()


def test_who_passed_on_and_who_lent_both_die_and_the_bytes_stay() -> None:
    with running() as run:
        run.say(1)
        delivery = run.take("middle", READS_FIRST)
        ref = delivery.envelope.payloads[0]
        run.publish("middle", data(SECOND, 1, payloads=(ref,)))
        run.settle("middle", delivery)
        run.die("middle")
        run.die("source")
        run.start("source")
        assert run.put(2, seconds=0.1) is None, "who else holds something is not known yet"
        run.start("middle")
        run.workers["middle"][0].receive(READS_FIRST, deadline=0.0)
        for number in range(SLOTS - 1):
            assert run.put(3 + number) is not None
        assert run.put(9, seconds=0.1) is None
        last = run.take("sink", READS_SECOND)
        with run.pin("sink", ref) as found:
            assert bytes(found.data) == bytes([1]) * SIZE
        run.settle("sink", last)
        assert run.put(10) is not None


def test_what_is_passed_on_while_its_lender_starts_again_is_not_written_over() -> None:
    with running() as run:
        run.say(1)
        delivery = run.take("middle", READS_FIRST)
        ref = delivery.envelope.payloads[0]
        run.die("source")
        run.incarnations["source"] += 1
        kit = run.host.kit("source", 0, run.incarnations["source"])
        run.workers["middle"][0].receive(READS_FIRST, deadline=0.0)  # connected, and says what it holds now
        run.publish("middle", data(SECOND, 1, payloads=(ref,)))
        run.settle("middle", delivery)
        run.workers["source"] = open_worker(kit.document, kit.descriptors, CLOCK, "source", lost=lambda: None)
        for number in range(2, 2 + SLOTS - 1):
            assert run.put(number) is not None
        assert run.put(9, seconds=0.1) is None
        last = run.take("sink", READS_SECOND)
        with run.pin("sink", ref) as found:
            assert bytes(found.data) == bytes([1]) * SIZE
        run.settle("sink", last)
        assert run.put(10) is not None


def test_what_is_passed_on_before_its_lender_hears_of_the_reader_is_not_written_over() -> None:
    in_order = exclusive("middle", FIRST)
    with running(in_order) as run:
        run.say(1)
        assert run.kept() == 1
        with run.workers["source"][0]._process.lock:  # it is told of the head, and hears nothing itself
            delivery = run.take("middle", in_order)
            ref = delivery.envelope.payloads[0]
            run.publish("middle", data(SECOND, 1, payloads=(ref,)))
            run.settle("middle", delivery)
        for number in range(2, 2 + SLOTS - 1):
            assert run.put(number) is not None
        assert run.put(9, seconds=0.1) is None
        run.take("sink", READS_SECOND)
        with run.pin("sink", ref) as found:
            assert bytes(found.data) == bytes([1]) * SIZE


def test_a_dead_reader_gives_its_pins_back() -> None:
    with running() as run:
        run.say(1)
        delivery = run.take("middle", READS_FIRST)
        ref = delivery.envelope.payloads[0]
        run.publish("middle", data(SECOND, 1, payloads=(ref,)))
        run.settle("middle", delivery)
        last = run.take("sink", READS_SECOND)
        pinned = run.pin("sink", ref)
        run.settle("sink", last)
        run.die("sink")
        run.emptied()
        pinned.close()


def test_what_a_dead_writer_said_is_read_by_who_starts_before_it_comes_back() -> None:
    """Otherwise what other writers said later takes all the credit, and what comes first finds no room."""
    reads = exclusive("middle", FIRST)
    with running(reads) as run:
        run.die("middle")
        for number in range(2):
            run.publish("source", data(FIRST, number))
        run.die("source")
        run.start("middle")
        messaging, _ = run.workers["middle"]
        messaging.acquire(reads, 2, deadline=CLOCK.monotonic() + 10)
        found = messaging.receive(reads, deadline=0.0, after={0: -1})
        assert [delivery.envelope.origin.ordinal for delivery in found] == [0, 1]
