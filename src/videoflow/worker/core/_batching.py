"""The core of a task whose first node takes several inputs in one call.

Used in place of the core that reads, where the node says `batch=`. What an input comes to is what it comes
to alone: a call answers for several, and each is walked with its own answer. It refuses to wait where no more
can come, and to give a suspect to a node together with others.
"""

from collections.abc import Sequence

from videoflow.planner.plan import InputMode
from videoflow.worker.core._concluding import CONCLUDE_INPUTS, CONCLUDE_SETTLEMENTS, Start
from videoflow.worker.core._core import ReaderCore
from videoflow.worker.core._failures import Failure
from videoflow.worker.core._gathered import Gathered, is_called, kind_of, of_the_oldest
from videoflow.worker.core._groups import CursorRecord, Group
from videoflow.worker.core.actions import CallBatch, Element, Pull, Steps


class BatchingCore(ReaderCore):
    """The core of a task that reads, whose entry node takes several inputs in one call.

    Args:
        start: What the core starts from; its entry node has `batch=`.
    """

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        batch = start.program.entry.spec.options.batch
        assert batch is not None
        self._batch = batch
        self._ordered = start.program.task.mode is not InputMode.COMPETING
        self._in_hand: list[CursorRecord] | None = None
        self._now = 0.0
        self._held_up = False
        self._behind_news = False  # a pull may have told of the end while inputs still waited for others

    # Reading ----------------------------------------------------------------------------------

    def _receive(self, *, wait: bool) -> Steps:
        after = tuple(None if self._competing else reached for reached in self._after)
        row, most = self._gathered, self._batch.max_items
        spare = self.program.task.prefetch - len(row)
        self._limit = max(1, most + spare if self._competing else max(most, CONCLUDE_INPUTS))
        until = row[0].since + self._batch.max_wait_seconds if row else None
        pulled = yield Pull(after, self._limit, wait and not self._behind_news, until)
        self._now, self._held_up = pulled.at, pulled.held_up
        self._behind_news = False
        return pulled

    def _next(self) -> Group | None:
        before = self._order.cursor() if self._ordered else []
        group = super()._next()
        self._in_hand = None if group is None else before
        return group

    def _reached(self) -> list[CursorRecord]:
        """Returns the position before what was taken out of the order and is not worked on."""
        if self._gathered:
            return self._gathered[0].before
        return super()._reached() if self._in_hand is None else self._in_hand

    # Working ----------------------------------------------------------------------------------

    def _work(self, group: Group, answers: Sequence[object] = ()) -> Steps:
        """Lets an input wait for others; a suspect is worked on alone, behind those before it."""
        if group.suspect:
            yield from self._work_gathered(everything=True)
            self._in_hand = None
            yield from super()._work(group, answers)
            return
        if self._partitioned and (yield from self._is_of_others(group)):
            return
        element = yield from self._assembly.element(group)
        before, self._in_hand = self._in_hand or [], None
        if not (is_called(element) or (self._ordered and self._gathered)):
            yield from self._work_on(group, element, answers)
        else:
            kind = kind_of(element, self._batch.group_by)
            self._gathered.append(Gathered(group, element, before, self._now, kind))
            while self._is_full():
                yield from self._call_oldest()
        if self.pending and self.due():
            yield from self.conclude_pending()

    def _is_full(self) -> bool:
        row = self._gathered
        if not self._ordered:
            return len(row) >= self._batch.max_items
        run = of_the_oldest(row, ordered=True)
        called = sum(one.called for one in run)
        return called >= self._batch.max_items or len(run) < len(row) or len(row) >= CONCLUDE_SETTLEMENTS

    def _work_gathered(self, *, everything: bool = False) -> Steps:
        """Gives the oldest inputs to the node, where they have waited long enough or no more can come."""
        worked = False
        while self._gathered and (everything or self._is_over()):
            yield from self._call_oldest()
            worked = True
            if self.pending and self.due():
                yield from self.conclude_pending()
        return worked

    def _is_over(self) -> bool:
        if self._held_up or all(progress.drained for progress in self._progress):
            return True
        return self._now >= self._gathered[0].since + self._batch.max_wait_seconds

    def _call_oldest(self) -> Steps:
        """Calls the node for the group of the oldest input, and walks each of it with its answer."""
        name = self.program.entry.spec.name
        members = of_the_oldest(self._gathered, ordered=self._ordered)
        called = [one for one in members if one.called]
        answers: list[Sequence[object]] = [()] * len(called)
        if called:
            elements = [one.element for one in called if isinstance(one.element, Element)]
            answer = yield from self.meanwhile(_called(name, elements, called))
            if not isinstance(answer, Failure):
                answers = [(each,) for each in answer]
            elif len(called) == 1:
                answers = [(answer,)]
        self._held_up, self._behind_news = False, True
        given = iter(answers)
        if not self._ordered:
            gone = set(map(id, members))
            self._gathered = [one for one in self._gathered if id(one) not in gone]
        for one in members:
            if self._ordered:
                del self._gathered[0]
            yield from self._work_on(one.group, one.element, next(given) if one.called else ())


def _called(name: str, elements: Sequence[Element], called: Sequence[Gathered]) -> Steps:
    """Calls a node for several inputs at once; returns what it answers."""
    return (yield CallBatch(name, elements, [one.since for one in called]))
