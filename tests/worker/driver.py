"""Steps worker cores by hand: no shell, thread, clock or backend; who moves next is a seeded choice.

A replica may also die: before an action, or after it and before it learns the answer. Its leases go back, and
another core starts from what was committed and settled.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.worker.channels import RUN, Channels
from videoflow.backends.coverage import Origin
from videoflow.backends.messaging import Acquired, Delivery, Kind
from videoflow.backends.runtime import Aside, CommitOutcome, Committed, OutboxEntry, SourcePosition
from videoflow.planner.plan import InputMode, Plan, TaskPlan
from videoflow.worker import channel_id, make_program, subscription_id
from videoflow.worker._linger import NEVER
from videoflow.worker.core import Start, actions, make_core

Function = Callable[[actions.Element], Sequence[tuple[str, Any, str | None]]]


class Replica:
    """One core and the answer that it waits for."""

    def __init__(self, bench: "Bench", task: TaskPlan, slot: int) -> None:
        self.bench = bench
        self.slot = slot
        self.owner = f"{task.name}-{slot}"
        self.task = task
        self.program = make_program(bench.plan, task, RUN)
        self.channels = tuple(channel_id(ref, "flow", RUN) for ref in self.program.channels)
        self.subscriptions = [
            subscription_id(plan, "flow", RUN, slot) for _, plan in self.program.subscriptions
        ]
        self.controls = [subscription_id(plan, "flow", RUN, slot) for _, plan in self.program.controls]
        self.kind: Kind | None = None
        self.deaths = 0
        self.start()

    def start(self) -> None:
        """Starts a core from what is committed and settled."""
        committed = self.bench.committed.get((self.task.name, self.slot), Committed())
        exclusive = self.task.mode is not InputMode.COMPETING
        acquired = tuple(
            Acquired(reading.floors(), tuple(reading.coverage.records())) if exclusive else None
            for reading in (self.bench.readings[s] for s in self.subscriptions)
        )
        asides = tuple(a for a in self.bench.asides if self.deaths and a.node in self.task.nodes)
        start = Start(
            self.program,
            self.channels,
            self.slot,
            self.deaths + 1,
            committed,
            acquired,
            asides=asides,
            epochs=dict(self.bench.epochs.get((self.task.name, self.slot), {})),
        )
        self.steps = make_core(start).run()
        self.buffer: list[Any] = []
        written = self.bench.written.setdefault(self.task.name, [])
        del written[self.bench.lengths.get(self.task.name, 0) :]
        self.answer: Any = None
        self.action: actions.Action | None = None
        self.seen: Any = None

    def die(self) -> None:
        """Dies and is started again; what it held goes back."""
        self.deaths += 1
        self.steps.close()
        for subscription in (*self.subscriptions, *self.controls):
            self.bench.readings[subscription].release(self.owner)
        self.start()

    def step(self) -> bool:
        """Performs the action in hand and takes the next; returns False where it can only wait."""
        if self.bench.random.random() < self.bench.deaths:
            self.die()
            return True
        if self.action is not None:
            answer = self.bench.perform(self, self.action)
            if answer is WAIT:
                return False
            if answer is DIED:
                self.die()
                return True
            self.answer = answer
            if self.bench.random.random() < self.bench.deaths:
                self.die()
                return True
        try:
            self.action = self.steps.send(self.answer)
        except StopIteration as ended:
            self.kind = ended.value
        return True


WAIT = object()
DIED = object()


class Killed(Exception):
    """Raised by a node that takes its process with it."""


class Bench:
    """All cores of a plan, stepped in a seeded order until each has ended."""

    def __init__(
        self,
        plan: Plan,
        items: Mapping[str, Sequence[Any]],
        functions: Mapping[str, Function],
        seed: int,
        *,
        deaths: float = 0.0,
    ) -> None:
        self.deaths = deaths
        self.committed: dict[tuple[str, int], Committed] = {}
        self.started: dict[tuple[str, str], set[int]] = {}
        self.asides: list[Aside] = []
        self.epochs: dict[tuple[str, int], dict[str, int]] = {}
        self.outbox: dict[bytes, actions.Publication] = {}
        self.once: dict[tuple[str, str], tuple[bytes, ...]] = {}
        self.given: dict[str, int] = {}
        self.item_seconds: float | None = None  # by chance, so that some are published alone
        self.written: dict[str, list[Any]] = {}
        self.lengths: dict[str, int] = {}
        self.plan = plan
        self.items = items
        self.functions = functions
        self.random = random.Random(seed)
        self.channels = Channels(plan, self.random)
        self.logs, self.readings = self.channels.logs, self.channels.readings
        self.replicas = [Replica(self, task, slot) for task in plan.tasks for slot in range(task.replicas)]
        self.calls: list[tuple[str, actions.Element]] = []
        self.markers: list[tuple[str, str, Any]] = []
        self.put_aside: list[actions.PutAside] = []
        self.failed: str | None = None
        self.commits = 0
        self.now = 0.0
        self.hurry = 0.0  # how often half a second passes, where an input waits for others
        self.held_up = False
        self.waited: Callable[[float], None] = lambda _: None
        self.ends_of_waits: dict[int, set[float]] = {}  # by the calls before
        self.batches: list[tuple[str, list[actions.Element]]] = []
        self.refuses: Callable[[Sequence[actions.Element]], bool] = lambda _: False

    def run(self) -> None:
        """Steps until every core has ended; fails when none can move."""
        live = list(self.replicas)
        stuck: set[Replica] = set()
        while live:
            able = [replica for replica in live if replica not in stuck]
            if not able and (due := [at for r in live if (at := _due(r)) is not None]):
                self.now = max(self.now, min(due))
                stuck.clear()
                continue
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
            case actions.PullMarkers():
                return self._markers(replica)
            case actions.Load(members=members):
                return tuple(None if m is None else self.channels.value(m) for m in members)
            case (
                actions.Call() | actions.Control() | actions.CallBatch() | actions.Burst() | actions.Produce()
            ):
                return self._use(replica, action)
            case actions.Checkpoint(final=final):
                return self._checkpoint(replica, final=final)
            case actions.Flush(node=node):
                function = self.functions.get(f"{node}:flush", lambda _: [("out", f"{node} flushed", None)])
                return self._called(function, actions.Element("", Origin(node, 0, 0)))
            case actions.NextItem(position=position):
                return actions.Sourced(self._next_item(replica, position))
            case actions.Announced(node=node, epoch=epoch):
                return tuple(
                    self.logs[c].announced.origin(node, epoch).closed.intervals() for c in replica.channels
                )
            case actions.KeepOnce() | actions.KeepEpochs():
                return self._keep(replica, action)
            case actions.ForgetOnce():
                return self._forget_once(replica.task.name)
            case actions.Recall(input_id=input_id):
                return self.once.get((replica.task.name, input_id))
            case _:
                return self._record(replica, action)

    def _record(self, replica: Replica, action: actions.Action) -> Any:
        match action:
            case actions.Publish() | actions.Republish() | actions.Hold() | actions.Release():
                return self.channels.say(replica.owner, replica.slot, action, self.outbox)
            case actions.Settle(settlements=settlements):
                return [self.channels.settle(replica.owner, token, how) for token, how in settlements]
            case actions.Attempts(node=node, input_id=input_id):
                if any(aside.record_id == f"{node} {input_id}" for aside in self.asides):
                    return actions.PUT_ASIDE
                return len(self.started.get((node, input_id), ()))
            case actions.RecordStarted(node=node, input_id=input_id):
                self._start(replica, node, input_id)
            case actions.Commit():
                self.commits += 1
                return self._commit(replica, action)
            case actions.PutAside(node=node, element=element):
                self.put_aside.append(action)
                record_id = f"{node} {element.input_id}"
                self.asides.append(Aside(record_id, node, element.origin, element.path))
                return record_id
            case actions.FailRun(failure=failure):
                self.failed = self.plan.task_of(failure.node).name
            case actions.Terminate(kind=kind):
                for channel in replica.channels:
                    self.logs[channel].ended[replica.slot] = kind
        return None

    def _checkpoint(self, replica: Replica, *, final: bool) -> int:
        """Writes what the sink took, five at a time; a death cuts it back to what is committed."""
        count = len(replica.buffer) if final else len(replica.buffer) // 5 * 5
        self.written[replica.task.name] += replica.buffer[:count]
        del replica.buffer[:count]
        return count

    def _start(self, replica: Replica, node: str, input_id: str) -> None:
        for holders in self.started.values():
            holders.discard(replica.deaths)
        self.started.setdefault((node, input_id), set()).add(replica.deaths)

    def _commit(self, replica: Replica, action: actions.Commit) -> CommitOutcome:
        key = (replica.task.name, replica.slot)
        old = self.committed.get(key, Committed())
        self.lengths[replica.task.name] = len(self.written[replica.task.name])
        assert action.number == old.number + 1
        entries = []
        for input_id, publications in action.publications:
            names = tuple(f"{input_id}/{n}/{p.channel}".encode() for n, p in enumerate(publications))
            self.outbox.update(zip(names, publications, strict=True))
            entries.append(OutboxEntry(input_id, names))
        self.committed[key] = Committed(
            number=action.number,
            cursor=old.cursor if action.cursor is None else action.cursor,
            outbox=tuple(entries),
            source=old.source if action.source is None else action.source,
            flushed=old.flushed or action.flushed,
        )
        return CommitOutcome.COMMITTED

    def _keep(self, replica: Replica, action: actions.KeepOnce | actions.KeepEpochs) -> Any:
        if isinstance(action, actions.KeepOnce):
            return self._keep_once(replica, action)
        self.epochs.setdefault((replica.task.name, replica.slot), {}).update(action.epochs)
        return None

    def _keep_once(self, replica: Replica, action: actions.KeepOnce) -> list[tuple[bytes, ...] | None]:
        for input_id in action.forget:
            del self.once[replica.task.name, input_id]
        answers: list[tuple[bytes, ...] | None] = []
        for input_id, publications in action.publications:
            names = tuple(
                f"{replica.owner}/{replica.deaths}/{p.envelope.publication_id}/{n}".encode()
                for n, p in enumerate(publications)
            )
            self.outbox.update(zip(names, publications, strict=True))
            stands = self.once.setdefault((replica.task.name, input_id), names)
            answers.append(None if stands == names else stands)
        return answers

    def _forget_once(self, task: str) -> None:
        self.once = {key: said for key, said in self.once.items() if key[0] != task}

    def _next_item(self, replica: Replica, position: SourcePosition) -> Any:
        """Gives the next item: after the last one, or, live, whatever comes next."""
        items = self.items[replica.task.name]
        resumable = replica.program.entry.spec.traits.resumable
        number = position.ordinal + 1 if resumable else self.given.get(replica.task.name, 0)
        if number >= len(items) or self.failed is not None:
            return actions.SourceEnded()
        self.given[replica.task.name] = number + 1
        seconds = self.random.choice((0.0, 1.0)) if self.item_seconds is None else self.item_seconds
        return actions.ItemReady(number, [("out", items[number], None)], seconds=seconds)

    def _call(self, replica: Replica, action: actions.Call | actions.Control) -> Any:
        node, element = action.node, action.element
        if isinstance(action, actions.Control):
            answer = self._called(self.functions.get(f"{node}:markers", lambda _: ()), element)
            if isinstance(answer, actions.Returned):
                self.markers.append((node, replica.owner, element.values[0]))
            return answer
        self.calls.append((node, element))
        answer = self._called(self.functions[node], element)
        if isinstance(answer, actions.Returned):
            replica.buffer.append(element.values[0])
        return answer

    def _use(
        self,
        replica: Replica,
        action: actions.Call | actions.Control | actions.CallBatch | actions.Burst | actions.Produce,
    ) -> Any:
        if isinstance(action, actions.CallBatch):
            return self._batch(replica, action)
        if isinstance(action, actions.Burst | actions.Produce):
            return self._walked(replica, action)
        return self._call(replica, action)

    def _batch(self, replica: Replica, action: actions.CallBatch) -> Any:
        """Calls the function of a node for each input; one that raises is one that raised for all."""
        for since in action.since:
            self.waited(self.now - since)
        self.batches.append((action.node, list(action.elements)))
        if len(action.elements) > 1 and self.refuses(action.elements):
            return actions.Failure(actions.Disposition.TRANSIENT, "not together")
        answers = [self._called(self.functions[action.node], element) for element in action.elements]
        for answer in answers:
            if not isinstance(answer, actions.Returned):
                return answer
        self.calls += [(action.node, element) for element in action.elements]
        replica.buffer += [element.values[0] for element in action.elements]
        return answers

    def _walked(self, replica: Replica, action: actions.Burst | actions.Produce) -> Any:
        def call(node: str, element: actions.Element, attempt: int) -> Any:
            answer = self._call(replica, actions.Call(node, element, attempt))
            if answer is DIED:
                raise Killed
            return answer

        try:
            if isinstance(action, actions.Produce):
                ask = partial(self._next_item, replica)
                return action.walk.produce(action.position, ask, call, NEVER, action.held, action.inner)
            return action.walk.run(action.deliveries, self.channels.value, call, NEVER, action.held)
        except Killed:
            return DIED

    def _called(self, function: Function, element: actions.Element) -> Any:
        try:
            return actions.Returned(function(element))
        except Killed:
            return DIED
        except ValueError as error:
            return actions.Failure(actions.Disposition.POISON, str(error))
        except RuntimeError as error:
            return actions.Failure(actions.Disposition.FATAL, str(error))
        except OSError as error:
            return actions.Failure(actions.Disposition.TRANSIENT, str(error))

    def _pull(self, replica: Replica, action: actions.Pull) -> Any:
        deliveries = [
            self.channels.receive(replica.owner, subscription, after)
            for subscription, after in zip(replica.subscriptions, action.after, strict=True)
        ]
        progress = [self.readings[s].progress() for s in replica.subscriptions]
        news = (progress, self.failed)
        markers = self._markers(replica)
        if any(markers):
            return actions.Pulled(deliveries, progress, self.failed, markers, self.now)
        if action.until is not None:
            self.ends_of_waits.setdefault(len(self.batches), set()).add(action.until)
        if action.until is not None and action.wait and self.random.random() < self.hurry:
            self.now = max(self.now, min(action.until, self.now + 0.5))
        over = action.until is not None and (self.held_up or self.now >= action.until)
        if not any(deliveries) and action.wait and news == replica.seen and not over:
            return WAIT
        if action.wait and not any(deliveries) and not over:
            replica.seen = news
        held_up = self.held_up and not any(deliveries) and action.until is not None
        return actions.Pulled(deliveries, progress, self.failed, markers, self.now, held_up)

    def _markers(self, replica: Replica) -> list[list[Delivery]]:
        """Gives what has come; a subscription to markers is given items alone."""
        found = [
            self.channels.receive(replica.owner, subscription, None) for subscription in replica.controls
        ]
        return [[d for d in given if d.envelope.kind is Kind.DATA] for given in found]


def _due(replica: Replica) -> float | None:
    """Returns until when a replica waits for more inputs, where it waits for others to go with some."""
    action = replica.action
    return action.until if isinstance(action, actions.Pull) and action.wait else None
