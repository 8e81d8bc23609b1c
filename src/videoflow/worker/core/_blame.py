"""Records of failures that end a run or a worker, with the node that is to blame.

Used by the cores, and by the shell where a node fails outside of an input. It refuses nothing.
"""

import msgspec

from videoflow.backends.coverage import Origin
from videoflow.backends.runtime import FirstFailure
from videoflow.worker.core._answers import WorkerFatal
from videoflow.worker.core._failures import Disposition, Failure
from videoflow.worker.core._said import Element


def first_failure(node: str, element: Element, failure: Failure, attempts: int, limit: int) -> FirstFailure:
    """Returns the record of a failure that ends the run."""
    place = f"item {element.origin.ordinal} of {element.source or element.origin.node}"
    return FirstFailure(
        node=node,
        code=failure.code,
        message=f"node {node}, {place}, attempt {attempts} of {limit}",
        cause=failure.error,
        where=failure.where,
        remedy=failure.remedy or "mend the node and run again",
        exit_status=failure.exit_status,
    )


def blamed(node: str, message: str, failure: Failure | None = None) -> WorkerFatal:
    """Returns the end of a worker whose sink failed, or did not keep its word, in a checkpoint.

    Args:
        node: The sink.
        message: What it did.
        failure: What its code raised, or None.
    """
    known = failure or Failure(
        Disposition.FATAL,
        "checkpoint returns how many of the oldest unsettled inputs are durable now; all, at the end",
        remedy="mend the checkpoint of this node, and run again",
    )
    record = first_failure(node, Element("", Origin(node, 0, 0)), known, 1, 1)
    return WorkerFatal(message, msgspec.structs.replace(record, message=message))
