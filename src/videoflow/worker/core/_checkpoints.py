"""Sinks that keep their inputs until a checkpoint makes them durable; part of the core that reads."""

from collections.abc import Sequence

from videoflow.worker.core._blame import blamed
from videoflow.worker.core._concluding import Start
from videoflow.worker.core._markers import Marked
from videoflow.worker.core._pending import HeldInput, Holding, Pending, Settlements
from videoflow.worker.core._walk import Outcome
from videoflow.worker.core.actions import Checkpoint, Commit, Failure, HoldState, Progress, Steps


class Checkpointing(Marked):
    """Holds what a sink has taken, and settles it once it is durable.

    Args:
        start: What the core starts from.
    """

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.holding = Holding() if start.program.checkpointing else None
        self._finished_checkpoint = False
        spare = [found.credit_items - found.hold_items for _, found in start.program.subscriptions]
        self._kept = start.program.task.checkpoint_items + min(spare, default=0)
        self.suspended: bool | None = None

    def hold(self, outcome: Outcome, settlements: Settlements, cursor: bytes, *, data: bool) -> Steps:
        """Keeps an input, and asks the sink what of what it holds is durable now.

        What never comes to the sink waits for what came to it before, so that the cursor passes all of it at
        once. Where this uses up what may wait, the sink is to make everything durable.

        Args:
            outcome: What came of the input.
            settlements: What is settled with it.
            cursor: The position behind it.
            data: It carries data; otherwise it is skips alone, and changed nothing.
        """
        holding = self.holding
        assert holding is not None
        self._finished_checkpoint = False
        holding.inputs.append(HeldInput(outcome.consumed, cursor, settlements, outcome.inner, data))
        if outcome.consumed:
            yield from self._checkpoint(final=False, hold=True)
        else:
            if data:
                yield HoldState()
            if holding.unsettled == 0:
                yield from self._settle_durable(holding.durable(0))
        count, most = len(holding.inputs), self.program.task.checkpoint_items
        if count > self._kept or (count > most and holding.data > most):
            yield from self._checkpoint(final=True)

    def hold_markers(self, settlements: Settlements, cursor: bytes) -> Steps:
        """Keeps markers that the sink took, until it has made durable what came behind them."""
        assert self.holding is not None
        self._finished_checkpoint = False
        self.holding.inputs.append(HeldInput(0, cursor, settlements, [], markers=True))
        yield HoldState()

    def suspends(self, progress: Sequence[Progress], *, ordering: bool) -> Steps:
        """Asks once, when all is read, whether the run is to be resumed; returns whether it is.

        Args:
            progress: How far each subscription has come; what is held is settled by a checkpoint alone.
            ordering: Something waits for its turn.
        """
        read = all(p.finished if self.holding is None else p.drained for p in progress)
        if self.suspended is None and read and not (ordering or any(p.aborted for p in progress)):
            if self.holding is not None:  # what is kept will be walked again, and say the same
                inner = [fate for held in self.holding.inputs for fate in held.inner]
                yield from self.settle(Pending([], [], inner))
            self.suspended = yield from self.to_resume()
        return self.suspended

    def last_checkpoint(self) -> Steps:
        """Lets the sink make durable what it holds, once nothing more comes."""
        if self.holding is None or self._finished_checkpoint:
            return
        self._finished_checkpoint = True
        yield from self._checkpoint(final=True)

    def flushed_into(self, consumed: int) -> Steps:
        """Lets the sink make durable what was flushed into it, before that is committed."""
        if self.holding is not None and consumed:
            yield from self._durable(consumed, final=True)

    def _checkpoint(self, *, final: bool, hold: bool = False) -> Steps:
        assert self.holding is not None
        count = yield from self._durable(self.holding.unsettled, final=final, hold=hold)
        yield from self._settle_durable(self.holding.durable(count, final=final))

    def _durable(self, held: int, *, final: bool, hold: bool = False) -> Steps:
        """Asks the sink how many of the inputs that it holds are durable now."""
        assert self.program.checkpointing is not None
        name = self.program.checkpointing.spec.name
        count = yield Checkpoint(name, held, final, hold)
        if isinstance(count, Failure):
            raise blamed(name, f"node {name} failed in checkpoint", count)
        if count > held:
            raise blamed(name, f"node {name} called {count} inputs durable, it held {held}")
        if final and count < held:
            raise blamed(name, f"node {name} left {held - count} inputs undurable at its end")
        return count

    def _settle_durable(self, done: list[HeldInput]) -> Steps:
        if not done:
            return
        settlements = [settlement for held in done for settlement in held.settlements]
        pending = Pending([], settlements, [fate for held in done for fate in held.inner])
        yield from self.report(pending)
        changes = sum(held.data for held in done)
        yield from self.commit(Commit(self.number + 1, done[-1].cursor, held=changes))
        yield from self.settle(pending)
