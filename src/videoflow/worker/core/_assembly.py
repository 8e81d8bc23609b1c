"""What a group is to the node that reads it: its bytes are loaded, and its members made one element.

Used by the core of a task that reads. It refuses nothing: an item whose bytes cannot be had is put aside, and
said to be dead.
"""

from collections.abc import Iterator

from videoflow.backends.coverage import Cause
from videoflow.backends.messaging import Kind
from videoflow.planner.plan import InputMode
from videoflow.worker.core._elements import absence_of, element_of, join, many_of, none_of
from videoflow.worker.core._groups import Group, Held
from videoflow.worker.core._program import TaskProgram
from videoflow.worker.core._settling import deliveries_of
from videoflow.worker.core._walk import Walk
from videoflow.worker.core.actions import Element, Failure, Load, PutAside, Steps


class Assembly:
    """Makes elements of groups.

    Attributes:
        joins: The inputs meet by trace; otherwise each is an input of its own.
        deeper: Per input: whether it has more fan-outs on its trace than the reader.
        depth: The fan-outs on the trace of the reader.
    """

    def __init__(self, program: TaskProgram, walk: Walk) -> None:
        self._program = program
        self._walk = walk
        self.joins = program.task.mode is InputMode.JOIN
        self.deeper = program.deeper if self.joins else (False,) * len(program.task.inputs)
        self.depth = len(program.entry.spec.scope)

    def element(self, group: Group) -> Steps:
        """Makes the element that a group stands for; an `Outcome` where its bytes cannot be had."""
        given = [held for member in group.members for held in deliveries_of(member)]
        said = [element_of(self._program.run_id, group, held) for held in given]
        loaded = tuple(h.delivery if h.delivery.envelope.kind is Kind.DATA else None for h in given)
        failure = None
        if any(delivery is not None for delivery in loaded):
            values = yield Load(loaded)
            if isinstance(values, Failure):
                failure = values
                values = (None,) * len(said)
            for element, value, delivery in zip(said, values, loaded, strict=True):
                if delivery is not None:
                    element.values = (value,)
        element = self._one(group, said)
        if failure is None or element.cause is not None:
            return element
        came = [m.delivery.envelope if isinstance(m, Held) else None for m in group.members]
        reference = yield PutAside(self._program.entry.spec.name, element, failure, 1, came)
        element.cause, element.values = Cause.DEAD_LETTER, ()
        outcome = yield from self._walk.input(element, suspect=False)
        outcome.record_ref = reference
        return outcome

    def _one(self, group: Group, said: list[Element]) -> Element:
        entry = self._program.entry
        members = self._members(group, iter(said))
        lead = members[0]
        if lead is not None and not self.joins:
            return lead
        none = entry.spec.options.missing == "none"
        return join(self._program.run_id, entry.spec.name, entry.input_names, members, missing_is_none=none)

    def _members(self, group: Group, said: Iterator[Element]) -> list[Element | None]:
        """Returns what each input says of a group's trace: an item, a list of items, or nothing."""
        none = self._program.entry.spec.options.missing == "none"
        members: list[Element | None] = []
        for number, (member, deeper) in enumerate(zip(group.members, self.deeper, strict=True)):
            if member is None:
                absent = group.absent[number]
                members.append(absence_of(group.origin, group.path) if absent else None)
            elif isinstance(member, list):
                items = [next(said) for _ in member]
                members.append(many_of(items, self.depth, missing_is_none=none))
            else:
                one = next(said)
                members.append(none_of(one) if deeper else one)
        return members
