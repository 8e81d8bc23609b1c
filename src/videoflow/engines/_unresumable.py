"""How a run is asked to stop so that another can go on with it, by its handle or by a command.

Used by the engines and by `videoflow stop`. It refuses a run that is stopping already.
"""

from videoflow.backends.runtime import FlowRuntime
from videoflow.errors import UsageError
from videoflow.worker import RESUMABLE_NOTE


def note_resumable(records: FlowRuntime, *, deadline: float) -> None:
    """Notes in the records of a run that it is stopped to be resumed; before it is told to stop.

    Args:
        records: Of the run.
        deadline: Monotonic seconds.
    """
    records.put_note(RESUMABLE_NOTE, b"", deadline=deadline)


def refuse_stopping() -> UsageError:
    """Returns the refusal of a run that is stopping already."""
    return UsageError(
        "the run is stopping already, and not to be resumed",
        effect="it goes on stopping",
        remedy="ask for it the first time",
    )
