"""The channels of a plan that is stepped by hand: what was said, who holds what, what is settled.

Used by the driver of worker cores. It refuses, by an assertion, what no backend would let pass.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from videoflow.backends.coverage import Coverage, Fate
from videoflow.backends.messaging import (
    Delivery,
    DeliveryToken,
    Envelope,
    Kind,
    SubscriptionId,
    announced_fate,
    settled_fate,
)
from videoflow.backends.outcomes import Accepted, Durability, SettleConfirmed
from videoflow.planner.plan import Plan
from videoflow.worker import channel_id, subscription_id
from videoflow.worker.core import actions

RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass
class Log:
    """One channel: what was said, in order, and which writers have ended."""

    slots: int
    envelopes: list[Envelope] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    announced: Coverage = field(default_factory=Coverage)
    ended: dict[int, Kind] = field(default_factory=dict)


@dataclass
class Reading:
    """One subscription: position -> holder of its lease, and what is settled."""

    log: Log
    partition: int = 0
    leased: dict[int, str] = field(default_factory=dict)
    settled: dict[int, Any] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    def release(self, owner: str) -> None:
        """Takes back what a dead owner held."""
        for position in [p for p, holder in self.leased.items() if holder == owner]:
            if position not in self.settled:
                del self.leased[position]
                self.counts[position] = self.counts.get(position, 1) + 1

    def positions(self) -> list[int]:
        """The places in the log that are for this partition."""
        return [p for p, e in enumerate(self.log.envelopes) if e.partition == self.partition]

    def floors(self) -> dict[int, int]:
        """Up to where everything is settled."""
        end = len(self.log.envelopes)
        floor = next((p for p in self.positions() if p not in self.settled), end)
        return {0: floor - 1} if floor else {}

    def progress(self) -> actions.Progress:
        sealed = len(self.log.ended) == self.log.slots
        everything = len(self.positions())
        drained = sealed and len(self.leased.keys() | self.settled.keys()) == everything
        aborted = Kind.ABORT in self.log.ended.values()
        return actions.Progress(drained, sealed and len(self.settled) == everything, aborted, sealed)


class Channels:
    """All channels and subscriptions of a plan.

    Attributes:
        logs: By channel.
        readings: By subscription.
    """

    def __init__(self, plan: Plan, choice: random.Random) -> None:
        self._random = choice
        self.logs = {channel_id(c.ref, "flow", RUN): Log(c.slots) for c in plan.channels}
        self.readings: dict[SubscriptionId, Reading] = {}
        self._said: dict[str, list[Accepted]] = {}
        for task in plan.tasks:
            for given in task.inputs:
                for subscription in given.subscriptions:
                    for partition in range(subscription.channel.partitions):
                        name = subscription_id(subscription, "flow", RUN, partition)
                        self.readings[name] = Reading(self.logs[name.channel], partition)
            for control in task.controls:
                for subscription in control.subscriptions:
                    for slot in range(task.replicas):
                        name = subscription_id(subscription, "flow", RUN, slot)
                        self.readings[name] = Reading(self.logs[name.channel])

    def receive(
        self, owner: str, subscription: SubscriptionId, after: Mapping[int, int] | None
    ) -> list[Delivery]:
        """Gives one to three of what comes next to an owner: after what it has, or what nobody has."""
        reading = self.readings[subscription]
        count = self._random.randint(1, 3)
        found: list[Delivery] = []
        for position in reading.positions():
            envelope = reading.log.envelopes[position]
            taken = position in reading.settled or (after is None and position in reading.leased)
            if taken or (after is not None and position <= after.get(0, -1)):
                continue
            if len(found) == count:
                break
            reading.leased[position] = owner
            tries = reading.counts.get(position, 1)
            token = DeliveryToken(subscription, str(position), (0, position), tries, tries)
            found.append(Delivery(token, envelope, 0.0))
        return found

    def value(self, delivery: Delivery) -> Any:
        """Returns what was published."""
        return self.logs[delivery.envelope.channel].values[delivery.envelope.publication_id]

    def say(
        self,
        owner: str,
        slot: int,
        action: actions.Publish | actions.Republish | actions.Hold | actions.Release,
        outbox: Mapping[bytes, actions.Publication],
    ) -> list[Accepted]:
        """Publishes; what is held is published every other time, as if user code took its time."""
        match action:
            case actions.Publish(publications=publications):
                return self.publish(slot, publications)
            case actions.Republish(pending=pending):
                return self.publish(slot, [outbox[key] for key in pending])
            case actions.Hold(held=held):
                said = [each for _, group in held for each in group] if len(held) % 2 else []
                self._said[owner] = self.publish(slot, said)
                return []
        return self._said[owner]

    def publish(self, slot: int, publications: Sequence[actions.Publication]) -> list[Accepted]:
        """Appends statements: all of one, or nothing where it was said before."""
        known: dict[tuple[str, str], bool] = {}
        for publication in publications:
            envelope = publication.envelope
            key = str(envelope.channel), envelope.input_id
            covered = self.logs[envelope.channel].announced.covers(envelope.origin, envelope.path)
            said = announced_fate(envelope) is not None
            known[key] = known.get(key, False) or (said and covered)
        return [
            self._append(slot, p, duplicate=known[str(p.envelope.channel), p.envelope.input_id])
            for p in publications
        ]

    def _append(self, slot: int, publication: actions.Publication, *, duplicate: bool) -> Accepted:
        envelope = publication.envelope
        log = self.logs[envelope.channel]
        assert duplicate or slot not in log.ended, "published after its terminator"
        if not duplicate:
            log.envelopes.append(envelope)
            log.values[envelope.publication_id] = publication.value
            _close(log.announced, envelope, announced_fate(envelope))
        return Accepted(envelope.publication_id, len(log.envelopes), duplicate, Durability.MEMORY)

    def settle(self, owner: str, token: DeliveryToken, how: Any) -> SettleConfirmed:
        """Settles what an owner holds."""
        reading = self.readings[token.subscription]
        assert reading.leased[token.position[1]] == owner
        position = token.position[1]
        if position not in reading.settled:
            reading.settled[position] = how
            envelope = reading.log.envelopes[position]
            _close(reading.coverage, envelope, settled_fate(envelope, how))
        return SettleConfirmed(token, "settled")


def _close(coverage: Coverage, envelope: Envelope, fate: Fate | None) -> None:
    if fate is None:
        return
    node, epoch, _ = envelope.origin
    coverage.close_intervals(node, epoch, envelope.intervals, fate)
    if not envelope.intervals:
        coverage.close(envelope.origin, envelope.path, fate)
