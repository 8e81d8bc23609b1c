"""The core of a task that reads: competing, ordered, or joining.

Used by the shell of every engine, by simulations, and by tests that answer its actions by hand. It
knows no clock, no thread and no backend.
"""

from collections import deque
from collections.abc import Sequence

import msgspec

from videoflow.backends.messaging import (
    Completed,
    CompletedReason,
    Delivery,
    DeliveryToken,
    Kind,
    Settlement,
)
from videoflow.planner.plan import InputMode
from videoflow.worker.core._assembly import Assembly
from videoflow.worker.core._bursts import Bursts
from videoflow.worker.core._checkpoints import Checkpointing
from videoflow.worker.core._concluding import CONCLUDE_INPUTS, Start
from videoflow.worker.core._epochs import EndedEpochs
from videoflow.worker.core._gathered import Gathered
from videoflow.worker.core._groups import CursorRecord, Group, Held, Message, groups_of, has_data, message_of
from videoflow.worker.core._misplaced import hole_failure, split_failure
from videoflow.worker.core._order import OrderedInputs, positions_of
from videoflow.worker.core._partitions import Voice, voice
from videoflow.worker.core._pending import Pending, Settlements
from videoflow.worker.core._settling import abandonment, repetition, settlement, was_worked_on
from videoflow.worker.core._walk import Outcome, RunAborted, resumed
from videoflow.worker.core.actions import (
    Burst,
    Commit,
    Element,
    FailRun,
    ForgetOnce,
    KeepOnce,
    Progress,
    Pull,
    Recall,
    Steps,
    Terminate,
)

_DELIVERED = Completed(CompletedReason.DELIVERED)
_SKIPPED = Completed(CompletedReason.SKIPPED)


