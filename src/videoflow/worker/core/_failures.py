"""What an exception of user code means, and how it is described; used by actions and answers of a core."""

from enum import StrEnum

import msgspec

from videoflow.errors import NodeFailed


class Disposition(StrEnum):
    """What an exception means for its node."""

    POISON = "poison"
    TRANSIENT = "transient"
    FATAL = "fatal"


class Failure(msgspec.Struct):
    """An exception of user code, described for records.

    Attributes:
        disposition: The node's own judgement.
        error: `Type: text`.
        where: File, line and function, or "".
        trace: The traceback as text, or "".
        code: Stable code.
        remedy: What to do, or "".
        exit_status: Of a run that fails by it.
        exception: The exception itself, for chaining within the process.
    """

    disposition: Disposition
    error: str
    where: str = ""
    trace: str = ""
    code: str = NodeFailed.code
    remedy: str = ""
    exit_status: int = NodeFailed.exit_status
    exception: BaseException | None = None
