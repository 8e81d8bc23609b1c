"""Memory messaging under real threads: nothing is lost, nothing hangs, nobody is called twice."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from videoflow.backends.capabilities import Profile
from videoflow.backends.memory import MemoryBroker, MemoryMessaging
from videoflow.backends.messaging import (
    Bounds,
    ChannelSpec,
    Completed,
    Delivery,
    Kind,
    ReliableSubscriptionSpec,
    Retry,
    SubscriptionId,
)
from videoflow.backends.outcomes import Accepted, Known, PublicationOutcome, Rejected, RejectReason
from videoflow.clock import RealClock, Signal
from videoflow.testing.examiners.envelopes import (
    LABELS,
    channel_id,
    competing,
    data,
    exclusive,
    ordinals,
    reliable,
    skip,
)

ITEMS = 1500
PATIENCE = 20.0


class Crew:
    """Threads that must all come to their end; the first failure is raised."""

    def __init__(self) -> None:
        self.clock = RealClock()
        self.broker = MemoryBroker()
        self.engine = self.member("engine")
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def member(self, owner: str) -> MemoryMessaging:
        return MemoryMessaging(self.broker, owner, self.clock)

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except AssertionError as error:
                self._failures.append(error)

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def join(self) -> None:
        deadline = self.clock.monotonic() + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, deadline - self.clock.monotonic()))
        for failure in self._failures:
            raise failure
        assert not any(thread.is_alive() for thread in self._threads)

    def far(self) -> float:
        """Returns a deadline beyond the patience of `join`: who comes back at it has failed."""
        return self.clock.monotonic() + 1000 * PATIENCE

    def soon(self) -> float:
        return self.clock.monotonic() + PATIENCE

    def write(self, member: MemoryMessaging, slot: int, mine: range) -> None:
        channel = channel_id()
        numbers = list(mine)
        for start in range(0, len(numbers), 8):
            batch = [
                skip(channel, (n, n), slot=slot) if n % 7 == 0 else data(channel, n, slot=slot)
                for n in numbers[start : start + 8]
            ]
            handles = member.begin_publish(batch, deadline=self.soon())
            assert all(isinstance(o, Accepted) for o in member.outcomes(handles, deadline=self.soon()))
        member.terminate(channel, slot, 0, Kind.END, deadline=self.soon())

    def read(self, member: MemoryMessaging, subscription: SubscriptionId) -> list[int]:
        seen: list[int] = []
        after = None
        if subscription.partition is not None:
            member.acquire(subscription, 1, deadline=self.soon())
            after = {0: -1, 1: -1}
        while True:
            taken = member.receive(subscription, deadline=0.0, max_items=8, after=after)
            if taken:
                seen += ordinals(list(taken))
                if after is not None:
                    after.update(delivery.token.position for delivery in taken)
                member.settle([(d.token, Completed()) for d in taken], deadline=self.soon())
                continue
            status = member.observe_subscription(subscription, deadline=self.soon())
            assert isinstance(status, Known)
            if status.value.finished:
                return seen
            assert self.clock.wait([member.waitable(subscription)], self.soon())


@pytest.fixture
def crew() -> Crew:
    return Crew()


def provisioned(crew: Crew, *readers: ReliableSubscriptionSpec, items: int) -> None:
    spec = ChannelSpec(
        channel=channel_id(),
        profile=Profile.RELIABLE_WORK,
        slots=1,
        bounds=Bounds(items, 10**6),
        subscriptions=tuple(reader.subscription for reader in readers),
        labels=LABELS,
    )
    crew.engine.ensure_channel(spec, "op", deadline=crew.soon())
    for reader in readers:
        crew.engine.ensure_subscription(reader, "op", deadline=crew.soon())


def publish(crew: Crew, member: MemoryMessaging, *numbers: int) -> None:
    handles = member.begin_publish([data(channel_id(), n) for n in numbers], deadline=crew.soon())
    assert all(isinstance(o, Accepted) for o in member.outcomes(handles, deadline=crew.soon()))


class Blocked(Signal):
    """A signal that is never given, and says when its clock has attached to it and looked a second time."""

    def __init__(self) -> None:
        super().__init__(self._look)
        self._looks = 0
        self.blocked = threading.Event()

    def _look(self) -> bool:
        self._looks += 1
        if self._looks > 1:
            self.blocked.set()
        return False


def start_waiting(crew: Crew, member: MemoryMessaging, subscription: SubscriptionId) -> None:
    """Starts a thread that waits for the next item, which is not there yet; returns when it is blocked."""
    probe = Blocked()

    def wait() -> None:
        waitable = member.waitable(subscription)
        assert crew.clock.wait([waitable, probe], crew.far()) == {waitable}
        assert len(member.receive(subscription, deadline=0.0)) == 1

    crew.start(wait)
    assert probe.blocked.wait(PATIENCE)


def test_two_writers_two_replicas_and_an_ordered_reader(crew: Crew) -> None:
    work, sink = competing(), exclusive()
    spec = ChannelSpec(
        channel=channel_id(),
        profile=Profile.RELIABLE_WORK,
        slots=2,
        bounds=Bounds(20, 10**6),
        subscriptions=(work, sink),
        labels=LABELS,
    )
    crew.engine.ensure_channel(spec, "op", deadline=crew.soon())
    for subscription in (reliable(work, Bounds(6, 10**6), spread=8), reliable(sink, Bounds(5, 10**6))):
        crew.engine.ensure_subscription(subscription, "op", deadline=crew.soon())
    seen: dict[str, list[int]] = {}

    def reader(name: str, subscription: SubscriptionId) -> Callable[[], None]:
        def work_() -> None:
            seen[name] = crew.read(crew.member(name), subscription)

        return work_

    for slot in range(2):
        member = crew.member(f"writer/{slot}")
        crew.start(partial(crew.write, member, slot, range(slot, ITEMS, 2)))
    crew.start(reader("a", work))
    crew.start(reader("b", work))
    crew.start(reader("sink", sink))
    crew.join()
    assert Counter(seen["a"] + seen["b"]) == Counter(range(ITEMS))
    for slot in range(2):
        assert [n for n in seen["sink"] if n % 2 == slot] == list(range(slot, ITEMS, 2))
    status = crew.engine.observe_channel(channel_id(), deadline=crew.soon())
    assert isinstance(status, Known)
    assert (status.value.items, status.value.size_bytes, status.value.sealed) == (0, 0, True)


def test_a_blocked_reader_and_a_blocked_writer_are_interrupted(crew: Crew) -> None:
    work = competing()
    provisioned(crew, reliable(work, spread=1), items=1)
    writer, holder, reader = crew.member("writer"), crew.member("holder"), crew.member("reader")
    handles = writer.begin_publish([data(channel_id(), n) for n in range(2)], deadline=crew.soon())
    held = holder.receive(work, deadline=0.0)
    outcomes: list[PublicationOutcome] = []
    deliveries: list[Sequence[Delivery]] = []
    far = crew.far()
    second = writer.begin_publish([data(channel_id(), 2)], deadline=far)

    def blocked_write() -> None:
        outcomes.extend(writer.outcomes(second, deadline=far))

    def blocked_read() -> None:
        deliveries.append(reader.receive(work, deadline=far))

    crew.start(blocked_write)
    crew.start(blocked_read)
    writer.interrupt()
    reader.interrupt()
    crew.join()
    (rejected,) = outcomes
    assert isinstance(rejected, Rejected)
    assert rejected.reason is RejectReason.FULL
    assert [list(taken) for taken in deliveries] == [[]]
    assert len(held) == 1
    assert isinstance(writer.outcomes(handles[:1], deadline=0.0)[0], Accepted)


def test_what_found_room_late_wakes_its_readers(crew: Crew) -> None:
    one, two = competing("one"), competing("two")
    provisioned(crew, reliable(one), reliable(two), items=1)
    writer, first, second = crew.member("writer"), crew.member("first"), crew.member("second")
    publish(crew, writer, 0)
    (last,) = first.receive(one, deadline=0.0)
    (done,) = second.receive(two, deadline=0.0)
    second.settle([(done.token, Completed())], deadline=crew.soon())
    handles = writer.begin_publish([data(channel_id(), 1)], deadline=crew.soon())
    start_waiting(crew, second, two)
    first.settle([(last.token, Completed())], deadline=crew.soon())
    (outcome,) = writer.outcomes(handles, deadline=crew.soon())
    assert isinstance(outcome, Accepted)
    crew.join()


def test_credit_that_comes_back_wakes_the_other_replica(crew: Crew) -> None:
    work = competing()
    provisioned(crew, reliable(work, Bounds(1, 10**6)), items=10)
    publish(crew, crew.member("writer"), 0, 1)
    first, second = crew.member("first"), crew.member("second")
    (held,) = first.receive(work, deadline=0.0)
    start_waiting(crew, second, work)
    first.settle([(held.token, Completed())], deadline=crew.soon())
    crew.join()


def test_a_delayed_retry_comes_back_to_a_blocked_reader(crew: Crew) -> None:
    work = competing()
    provisioned(crew, reliable(work), items=10)
    publish(crew, crew.member("writer"), 0)
    reader = crew.member("reader")
    (held,) = reader.receive(work, deadline=0.0)
    reader.settle([(held.token, Retry(0.05))], deadline=crew.soon())
    taken: list[Delivery] = []
    crew.start(lambda: taken.extend(reader.receive(work, deadline=crew.far())))
    crew.join()
    assert ordinals(taken) == [0]
