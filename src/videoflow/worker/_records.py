"""Dead letters: what was put aside, self-contained.

Used by the shell. It refuses to copy more than its budget: what is left out is named with its size.
"""

from videoflow import wire
from videoflow.backends.messaging import Kind
from videoflow.backends.runtime import DeadLetter
from videoflow.errors import ValueRefused
from videoflow.ids import hash_id
from videoflow.worker._calls import size_bytes
from videoflow.worker.core import TaskProgram
from videoflow.worker.core.actions import PutAside

MEMBER_BUDGET_BYTES = 64 * 1024 * 1024


def dead_letter(program: TaskProgram, action: PutAside, wall_seconds: float) -> DeadLetter:
    """Returns the record of an input that was put aside, its members copied within a budget.

    The copy goes through `wire` alone, never through user code or a decoder (rule 17). Of an input that
    cannot be decoded the bytes are kept as they came, without what lay in the payload store.
    """
    element = action.element
    record_id = hash_id(program.run_id, action.node, element.input_id)
    node = next(node for node in program.nodes if node.spec.name == action.node)
    members: dict[str, bytes] = {}
    omitted: dict[str, int] = {}
    budget = MEMBER_BUDGET_BYTES
    names = (element.marker,) if element.marker else node.input_names
    for name, came in zip(names, action.unread, strict=False):
        if came is not None and came.kind is Kind.DATA:
            if came.payloads:
                omitted[name] = came.size_bytes
            else:
                members[name] = bytes(came.body)
    for name, value in zip(names, () if action.unread else element.values, strict=False):
        size = size_bytes(value)
        if size > budget:
            omitted[name] = size
            continue
        budget -= size
        members[name] = _copied(value)
    return DeadLetter(
        record_id=record_id,
        label=f"{element.origin.ordinal}-{record_id[:4]}",
        run_id=program.run_id,
        node=action.node,
        task=program.task.name,
        input_id=element.input_id,
        origin=(element.origin.node, element.origin.epoch, element.origin.ordinal),
        path=tuple((hop.node, hop.port, hop.k, hop.n) for hop in element.path),
        attempts=action.attempts,
        error=action.failure.error,
        where=action.failure.where,
        trace=action.failure.trace,
        event_time=element.event_time,
        source=element.source,
        members=members,
        omitted=omitted,
        at_seconds=wall_seconds,
    )


def _copied(value: wire.Value) -> bytes:
    try:
        return wire.encode_value(value).body
    except ValueRefused:
        return b""
