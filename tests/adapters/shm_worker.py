"""A worker process of the shared-memory tests: a source, a processor or a sink, killed at any moment.

Run as a script with a JSON document as its argument; its descriptors are inherited.
"""

import json
import os
import sys
from typing import Any

import numpy as np

from videoflow.adapters.shm import ShmMessaging, ShmPayloads, open_worker
from videoflow.backends.coverage import Cause, Origin
from videoflow.backends.messaging import (
    ChannelId,
    Completed,
    CompletedReason,
    Delivery,
    Envelope,
    Kind,
    Layout,
    Reliability,
    SubscriptionId,
    SubscriptionKind,
    Writer,
)
from videoflow.backends.outcomes import Accepted, Known, Rejected
from videoflow.backends.payload import PayloadBytes, PayloadRef, RetentionContract
from videoflow.clock import RealClock
from videoflow.faults import Fault, arm, reach
from videoflow.ids import hash_id

CLOCK = RealClock()
CONTRACT = RetentionContract()
FAR = 30.0


def channel_id(node: str, *, live: bool = False) -> ChannelId:
    return ChannelId("flow", "run", node, "out", Layout(Reliability.LIVE if live else Reliability.RELIABLE))


def subscription_id(channel: ChannelId, reader: str, *, competing: bool) -> SubscriptionId:
    kind = SubscriptionKind.COMPETING if competing else SubscriptionKind.EXCLUSIVE
    return SubscriptionId(channel, reader, kind, None if competing else 0)


def pattern(ordinal: int, size: int) -> bytes:
    return bytes((ordinal * 7 + 3) % 251 for _ in range(1)) * size


