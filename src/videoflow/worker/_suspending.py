"""A stop that is to be resumed: what a replica keeps then, and what one of a later run begins with.

Used by the shell, and by the engines, which read and write the same notes of the run. What a sink holds and
has not made durable is kept whole, and is given to it again in the run that goes on. It refuses to keep a
value whose bytes are gone.
"""

from collections.abc import Mapping, Sequence

import msgspec

from videoflow import wire
from videoflow.backends.coverage import Coverage, OriginRecord
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.messaging import (
    Acquired,
    Completed,
    CompletedReason,
    Delivery,
    DeliveryToken,
    Envelope,
    Kind,
    Retry,
    Settlement,
    SubscriptionId,
    settled_fate,
)
from videoflow.backends.outcomes import SettleConfirmed, SettleUnknown
from videoflow.worker._job import Backends, Job
from videoflow.worker._payloads import Payloads
from videoflow.worker.core import WorkerFatal
from videoflow.worker.core import actions as a

RESUMABLE_NOTE = "stop/resumable"
_KEPT_SLOT = -1  # no writer has such a slot


class KeptDelivery(msgspec.Struct, frozen=True):
    """A delivery that was kept, under `kept/<task>/<slot>/<subscription>/<publication id>`.

    Attributes:
        subscription: Number among those of the task, those of its markers behind the others.
        turn: In which order they came.
        envelope: With its value inside; nothing once it is settled.
        records: What it adds to the ledger of its reader: as settled, or as if it were delivered.
    """

    subscription: int
    turn: int
    envelope: bytes
    records: list[OriginRecord]


class Before(msgspec.Struct, frozen=True):
    """What a replica of a resumed run begins with, under `earlier/<task>/<slot>`.

    Attributes:
        settled: Per subscription of the task: what was settled in the earlier runs.
        over: It had ended; there is nothing left to do.
        epochs: Source → the epoch that it was in; what was said of those before is settled, their ends too.
        announced: Of a source: what it said, by number of its channel.
    """

    settled: list[list[OriginRecord]]
    over: bool = False
    epochs: dict[str, int] = {}
    announced: list[list[OriginRecord]] = []


def is_kept(token: DeliveryToken) -> bool:
    """Whether a delivery comes from an earlier run, and not through a channel."""
    return token.position[0] == _KEPT_SLOT


def in_channel(after: Mapping[int, int] | None) -> Mapping[int, int] | None:
    """Returns how far a channel was read, without what did not come through it."""
    if after is None or _KEPT_SLOT not in after:
        return after
    return {slot: last for slot, last in after.items() if slot != _KEPT_SLOT}


