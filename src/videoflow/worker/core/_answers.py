"""What the shell answers to the actions of a core, and the end of a worker that cannot go on.

Used by the cores and by whoever performs their actions. It refuses nothing.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from videoflow.backends.messaging import Delivery
from videoflow.backends.outcomes import PublicationOutcome
from videoflow.backends.runtime import FirstFailure
from videoflow.worker.core._failures import Failure


class Progress(msgspec.Struct):
    """How far one subscription has come, as far as it could be read; all False where it could not."""

    drained: bool = False
    finished: bool = False
    aborted: bool = False
    sealed: bool = False


class Pulled(msgspec.Struct):
    """Deliveries and progress per subscription; `abandon` names the failed task of an aborting run.

    `markers` are deliveries per subscription to markers; they come with inputs or without. `at` is when it
    returned, in seconds of a clock that never goes back. `held_up`: nothing came, and as far as can be seen
    nothing will before something is settled, perhaps what this replica has.
    """

    deliveries: Sequence[Sequence[Delivery]]
    progress: Sequence[Progress]
    abandon: str | None = None
    markers: Sequence[Sequence[Delivery]] = ()
    at: float = 0.0
    held_up: bool = False


Outputs = Sequence[tuple[str, Any, str | None]]
"""What a node emitted: (port, value, key or None), in order."""


class Returned(msgspec.Struct):
    """What a node emitted, and the seconds that the call took."""

    outputs: Outputs
    seconds: float = 0.0


class ItemReady(msgspec.Struct):
    """What a source produced; `outputs` as of a node, ports without an output are skipped."""

    offset: int
    outputs: Outputs
    time_seconds: float | None = None
    source: str = ""
    seconds: float = 0.0


class SourceEnded(msgspec.Struct):
    """The source has no more items, or was stopped at an item boundary."""

    stopped: bool = False


class Sourced(msgspec.Struct):
    """What a source answered; `said` is one outcome for each publication held, where they are out."""

    answer: ItemReady | SourceEnded | Failure
    said: Sequence[PublicationOutcome] = ()


class WorkerFatal(Exception):
    """This worker cannot go on: it was fenced, sealed out or denied, or its node did not keep its word.

    Attributes:
        failure: What to tell where a node is to blame, or None.
    """

    def __init__(self, message: str, failure: FirstFailure | None = None) -> None:
        super().__init__(message)
        self.failure = failure