class Worker:
    """What the three roles share."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        name, slot, incarnation = job["task"], job["slot"], job["incarnation"]
        with os.fdopen(job["document"], "rb") as file:
            document = file.read()
        self.messaging: ShmMessaging
        self.payloads: ShmPayloads
        self.messaging, self.payloads = open_worker(
            document, job["descriptors"], CLOCK, f"{name}.{slot}.{incarnation}"
        )
        self.writer = Writer(name, slot, incarnation)
        self.channels = [channel_id(name, live=live) for live in job["writes"]]
        self.reads = [
            subscription_id(channel_id(node, live=live), f"{name}/{n}", competing=competing)
            for n, (node, live, competing) in enumerate(job["reads"])
        ]

    def log(self, *fields: object) -> None:
        line = " ".join(map(str, fields)) + "\n"
        descriptor = os.open(self.job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def envelopes(self, origin: Origin, input_id: str, refs: tuple[PayloadRef, ...]) -> list[Envelope]:
        size = 64 + sum(ref.size_bytes for ref in refs)
        return [
            Envelope(
                channel=channel,
                publication_id=hash_id(self.writer.task, *origin),
                kind=Kind.DATA,
                writer=self.writer,
                input_id=input_id,
                origin=origin,
                body=b"%d" % origin.ordinal,
                payloads=refs,
                size_bytes=size,
            )
            for channel in self.channels
        ]

    def publish(self, envelopes: list[Envelope]) -> None:
        waiting = envelopes
        while waiting:
            handles = self.messaging.begin_publish(waiting, deadline=CLOCK.monotonic() + FAR)
            reach("publish.sent")
            outcomes = self.messaging.outcomes(handles, deadline=CLOCK.monotonic() + FAR)
            for outcome in outcomes:
                assert isinstance(outcome, (Accepted, Rejected)), outcome
                assert isinstance(outcome, Accepted) or outcome.retryable, outcome
            waiting = [e for e, o in zip(waiting, outcomes, strict=True) if isinstance(o, Rejected)]
        reach("publish.accepted")

    def put(self, ordinal: int, size: int) -> PayloadRef:
        ref = None
        while ref is None:
            ref = self.payloads.put(
                pattern(ordinal, size), f"{ordinal}/0", CONTRACT, deadline=CLOCK.monotonic() + FAR
            )
        return ref

    def check(self, delivery: Delivery) -> None:
        envelope = delivery.envelope
        for ref in envelope.payloads:
            found = self.payloads.read(ref, deadline=0.0)
            assert isinstance(found, PayloadBytes), (found, envelope)
            with found:
                array = np.frombuffer(found.data, np.uint8)
                expected = (envelope.origin.ordinal * 7 + 3) % 251
                assert (array == expected).all(), (envelope.origin, int(array[0]), expected)
                del array

    def settle(self, deliveries: list[Delivery]) -> None:
        done = [
            (
                d.token,
                Completed(
                    CompletedReason.DELIVERED
                    if d.envelope.kind is Kind.DATA
                    else CompletedReason.EXPIRED
                    if d.envelope.cause is Cause.EXPIRED
                    else CompletedReason.SKIPPED
                ),
            )
            for d in deliveries
        ]
        self.messaging.settle(done, deadline=0.0)
        reach("settle.sent")

    def end(self) -> None:
        for channel in self.channels:
            self.messaging.terminate(channel, self.writer.slot, self.writer.epoch, Kind.END, deadline=0.0)
        reach("terminator.sent")
        while not self.messaging.linger(deadline=CLOCK.monotonic() + FAR):
            pass
        self.slots_are_returned()

    def slots_are_returned(self) -> None:
        deadline = CLOCK.monotonic() + 10
        while True:
            held = self.payloads.inventory(deadline=0.0)
            assert isinstance(held, Known)
            if not held.value:
                return
            assert CLOCK.monotonic() < deadline, f"slots left: {held.value}"
            self.messaging._process.wait(deadline)


def source(worker: Worker) -> None:
    job = worker.job
    known = worker.messaging.announced(worker.channels[0], deadline=0.0)
    assert isinstance(known, Known)
    start = max([r.ordinals[0][2][-1][1] for r in known.value if r.ordinals], default=-1)
    for ordinal in range(max(0, start - 3), job["items"]):
        origin = Origin(job["task"], 0, ordinal)
        refs = (worker.put(ordinal, job["bytes"]),) if job["bytes"] else ()
        worker.publish(worker.envelopes(origin, hash_id("item", ordinal), refs))
        reach("source.item")
    worker.end()


def processor(worker: Worker) -> None:
    job = worker.job
    (subscription,) = worker.reads
    while True:
        found = worker.messaging.receive(subscription, deadline=CLOCK.monotonic() + FAR, max_items=4)
        reach("receive.after")
        for delivery in found:
            envelope = delivery.envelope
            worker.check(delivery)
            refs = envelope.payloads
            if refs and not job["forward"]:
                refs = (worker.put(envelope.origin.ordinal, job["bytes"]),)
            worker.publish(worker.envelopes(envelope.origin, envelope.publication_id, refs))
            if job.get("killer") == envelope.origin.ordinal and delivery.token.transport_count == 1:
                os.kill(os.getpid(), 9)
        worker.settle(list(found))
        status = worker.messaging.observe_subscription(subscription, deadline=0.0)
        if not found and isinstance(status, Known) and status.value.finished:
            break
    worker.end()


def sink(worker: Worker) -> None:
    job = worker.job
    positions: list[dict[int, int]] = [{} for _ in worker.reads]
    for subscription in worker.reads:
        worker.messaging.acquire(subscription, job["incarnation"], deadline=0.0)
    pinned: list[PayloadBytes] = []
    while True:
        came = False
        for number, subscription in enumerate(worker.reads):
            after = positions[number]
            found = worker.messaging.receive(subscription, deadline=0.0, after=after, max_items=8)
            reach("receive.after")
            for delivery in found:
                slot, sequence = delivery.token.position
                assert sequence > after.get(slot, -1), "out of order"
                after[slot] = sequence
                worker.check(delivery)
                worker.log(number, delivery.envelope.origin.ordinal, delivery.envelope.kind.value)
                pinned += [
                    b
                    for ref in delivery.envelope.payloads
                    if isinstance(b := worker.payloads.read(ref, deadline=0.0), PayloadBytes)
                ]
            worker.settle(list(found))
            came |= bool(found)
        del pinned[:-4]
        if came:
            continue
        statuses = [worker.messaging.observe_subscription(s, deadline=0.0) for s in worker.reads]
        if all(isinstance(status, Known) and status.value.finished for status in statuses):
            break
        CLOCK.wait([worker.messaging.waitable(s) for s in worker.reads], CLOCK.monotonic() + FAR)
    worker.log("end")


def main() -> None:
    job = json.loads(sys.argv[1])
    arm([Fault(**fault) for fault in job.get("faults", [])])
    {"source": source, "processor": processor, "sink": sink}[job["role"]](Worker(job))


if __name__ == "__main__":
    main()