class ReaderCore(Checkpointing):
    """The core of a task that reads: competing, ordered, or joining."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        task = start.program.task
        self._competing = task.mode is InputMode.COMPETING
        self._once = self._competing and self.outbox
        self.outbox = self.outbox and not self._once
        self._forget: list[str] = []
        self._partitioned = task.partitions > 1
        self._assembly = Assembly(start.program, self.walk)
        above = start.program.above if self._assembly.joins else None
        self._order = OrderedInputs(self._assembly.deeper, self._assembly.depth, above)
        self._worked: list[CursorRecord] = []
        self._ended_epochs = EndedEpochs()
        self._loose: deque[Group] = deque()
        self._owned: dict[Message, Delivery] = {}
        self._after: list[dict[int, int]] = [{} for _ in start.program.subscriptions]
        self._progress = [Progress() for _ in start.program.subscriptions]
        self._limit = max(1, task.prefetch if self._competing else CONCLUDE_INPUTS)
        self._more = False  # as many were received as were asked for, so that there may be more
        self._gaps_closed = False
        self._behind: tuple[int, Sequence[Delivery]] | None = None
        self._gathered = list[Gathered]()
        self._bursts = Bursts(start, self.walk, self._order, once=self._once)

    def run(self) -> Steps:
        """Yields actions until the task has ended; returns the kind of its terminator."""
        try:
            self._restore()
            yield from self.republish()
            self.require_not_abandoned()
            yield from self._read()
            aborted = any(progress.aborted for progress in self._progress)
            if not (aborted or self.suspended):
                yield from self.flush(self._order.reached())
            kind = Kind.ABORT if aborted else Kind.END
        except RunAborted:
            yield from self._abandon()
            kind = Kind.ABORT
        if self._once:
            yield ForgetOnce()
        yield Terminate(kind)
        return kind

    def _restore(self) -> None:
        self._order.restore_epochs(self.start.epochs)
        for acquired in self.start.acquired:
            if acquired is not None and not self.start.abandoned:  # who is given up settles what it never had
                self._order.restore_settled(acquired.settled)
        if (cursor := self.start.committed.cursor) is not None:
            self._order.restore_cursor(msgspec.msgpack.decode(cursor, type=list[CursorRecord]))
        for number, acquired in enumerate(self.start.acquired):
            if acquired is not None:
                self._after[number] = dict(acquired.settled_floors)

    def _reached(self) -> list[CursorRecord]:
        """Returns the position behind what was worked on."""
        return self._order.cursor()

    def _cursor(self) -> bytes:
        return msgspec.msgpack.encode(self._reached())

    # Reading ----------------------------------------------------------------------------------

    def _read(self) -> Steps:
        while True:
            if self._bursts.waiting:
                yield from self._work_in_burst()
                continue
            if self._behind is not None:  # what the burst went through is known to be, now
                self._put_in_order(*self._behind)
                self._behind = None
            group = self._next()
            yield from self._pass_controls()
            if group is not None:
                yield from self._work(group)
                continue
            if (yield from self._work_gathered()):
                continue
            if self.pending and not self._more:
                yield from self.conclude_pending()
            if not (self.pending or self._order.holding) and all(p.drained for p in self._progress):
                yield from self.last_checkpoint()  # what an abort had held up was worked on meanwhile
            if (yield from self._pull(wait=not self.pending)):
                continue
            if self.pending:
                yield from self.conclude_pending()
            elif not self._gathered and (yield from self._ended()):
                return

    def _work_gathered(self, *, everything: bool = False) -> Steps:
        """Works on inputs that wait for others, unless they have to go on waiting; returns whether it did."""
        yield from ()
        return False

    def _next(self) -> Group | None:
        if not self._competing:
            return self._order.next(gaps_closed=self._gaps_closed)
        if not self._loose:
            return None
        held = (group := self._loose.popleft()).shares[0][0]
        if held.delivery.envelope.kind is Kind.EPOCH_END:
            self._order.ended_epochs.append([held])
            return self._next()
        return group

    def _pull(self, *, wait: bool) -> Steps:
        pulled = yield from self._receive(wait=wait)
        self._progress = list(pulled.progress)
        self._more = any(len(deliveries) >= self._limit for deliveries in pulled.deliveries)
        for number, deliveries in enumerate(pulled.deliveries):
            if deliveries:
                self._take(number, deliveries)
        if pulled.abandon == self.program.task.name:
            raise RunAborted(pulled.abandon)
        if any(pulled.markers):
            yield from self._work_gathered(everything=True)
        yield from self.take_markers(pulled.markers)
        return any(pulled.deliveries)

    def _receive(self, *, wait: bool) -> Steps:
        after = tuple(None if self._competing else reached for reached in self._after)
        return (yield Pull(after, self._limit, wait))

    def keep_markers(self, settlements: Settlements) -> Steps:
        """Settles markers with the next commit, or with the next checkpoint."""
        if self.holding is not None:
            yield from self.hold_markers(settlements, self._cursor())
            return
        self._worked = self._reached()
        yield from super().keep_markers(settlements)

    def _take(self, number: int, deliveries: Sequence[Delivery]) -> None:
        taken = 0 if self._loose else self._bursts.take(deliveries)
        if self._competing:
            self._loose += [group for d in deliveries[taken:] for group in groups_of(Held(number, d))]
            self._owned.update({message_of(delivery.token): delivery for delivery in deliveries})
            return
        self._after[number] = positions_of(deliveries, self._after[number])
        if taken:
            self._behind = number, deliveries[taken:]
        else:
            self._put_in_order(number, deliveries)

    def _put_in_order(self, number: int, deliveries: Sequence[Delivery]) -> None:
        parent = self.program.subscriptions[number][0]
        for delivery in deliveries:
            repeated = self._order.add(parent, number, delivery)
            if repeated is not None:
                how = repetition(repeated, self.program.entry.spec.name, self.start.asides)
                self.pending.settlements.append((delivery.token, how))

    def _ended(self) -> Steps:
        """Looks whether everything was read, after a pull that brought nothing."""
        if (yield from self.suspends(self._progress, ordering=self._order.holding)):
            return True
        if all(p.finished for p in self._progress) and not self._order.holding:
            yield from self.last_checkpoint()
            yield from self.last_markers()
            yield from self.last_checkpoint()
            return True
        aborted = any(p.aborted for p in self._progress)
        self._gaps_closed |= aborted and all(p.sealed for p in self._progress)
        if all(p.drained for p in self._progress):
            if not self._order.holding:
                yield from self.last_checkpoint()
            elif not aborted:
                yield from self._refuse_hole()
            if self._ended_epochs and not (self.holding and self.holding.inputs):
                yield from self.settle(Pending([], self._ended_epochs.settled()))
        return False

    def _refuse_hole(self) -> Steps:
        """Fails the run: everything has come, and yet what is held waits for something."""
        yield FailRun(hole_failure(self.program.entry.spec.name, self.program.entry.input_names, self._order))
        raise RunAborted(self.program.task.name)

    # Working ----------------------------------------------------------------------------------

    def _work_in_burst(self) -> Steps:
        """Works on inputs that came for the first time, up to one that is not walked straight through."""
        bursts, pending = self._bursts, self.pending
        assert bursts.walk is not None
        deliveries = bursts.waiting
        made = yield Burst(bursts.walk, deliveries, pending.publications, not self.outbox)
        pending.publications = made.publications
        if done := made.inputs:
            pending.inner += made.inner
            pending.settlements += [(delivery.token, _DELIVERED) for delivery in deliveries[:done]]
            pending.settlements += self._ended_epochs.settled()
            pending.seconds += made.seconds
            pending.inputs += done
            bursts.passed(deliveries[done - 1])
            if self.outbox:
                self._worked = self._reached()
        if made.answers is not None:
            bursts.waiting = deliveries[done + 1 :]
            bursts.passed(deliveries[done])
            yield from self._work(groups_of(Held(0, deliveries[done]))[0], made.answers)
            return
        bursts.waiting = deliveries[done:]
        if self.due():
            yield from self.conclude_pending()

    def _work(self, group: Group, answers: Sequence[object] = ()) -> Steps:
        """Works on one group; nodes of the task may have answered already."""
        if self._partitioned and (yield from self._is_of_others(group)):
            return
        suspect = group.suspect
        if suspect and self.pending:
            yield from self.conclude_pending()
        element = yield from self._assembly.element(group)
        yield from self._work_on(group, element, answers)
        if self.pending and (suspect or self.due()):
            yield from self.conclude_pending()

    def _work_on(self, group: Group, element: Element | Outcome, answers: Sequence[object]) -> Steps:
        """Walks what a group stands for, and takes down what it came to."""
        suspect, recalled = group.suspect, None
        if isinstance(element, Outcome):
            outcome, cause = element, None
        else:
            cause = element.cause
            if self._once and suspect and cause is None:
                recalled = yield Recall(element.input_id)
            if recalled is None:
                walked = self.walk.input(element, suspect=suspect)
                outcome = yield from self.meanwhile(resumed(walked, answers))
            else:
                outcome = Outcome()
                self.pending.recalled += recalled
                self._forget.append(element.input_id)
        done = self._order.finish(group)
        settlements = [(held.delivery.token, settlement(held, cause, outcome)) for held in done]
        settlements += self._ended_epochs.settled()
        if self.holding is not None:
            yield from self.hold(outcome, settlements, self._cursor(), data=has_data(done))
            return
        pending = self.pending
        if self._once and isinstance(element, Element) and cause is None and recalled is None:
            said = [publication for _, group in outcome.publications for publication in group]
            pending.once.append((element.input_id, said))
        else:
            pending.publications += outcome.publications
        pending.inner += outcome.inner
        pending.settlements += settlements
        pending.seconds += outcome.seconds
        pending.inputs += 1
        if self.outbox:
            self._worked = self._reached()

    def _is_of_others(self, group: Group) -> Steps:
        """Settles what another partition has; returns whether this was such a group."""
        whose = voice(group)
        if whose is Voice.SPEAK:
            return False
        if whose is Voice.SPLIT:
            yield FailRun(split_failure(self.program.entry.spec.name, group.origin))
            raise RunAborted(self.program.task.name)
        done = self._order.finish(group)
        settlements: Settlements = [(held.delivery.token, _SKIPPED) for held in done]
        settlements += self._ended_epochs.settled()
        if self.holding is not None:
            yield from self.hold(Outcome(), settlements, self._cursor(), data=has_data(done))
            return True
        self.pending.settlements += settlements
        if self.due():
            yield from self.conclude_pending()
        return True

    def _pass_controls(self) -> Steps:
        """Publishes the end of an epoch further down; it is settled with what follows it."""
        if self._order.ended_epochs:
            yield from self._work_gathered(everything=True)
        for ended in self._order.ended_epochs:
            self._ended_epochs.add(ended)
            if self.holding is None and (not self._partitioned or self.start.slot == 0):
                self.pending.publications.append(self.walk.control(ended[0].delivery.envelope))
                self.pending.inputs += 1
        if self._competing:
            self.pending.settlements += self._ended_epochs.settled()
        self._order.ended_epochs.clear()

    def conclude_pending(self) -> Steps:
        """Commits, publishes and settles what was worked on."""
        pending, self.pending = self.pending, Pending()
        commits = self.outbox and pending.inputs > 0
        if commits or pending.once:
            yield from self.report(pending)
        if commits:
            action = Commit(self.number + 1, msgspec.msgpack.encode(self._worked), pending.publications)
            yield from self.commit(action)
        said = pending.flat()
        if pending.once or self._forget:
            said += yield from self._keep_once(pending)
        yield from self.publish(said)
        yield from self.say_again(pending.recalled)
        yield from self.settle(pending)
        self._forget += [input_id for input_id, _ in pending.once]
        for token, _ in pending.settlements:
            self._owned.pop(message_of(token), None)

    def settle(self, pending: Pending) -> Steps:
        """Settles until nothing is unknown; of epochs that are over it is kept before."""
        if not self._competing:
            yield from self._ended_epochs.keep(pending.settlements)
        yield from super().settle(pending)

    def _keep_once(self, pending: Pending) -> Steps:
        """Records what is said of inputs that another may get, too; returns what of it is to be published."""
        forget, self._forget = self._forget, []
        stands = yield KeepOnce(pending.once, forget)
        said = []
        for (_, publications), stand in zip(pending.once, stands, strict=True):
            if stand is None:
                said += publications
            else:
                pending.recalled += stand
        return said

    # Abort ------------------------------------------------------------------------------------

    def _abandon(self) -> Steps:
        """Concludes what is done, then settles what waits for the failed node, until nothing more comes."""
        yield from self.conclude_pending()
        waiting: Settlements = [(d.token, abandonment(d)) for d in self._owned.values()]
        while True:
            yield from self.settle(Pending([], waiting))
            if not waiting and all(progress.finished for progress in self._progress):
                return
            after = tuple(None if self._competing else dict[int, int]() for _ in self._after)
            pulled = yield Pull(after, CONCLUDE_INPUTS, True)
            waiting = [
                self._given_up(number, delivery)
                for number, deliveries in enumerate(pulled.deliveries)
                for delivery in deliveries
            ]
            self._progress = list(pulled.progress)

    def _given_up(self, number: int, delivery: Delivery) -> tuple[DeliveryToken, Settlement]:
        """Settles what waits for a task that is given up: as what it is, where that was committed before."""
        if self.start.abandoned and not self._competing:
            repeated = self._order.add(self.program.subscriptions[number][0], number, delivery)
            if repeated is not None or was_worked_on(self.start.acquired, delivery.envelope.origin):
                said = repeated or Held(number, delivery)
                return delivery.token, repetition(said, self.program.entry.spec.name, self.start.asides)
        return delivery.token, abandonment(delivery)
