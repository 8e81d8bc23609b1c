"""Inputs that wait to be given to a node together, and which of them are; part of the core that batches.

It refuses nothing, and it knows no clock.
"""

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from videoflow.worker.core._groups import CursorRecord, Group
from videoflow.worker.core._said import Element
from videoflow.worker.core._walk import Outcome


class Gathered(msgspec.Struct):
    """An input that waits.

    Attributes:
        group: What came.
        element: What it is to the node, or what it came to where it could not be read.
        before: The position of the task before it was taken, where its inputs are in order.
        since: When it was received, in seconds of the clock of `Pulled.at`.
        kind: Inputs of one kind may be given together; None for those that are not given to the node.
    """

    group: Group
    element: Element | Outcome
    before: list[CursorRecord]
    since: float
    kind: Hashable

    @property
    def called(self) -> bool:
        """Whether the node is given it: it is no skip, and could be read."""
        return is_called(self.element)


def is_called(element: Element | Outcome) -> bool:
    """Returns whether a node is given an input: it is no skip, and could be read."""
    return isinstance(element, Element) and element.cause is None


def kind_of(element: Element | Outcome, group_by: str | None) -> Hashable:
    """Returns what inputs must have in common to be given together.

    Args:
        element: The input.
        group_by: `shape`, or None where any may be given together.
    """
    if not isinstance(element, Element) or element.cause is not None:
        return None
    return () if group_by is None else tuple(map(_shape, element.values))


def _shape(value: object) -> Hashable:
    """Returns shape and type of an array, of the picture of a frame, of those in lists and dicts."""
    image = getattr(value, "image", value)
    if hasattr(image, "shape") and hasattr(image, "dtype"):
        return (*image.shape, str(image.dtype))
    if isinstance(value, list | tuple):
        return tuple(map(_shape, value))
    if isinstance(value, Mapping):
        return tuple((key, _shape(value[key])) for key in sorted(value))
    return type(value).__name__


def of_the_oldest(row: Sequence[Gathered], *, ordered: bool) -> list[Gathered]:
    """Returns those who go with the oldest input.

    Args:
        row: What waits, the oldest first.
        ordered: The inputs stay in order: the run at the head of the row, with skips between them.
    """
    first = next((one.kind for one in row if one.called), None)
    if not ordered:
        return [one for one in row if one.kind == first]
    run: list[Gathered] = []
    for one in row:
        if one.called and one.kind != first:
            break
        run.append(one)
    return run
