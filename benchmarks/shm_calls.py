"""What one call of the shared-memory log costs: processor time per item and per batch, in one process.

Run as `python benchmarks/shm_calls.py [--rounds N] [--profile]`. A writer and a reader are connected as two
workers are, and take turns in one thread: the writer publishes a batch, the reader receives it and settles
it, the writer hears of it. Times are the thread's own, so that what else runs on the machine costs nothing
but caches; beside each stands its ratio to encoding and decoding the same envelope in the same run.
"""

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from videoflow.adapters.shm import ShmHost, ShmMessaging, ShmPayloads, TaskShape, open_worker
from videoflow.backends.capabilities import Profile
from videoflow.backends.coverage import Origin
from videoflow.backends.messaging import (
    Bounds,
    ChannelId,
    ChannelSpec,
    Completed,
    Envelope,
    Kind,
    OwnerLabels,
    ReliableSubscriptionSpec,
    SubscriptionId,
    SubscriptionKind,
    Writer,
)
from videoflow.backends.outcomes import Accepted
from videoflow.backends.payload import PayloadBytes, PayloadRef, RetentionContract
from videoflow.clock import RealClock
from videoflow.ids import hash_id
from videoflow.wire import decode_envelope, encode_envelope

BATCHES = (1, 8, 32, 64)
ITEMS = 2048
FRAME_BYTES = 1920 * 1080 * 3
STEPS = ("encode+decode", "publish", "receive", "settle", "hear", "look", "wait")
ROOM = Bounds(256, 64 << 20)
FAR = 1e9
DONE = Completed()


class Pair:
    """A writer and a reader, connected."""

    def __init__(self, kind: SubscriptionKind, spread: int | None, slab_bytes: int = 0) -> None:
        self.clock = RealClock()
        self.host = ShmHost(self.clock, 1 << 30)
        self.channel = ChannelId("flow", "run", "numbers", "out")
        exclusive = kind is SubscriptionKind.EXCLUSIVE
        self.subscription = SubscriptionId(self.channel, "rows/0", kind, 0 if exclusive else None)
        labels = OwnerLabels("flow", "run")
        spec = ReliableSubscriptionSpec(
            subscription=self.subscription, credit=ROOM, spread=spread, replicas=1, labels=labels
        )
        channel = ChannelSpec(
            channel=self.channel,
            profile=Profile.RELIABLE_WORK,
            slots=1,
            bounds=ROOM,
            subscriptions=(self.subscription,),
            labels=labels,
        )
        largest = FRAME_BYTES if slab_bytes else 0
        self.host.provision(
            [channel],
            [spec],
            [
                TaskShape(
                    name="numbers", writes=(self.channel,), slab_bytes=slab_bytes, largest_bytes=largest
                ),
                TaskShape(name="rows", reads=(self.subscription,)),
            ],
        )
        self.writer, self.store = self._open("numbers")
        self.reader, self.views = self._open("rows")
        self.after = {0: -1} if exclusive else None
        if exclusive:
            self.reader.acquire(self.subscription, 1, deadline=0.0)
        self.times = dict.fromkeys(STEPS, 0.0)
        self.ordinal = 0
        self.receive(0)
        self._hear()

    def _open(self, task: str) -> tuple[ShmMessaging, ShmPayloads]:
        kit = self.host.kit(task, 0, 1)
        return open_worker(kit.document, kit.descriptors, self.clock, task, lost=lambda: None)

    def close(self) -> None:
        """Ends both, and the supervisor."""
        for worker in (self.writer, self.reader):
            worker._process.close()
        self.host.close()

    def timed(self, step: str, call: Callable[[], Any]) -> Any:
        """Calls, and counts what it took."""
        began = time.thread_time()
        found = call()
        self.times[step] += time.thread_time() - began
        return found

    def envelopes(self, count: int, payloads: Sequence[PayloadRef] = ()) -> list[Envelope]:
        """Returns the next so many items of 1 KiB, or of a payload each."""
        writer, made = Writer("numbers", 0, 1), []
        for number in range(count):
            self.ordinal += 1
            name = hash_id("run", "numbers", self.ordinal)
            refs = tuple(payloads[number : number + 1])
            made.append(
                Envelope(
                    channel=self.channel,
                    publication_id=name,
                    kind=Kind.DATA,
                    writer=writer,
                    input_id=hash_id("run", self.ordinal),
                    origin=Origin("numbers", 0, self.ordinal),
                    event_time=self.ordinal / 25,
                    low=self.ordinal / 25,
                    source="numbers",
                    body=b"x" * (64 if payloads else 1024),
                    payloads=refs,
                    size_bytes=FRAME_BYTES if payloads else 1024,
                )
            )
        return made

    def publish(self, envelopes: list[Envelope]) -> None:
        """Publishes as a worker does."""
        outcomes = self.writer.outcomes(self.writer.begin_publish(envelopes, deadline=FAR), deadline=FAR)
        assert all(isinstance(outcome, Accepted) for outcome in outcomes)

    def receive(self, limit: int) -> list[Any]:
        """Receives what there is."""
        return list(self.reader.receive(self.subscription, deadline=0.0, max_items=limit, after=self.after))

    def _hear(self) -> None:
        with self.writer._process.lock:
            self.writer._process.service()

    def round(self, batch: int) -> None:
        """Sends one batch through, with what a worker asks in between."""
        envelopes = self.envelopes(batch)
        channel = self.channel
        self.timed("encode+decode", lambda: [decode_envelope(encode_envelope(e), channel) for e in envelopes])
        self.timed("publish", lambda: self.publish(envelopes))
        taken = self.timed("receive", lambda: self.receive(batch))
        assert [delivery.envelope for delivery in taken] == envelopes
        if self.after is not None:
            self.after = {0: taken[-1].token.position[1]}
        self.timed("settle", lambda: self.reader.settle([(d.token, DONE) for d in taken], deadline=0.0))
        self.timed("hear", self._hear)
        self.timed("look", lambda: self.reader.observe_subscription(self.subscription, deadline=0.0))
        waitable = self.reader.waitable(self.subscription)
        self.timed("wait", waitable.ready)


