"""What went into a node and what came out of it: no input may vanish between two edges.

Used by the account of a run. Each edge has its own two ends; this compares one edge with the next: of every
input that a task settled, each of its ports, and each edge inside it, must say something. It refuses
nothing: whether a hole is a fault is the report's to judge, since a run that was cut short may leave some.
"""

from collections.abc import Iterable, Sequence

from videoflow.backends.coverage import Coverage, FateKind, OriginRecord
from videoflow.backends.intervals import IntervalSet
from videoflow.backends.outcomes import Known, Observation

Records = Observation[tuple[OriginRecord, ...]]
Origins = dict[tuple[str, int], IntervalSet]


def taken(inputs: Iterable[Records]) -> Origins:
    """Returns the ordinals that a task settled on its inputs and has to speak of, by origin.

    What was abandoned is left out; an input that could not be read says nothing.
    """
    found: Origins = {}
    for records in inputs:
        if not isinstance(records, Known):
            continue
        for record in records.value:
            ordinals = found.setdefault((record.node, record.epoch), IntervalSet())
            for kind, _, intervals in record.ordinals:
                for first, last in intervals if kind != FateKind.ABANDONED.value else ():
                    ordinals.add(first, last)
            if all(kind != FateKind.ABANDONED.value for kind, _, _ in record.deep_items):
                for first, last in record.deep_ordinals:
                    ordinals.add(first, last)
    return found


def first_hole(wanted: Origins, said: Records) -> tuple[str, int] | None:
    """Returns the first (origin node, ordinal) that was taken and not spoken of, or None."""
    if not isinstance(said, Known):
        return None
    closed = _closed(said.value)
    for (node, epoch), ordinals in sorted(wanted.items()):
        spoken = closed.get((node, epoch), IntervalSet())
        for first, last in ordinals.intervals():
            gaps = spoken.missing(first, last)
            if gaps:
                return node, gaps[0][0]
    return None


def _closed(records: Sequence[OriginRecord]) -> Origins:
    coverage = Coverage()
    coverage.merge(records)
    return {origin: found.closed for origin, found in coverage.origins.items()}
