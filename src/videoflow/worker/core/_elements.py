"""From deliveries to the inputs of a node: an item, the list of a fan-out, or what meets in a join.

Used by the core of a task that reads, and by the walk for nodes that meet inside a task.
"""

from collections.abc import Sequence

from videoflow.backends.coverage import Cause, Hop, Origin, gravest
from videoflow.backends.messaging import Kind
from videoflow.ids import hash_id
from videoflow.worker.core._groups import Group, Held
from videoflow.worker.core.actions import Element


def element_of(run_id: str, group: Group, held: Held) -> Element:
    """Returns what one delivery says of a group's trace, without its value."""
    envelope = held.delivery.envelope
    skip = envelope.kind is Kind.SKIP
    input_id = envelope.publication_id
    if skip and envelope.intervals not in ((), ((group.origin.ordinal, group.last),)):
        input_id = hash_id(run_id, "skip", *group.origin, group.last, envelope.publication_id)
    deeper = len(envelope.path) > len(group.path)
    return Element(
        input_id,
        group.origin,
        envelope.path if skip or deeper else group.path,
        (),
        envelope.cause or Cause.SKIPPED if skip else None,
        group.last,
        key=envelope.key,
        source=envelope.source or envelope.origin.node,
        event_time=envelope.event_time,
        low=envelope.low,
        after=envelope.after,
    )


def many_of(elements: Sequence[Element], depth: int, *, missing_is_none: bool) -> Element:
    """Returns the items of a fan-out as one element, whose value is their list in the order of k.

    Args:
        elements: All n of them, skips included.
        depth: The fan-outs on the trace of the reader.
        missing_is_none: A skipped item is None in the list; otherwise it is left out.
    """
    lead = elements[0]
    values = [
        e.values[0] if e.cause is None else None for e in elements if e.cause is None or missing_is_none
    ]
    return Element(
        lead.input_id,
        lead.origin,
        lead.path[:depth],
        (values,),
        last=lead.last,
        key=lead.key,
        source=lead.source,
        event_time=lead.event_time,
        low=lead.low,
        after=lead.after,
        via=lead.via,
        parts={"": tuple((element.path, element.cause) for element in elements)},
    )


def none_of(element: Element) -> Element:
    """Returns what a fan-out that made nothing is to a deeper reader: no items, or a missing parent."""
    if element.cause is Cause.SKIPPED:
        element.values, element.cause = ([],), None
        element.parts = {"": ((element.path, Cause.SKIPPED),)}
    return element


def absence_of(origin: Origin, path: tuple[Hop, ...]) -> Element:
    """Returns what an input is to a join that never says anything of an origin."""
    return Element("", origin, path, (), Cause.SKIPPED, origin.ordinal, parts={"": ()})


def join(
    run_id: str,
    node: str,
    names: Sequence[str],
    members: Sequence[Element | None],
    *,
    missing_is_none: bool,
) -> Element:
    """Makes one element of what the parents of a join say of one trace (rule 2)."""
    present = [member for member in members if member is not None]
    causes = {
        name: Cause.ABORTED if member is None else member.cause
        for name, member in zip(names, members, strict=True)
        if member is None or member.cause is not None
    }
    said = [member for member in present if member.cause is None]
    lead = said[0] if said else present[0]
    path = "/".join(f"{hop.node}.{hop.port}.{hop.k}" for hop in lead.path)
    joined = Element(
        hash_id(run_id, node, "join", *lead.origin, path, lead.last),
        lead.origin,
        lead.path,
        tuple(None if m is None or m.cause is not None else m.values[0] for m in members),
        last=lead.last,
        key=lead.key,
        source=lead.source,
        event_time=lead.event_time,
        low=lead.low,
        after=lead.after,
        via=tuple(("", "") if m is None or not m.via else m.via[0] for m in members),
        parts={
            name: m.parts[""]
            for name, m in zip(names, members, strict=True)
            if m is not None and "" in m.parts
        },
    )
    gone = {name: cause for name, cause in causes.items() if cause is not None}
    if Cause.ABORTED in gone.values() or not said or (gone and not missing_is_none):
        joined.cause = gravest(gone.values())
    else:
        joined.missing = gone
    return joined