def row(name: str, batch: int, pair: Pair, rounds: int) -> str:
    """Returns the line of one size of batch: medians over the rounds."""
    found: dict[str, list[float]] = {step: [] for step in STEPS}
    batches = max(8, ITEMS // batch // 4)
    for _ in range(rounds):
        pair.times = dict.fromkeys(STEPS, 0.0)
        for _ in range(batches):
            pair.round(batch)
        for step, seconds in pair.times.items():
            found[step].append(seconds * 1e6 / batches)
    median = {step: statistics.median(figures) for step, figures in found.items()}
    floor = median["encode+decode"] / batch
    cells = [f"{median[step] / batch:7.2f} ({median[step] / batch / floor:5.2f})" for step in STEPS]
    total = sum(median[step] for step in STEPS[1:])
    return f"{name:10} {batch:5} " + " ".join(cells) + f" {total / batch:7.2f} {total:8.1f}"


def frames(pair: Pair, rounds: int) -> str:
    """Returns what a frame costs beyond the copy: put, publish, receive, read, settle, hear."""
    data, buffer = bytes(FRAME_BYTES), bytearray(FRAME_BYTES)
    contract, copied, spent = RetentionContract(), [], []
    for _ in range(rounds * 4):
        began = time.thread_time()
        buffer[:] = data
        copied.append(time.thread_time() - began)
        began = time.thread_time()
        ref = pair.store.put(data, f"{pair.ordinal}/0", contract, deadline=FAR)
        assert ref is not None
        envelopes = pair.envelopes(1, (ref,))
        pair.publish(envelopes)
        (delivery,) = pair.receive(1)
        found = pair.views.read(delivery.envelope.payloads[0], deadline=0.0)
        assert isinstance(found, PayloadBytes)
        found.close()
        pair.reader.settle([(delivery.token, DONE)], deadline=0.0)
        pair._hear()
        spent.append(time.thread_time() - began)
    copy, whole = statistics.median(copied), statistics.median(spent)
    ratio = f"{whole * 1e6:.0f} us, {whole / copy:.2f} of copying it ({copy * 1e6:.0f} us)"
    return f"a frame of {FRAME_BYTES} bytes: {ratio}"


def main() -> None:
    """Prints the table, or a profile of batches of 32."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    kinds = (("competing", SubscriptionKind.COMPETING, 512), ("exclusive", SubscriptionKind.EXCLUSIVE, None))
    heads = [f"{step[:15]:>15}" for step in STEPS]
    print("us per item (ratio to encode+decode)", "", *heads, "   all  us/batch")
    for name, kind, spread in kinds:
        pair = Pair(kind, spread)
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        for batch in (32,) if options.profile else BATCHES:
            print(row(name, batch, pair, options.rounds))
        if options.profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        pair.close()
    pair = Pair(SubscriptionKind.COMPETING, None, 8 * FRAME_BYTES)
    print(frames(pair, options.rounds))
    pair.close()


if __name__ == "__main__":
    main()
