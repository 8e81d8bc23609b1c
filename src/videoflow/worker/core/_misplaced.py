"""Failures of a run whose inputs do not fit together; used by the core of a task that reads.

It refuses nothing: it says in words what the core has found.
"""

from collections.abc import Sequence

from videoflow.backends.coverage import Origin
from videoflow.backends.runtime import FirstFailure
from videoflow.errors import RunFailed
from videoflow.worker.core._order import OrderedInputs


def hole_failure(node: str, inputs: Sequence[str], order: OrderedInputs) -> FirstFailure:
    """Returns the failure where everything has come, and yet what is held waits for something.

    Args:
        node: The reader.
        inputs: What it calls its inputs.
        order: What it holds.
    """
    origin, silent = order.hole()
    names = " and ".join(inputs[number] for number in silent)
    return _failure(
        node,
        origin,
        f"never reached node {node}" if silent else f"came to node {node} a second time",
        f"{names} ended without a word of it" if silent else "its parents said it twice",
        "this is a defect; please report it with report.json and plan.json",
    )


def split_failure(node: str, origin: Origin) -> FirstFailure:
    """Returns the failure where the parents of one item went to two partitions."""
    return _failure(
        node,
        origin,
        f"meets in node {node} with parents whose keys differ",
        "its replicas share their input by key, and the parents of one item went to two of them",
        "give all that derive from one item the same key, or leave partition_by= out",
    )


def _failure(node: str, origin: Origin, happened: str, cause: str, remedy: str) -> FirstFailure:
    message = f"item {origin.ordinal} of {origin.node} {happened}"
    return FirstFailure(node=node, code=RunFailed.code, message=message, cause=cause, remedy=remedy)
