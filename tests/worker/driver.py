"""Steps worker cores by hand: no shell, thread, clock or backend; who moves next is a seeded choice."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from videoflow.backends.coverage import Coverage, Fate, FateKind
from videoflow.backends.messaging import Acquired, Delivery, DeliveryToken, Envelope, Kind, SubscriptionId
from videoflow.backends.outcomes import Accepted, Durability, SettleConfirmed
from videoflow.backends.runtime import CommitOutcome, Committed
from videoflow.planner.plan import InputMode, Plan, TaskPlan
from videoflow.worker import channel_id, make_program, subscription_id
from videoflow.worker.core import Start, actions, make_core

Function = Callable[[actions.Element], Sequence[tuple[str, Any, str | None]]]
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
    leased: dict[int, str] = field(default_factory=dict)
    settled: dict[int, Any] = field(default_factory=dict)

    def progress(self) -> actions.Progress:
        sealed = len(self.log.ended) == self.log.slots
        everything = len(self.log.envelopes)
        drained = sealed and len(self.leased.keys() | self.settled.keys()) == everything
        aborted = Kind.ABORT in self.log.ended.values()
        return actions.Progress(drained, sealed and len(self.settled) == everything, aborted, sealed)


class Replica:
    """One core and the answer that it waits for."""

    def __init__(self, bench: "Bench", task: TaskPlan, slot: int) -> None:
        self.bench = bench
        self.slot = slot
        self.owner = f"{task.name}-{slot}"
        self.task = task
        program = make_program(bench.plan, task, RUN)
        self.channels = tuple(channel_id(ref, "flow", RUN) for ref in program.channels)
        self.subscriptions = [subscription_id(plan, "flow", RUN) for _, plan in program.subscriptions]
        acquired = None if task.mode is InputMode.COMPETING else Acquired({}, ())
        start = Start(
            program, self.channels, slot, 1, Committed(), tuple(acquired for _ in self.subscriptions)
        )
        self.steps = make_core(start).run()
        self.answer: Any = None
        self.action: actions.Action | None = None
        self.kind: Kind | None = None
        self.seen: Any = None

    def step(self) -> bool:
        """Performs the action in hand and takes the next; returns False where it can only wait."""
        if self.action is not None:
            answer = self.bench.perform(self, self.action)
            if answer is WAIT:
                return False
            self.answer = answer
        try:
            self.action = self.steps.send(self.answer)
        except StopIteration as ended:
            self.kind = ended.value
        return True


WAIT = object()


class Bench:
    """All cores of a plan, stepped in a seeded order until each has ended."""

    def __init__(
        self, plan: Plan, items: Mapping[str, Sequence[Any]], functions: Mapping[str, Function], seed: int
    ) -> None:
        self.plan = plan
        self.items = items
        self.functions = functions
        self.random = random.Random(seed)
        self.logs = {channel_id(c.ref, "flow", RUN): Log(c.slots) for c in plan.channels}
        self.readings: dict[SubscriptionId, Reading] = {}
        for task in plan.tasks:
            for given in task.inputs:
                for subscription in given.subscriptions:
                    name = subscription_id(subscription, "flow", RUN)
                    self.readings[name] = Reading(self.logs[name.channel])
        self.replicas = [Replica(self, task, slot) for task in plan.tasks for slot in range(task.replicas)]
        self.calls: list[tuple[str, actions.Element]] = []
        self.put_aside: list[actions.PutAside] = []
        self.failed: str | None = None
        self.commits = 0

    def run(self) -> None:
        """Steps until every core has ended; fails when none can move."""
        live = list(self.replicas)
        stuck: set[Replica] = set()
        while live:
            able = [replica for replica in live if replica not in stuck]
            assert able, f"deadlock: {[(r.owner, r.action) for r in live]}"
            replica = self.random.choice(able)
            if replica.step():
                stuck.clear()
            else:
                stuck.add(replica)
            live = [replica for replica in live if replica.kind is None]

    def perform(self, replica: Replica, action: actions.Action) -> Any:
        match action:
            case actions.Pull():
                return self._pull(replica, action)
            case actions.Load(members=members):
                return tuple(None if m is None else self._value(m) for m in members)
            case actions.Call(node=node, element=element):
                self.calls.append((node, element))
                return self._call(node, element)
            case actions.Flush(node=node):
                return actions.Returned([("out", f"{node} flushed", None)])
            case actions.NextItem(position=position):
                return self._next_item(replica, position.ordinal + 1)
            case _:
                return self._record(replica, action)

    def _record(self, replica: Replica, action: actions.Action) -> Any:
        match action:
            case actions.Publish(publications=publications):
                return [self._append(replica, p) for p in publications]
            case actions.Settle(settlements=settlements):
                return [self._settle(replica, token, how) for token, how in settlements]
            case actions.Commit():
                self.commits += 1
                return CommitOutcome.COMMITTED
            case actions.PutAside():
                self.put_aside.append(action)
                return "record"
            case actions.FailRun(failure=failure):
                self.failed = self.plan.task_of(failure.node).name
            case actions.Terminate(kind=kind):
                for channel in replica.channels:
                    self.logs[channel].ended[replica.slot] = kind
        return None

    def _next_item(self, replica: Replica, number: int) -> Any:
        items = self.items[replica.task.name]
        if number >= len(items) or self.failed is not None:
            return actions.SourceEnded()
        return actions.ItemReady(number, [("out", items[number], None)])

    def _call(self, node: str, element: actions.Element) -> Any:
        try:
            return actions.Returned(self.functions[node](element))
        except ValueError as error:
            return actions.Failure(actions.Disposition.POISON, str(error))
        except RuntimeError as error:
            return actions.Failure(actions.Disposition.FATAL, str(error))

    def _pull(self, replica: Replica, action: actions.Pull) -> Any:
        deliveries = [
            self._receive(replica, subscription, after)
            for subscription, after in zip(replica.subscriptions, action.after, strict=True)
        ]
        progress = [self.readings[s].progress() for s in replica.subscriptions]
        news = (progress, self.failed)
        if not any(deliveries) and action.wait and news == replica.seen:
            return WAIT
        if action.wait:
            replica.seen = news
        return actions.Pulled(deliveries, progress, self.failed)

    def _receive(
        self, replica: Replica, subscription: SubscriptionId, after: Mapping[int, int] | None
    ) -> list[Delivery]:
        reading = self.readings[subscription]
        count = self.random.randint(1, 3)
        found = []
        for position, envelope in enumerate(reading.log.envelopes):
            taken = position in reading.settled or (after is None and position in reading.leased)
            if taken or (after is not None and position <= after.get(0, -1)):
                continue
            if len(found) == count:
                break
            reading.leased[position] = replica.owner
            token = DeliveryToken(subscription, str(position), (0, position), 1, 1)
            found.append(Delivery(token, envelope, 0.0))
        return found

    def _value(self, delivery: Delivery) -> Any:
        return self.logs[delivery.envelope.channel].values[delivery.envelope.publication_id]

    def _append(self, replica: Replica, publication: actions.Publication) -> Accepted:
        envelope = publication.envelope
        log = self.logs[envelope.channel]
        assert replica.slot not in log.ended, "published after its terminator"
        duplicate = log.announced.covers(envelope.origin, envelope.path)
        if not duplicate:
            log.envelopes.append(envelope)
            log.values[envelope.publication_id] = publication.value
            if envelope.intervals:
                fate = Fate(FateKind.SKIPPED, envelope.cause)
                log.announced.close_intervals(
                    envelope.origin.node, envelope.origin.epoch, envelope.intervals, fate
                )
            else:
                log.announced.close(envelope.origin, envelope.path, Fate(FateKind.DELIVERED))
        return Accepted(envelope.publication_id, len(log.envelopes), duplicate, Durability.MEMORY)

    def _settle(self, replica: Replica, token: DeliveryToken, how: Any) -> SettleConfirmed:
        reading = self.readings[token.subscription]
        assert reading.leased[token.position[1]] == replica.owner
        assert token.position[1] not in reading.settled, "settled twice"
        reading.settled[token.position[1]] = how
        return SettleConfirmed(token, "settled")