class Suspending:
    """What one replica keeps when it is suspended, and what it found kept.

    Args:
        job: Which replica.
        backends: With the records of the run.
        payloads: Decodes values.
        inputs: What it reads.
        markers: The markers that it takes.
    """

    def __init__(
        self,
        job: Job,
        backends: Backends,
        payloads: Payloads,
        inputs: Sequence[SubscriptionId],
        markers: Sequence[SubscriptionId],
    ) -> None:
        self._job, self._backends, self._payloads = job, backends, payloads
        self._runtime = backends.runtime
        self._inputs, self._subscriptions = len(inputs), (*inputs, *markers)
        self._holds = job.program.checkpointing is not None
        self._unsettled: dict[tuple[int, str], Delivery] = {}
        self._found: list[tuple[str, KeptDelivery, Delivery]] = []
        self.before = Before([])

    @property
    def _replica(self) -> str:
        return f"{self._job.task}/{self._job.slot}"

    def look(self) -> None:
        """Looks what an earlier run left for this replica."""
        prefix, deadline = f"earlier/{self._replica}", self._backends.deadline()
        said = self._runtime.notes(prefix, deadline=deadline).get(prefix)
        if self._job.restarted and self._is_noted(f"suspended/{self._replica}"):
            self.before = Before([], over=True)  # whoever died had left nothing but to say its end
            return
        if said is None:
            return
        self.before = msgspec.msgpack.decode(said, type=Before)
        for name, note in self._runtime.notes(f"kept/{self._replica}/", deadline=deadline).items():
            kept = msgspec.msgpack.decode(note, type=KeptDelivery)
            if kept.envelope:
                self._found.append((name, kept, self._delivery(name, kept)))
        self._found.sort(key=lambda found: found[1].turn)

    def _delivery(self, name: str, kept: KeptDelivery) -> Delivery:
        [envelope] = wire.decode_outbox([kept.envelope], self._job.flow_id, self._job.program.run_id)
        count = 2 if self._job.restarted else 1
        subscription = self._subscriptions[kept.subscription]
        token = DeliveryToken(subscription, name, (_KEPT_SLOT, kept.turn), count, 0)
        return Delivery(token, envelope, self._backends.clock.monotonic())

    def epochs(self) -> dict[str, int]:
        """Returns in which epoch of each source to begin: that of the first item that was kept."""
        held = [delivery.envelope.origin for _, _, delivery in self._found]
        return {
            name: min([epoch, *(origin.epoch for origin in held if origin.node == name)])
            for name, epoch in self.before.epochs.items()
        }

    def acquired(self, found: Sequence[Acquired | None]) -> tuple[Acquired | None, ...]:
        """Returns what is owned, with what was settled in the earlier runs."""
        if not self.before.settled:
            return tuple(found)
        kept: list[list[Envelope]] = [[] for _ in self._subscriptions]
        for _, each, delivery in self._found:
            kept[each.subscription].append(delivery.envelope)
        return tuple(
            None
            if one is None
            else msgspec.structs.replace(one, settled=_together(_without(records, held), one.settled))
            for one, records, held in zip(found, self.before.settled, kept[: self._inputs], strict=True)
        )

    def given(self) -> tuple[list[Sequence[Delivery]], list[Sequence[Delivery]]]:
        """Returns once, per subscription, the inputs and the markers that an earlier run kept."""
        if not self._found:
            return [], []
        found, self._found = self._found, []
        given: list[list[Delivery]] = [[] for _ in self._subscriptions]
        for _, kept, delivery in found:
            given[kept.subscription].append(delivery)
        inputs, markers = given[: self._inputs], given[self._inputs :]
        self.took(markers, markers=True)
        return list(inputs) if any(inputs) else [], list(markers) if any(markers) else []

    def took(self, deliveries: Sequence[Sequence[Delivery]], *, markers: bool = False) -> None:
        """Remembers what was received by a task that may have to keep it.

        Args:
            deliveries: Per subscription.
            markers: They are of those to markers.
        """
        if self._holds:
            for number, some in enumerate(deliveries, self._inputs if markers else 0):
                self._unsettled.update(((number, each.token.message_id), each) for each in some)

    def settled(self, settlements: Sequence[tuple[DeliveryToken, Settlement]]) -> list[SettleConfirmed]:
        """Forgets what is settled, and records it where an earlier run had kept it; returns those."""
        outcomes = []
        for token, settlement in settlements:
            number = self._subscriptions.index(token.subscription) if self._holds else 0
            delivery = self._unsettled.pop((number, token.message_id), None)
            if delivery is not None and is_kept(token):
                records = _records(delivery.envelope, settlement)
                note = KeptDelivery(number, token.position[1], b"", records)
                self._put(token.message_id, note)
                outcomes.append(SettleConfirmed(token, token.message_id))
        return outcomes

    def suspend(self, *, keep: bool) -> bool:
        """Says whether the run is to be resumed.

        Args:
            keep: If so, what is received and not settled is kept.

        Raises:
            WorkerFatal: The bytes of something cannot be had any more.
        """
        if not self._is_noted(RESUMABLE_NOTE):
            return False
        if not keep:
            return True
        superseded: list[tuple[DeliveryToken, Settlement]] = []
        for turn, ((number, _), delivery) in enumerate(self._unsettled.items()):
            if not is_kept(delivery.token):
                self._keep(number, turn, delivery.envelope)
                superseded.append((delivery.token, Completed(CompletedReason.SUPERSEDED)))
        self._let_go(superseded)
        self._runtime.put_note(f"suspended/{self._replica}", b"", deadline=self._backends.deadline())
        return True

    def _is_noted(self, name: str) -> bool:
        return name in self._runtime.notes(name, deadline=self._backends.deadline())

    def _let_go(self, superseded: list[tuple[DeliveryToken, Settlement]]) -> None:
        """Takes what is kept out of the channels, whose writers wait for it; the ledger stays."""
        while superseded:
            outcomes = self._backends.messaging.settle(superseded, deadline=self._backends.deadline())
            superseded = [
                each
                for each, found in zip(superseded, outcomes, strict=True)
                if isinstance(found, SettleUnknown)
            ]

    def _keep(self, number: int, turn: int, envelope: Envelope) -> None:
        whole = envelope
        if envelope.kind is Kind.DATA:
            value = self._payloads.load(envelope)
            if isinstance(value, a.Failure):
                raise WorkerFatal(f"what {self._job.task} holds cannot be kept: {value.error}")
            encoded = wire.encode_value(value)
            whole = msgspec.structs.replace(
                envelope, body=encoded.body, payloads=(), size_bytes=encoded.size_bytes
            )
        [data] = wire.encode_outbox([whole])
        name = f"kept/{self._replica}/{number}/{envelope.publication_id}"
        self._put(name, KeptDelivery(number, turn, data, _records(envelope, Completed())))

    def _put(self, name: str, kept: KeptDelivery) -> None:
        self._runtime.put_note(name, msgspec.msgpack.encode(kept), deadline=self._backends.deadline())


def _without(records: Sequence[OriginRecord], kept: Sequence[Envelope]) -> list[OriginRecord]:
    """Leaves out what is kept: what a live edge drops is in the ledger before its reader has taken it."""
    gone: dict[tuple[str, int], IntervalSet] = {}
    for envelope in (each for each in kept if each.kind is Kind.SKIP and not each.path):
        node, epoch, ordinal = envelope.origin
        for first, last in envelope.intervals or ((ordinal, ordinal),):
            gone.setdefault((node, epoch), IntervalSet()).add(first, last)
    none = IntervalSet()
    return [
        msgspec.structs.replace(
            record,
            ordinals=[
                (
                    kind,
                    cause,
                    [
                        part
                        for first, last in intervals
                        for part in gone.get((record.node, record.epoch), none).missing(first, last)
                    ],
                )
                for kind, cause, intervals in record.ordinals
            ],
        )
        for record in records
    ]


def _together(first: Sequence[OriginRecord], second: Sequence[OriginRecord]) -> tuple[OriginRecord, ...]:
    coverage = Coverage()
    coverage.merge(first)
    coverage.merge(second)
    return tuple(coverage.records())


def _records(envelope: Envelope, settlement: Settlement) -> list[OriginRecord]:
    if isinstance(settlement, Retry):
        settlement = Completed(CompletedReason.SKIPPED)
    fate, coverage, origin = settled_fate(envelope, settlement), Coverage(), envelope.origin
    if fate is None:
        return []
    intervals = envelope.intervals or envelope.elsewhere
    if intervals:
        coverage.close_intervals(origin.node, origin.epoch, intervals, fate)
    else:
        coverage.close(origin, envelope.path, fate)
    return coverage.records()
