"""The one place where user code is called: outputs are frozen, exceptions become descriptions.

Used by the shell. It refuses outputs that no edge carries, and outputs larger than their port declared.
"""

import dataclasses
import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from videoflow.errors import FlowError, ValueRefused, plain_text, said_by
from videoflow.graph import Emitted, remedy_for
from videoflow.wire import Value, freeze
from videoflow.worker.core.actions import Disposition, Failure

T = TypeVar("T")
Judge = Callable[[Exception], str]
_PACKAGE = Path(__file__).parent.parent
_LONGEST_PLACE, _LONGEST_TRACE = 300, 40_000  # characters
_MACHINERY = (_PACKAGE / "worker", _PACKAGE / "graph", _PACKAGE / "wire")


def guarded(judge: Judge, call: Callable[..., T], *arguments: Any) -> T | Failure:
    """Calls user code; an exception becomes a `Failure` with the node's own judgement.

    One that asks for the end of the program ends the run.

    Args:
        judge: `classify` of the node's invoker.
        call: The code.
        arguments: What it is called with.
    """
    try:
        return call(*arguments)
    except BaseException as error:  # noqa: BLE001  (user code: every exception is the node's failure, not ours)
        return judged(judge, error)


def judged(judge: Judge, error: BaseException) -> Failure:
    """Returns an exception of user code as a `Failure`, with the node's own judgement."""
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return describe(error, Disposition.FATAL)
    if not isinstance(error, Exception):  # an `async` node's CancelledError, say
        return describe(error, Disposition.TRANSIENT)
    # The judgement is user code too: one that fails ends the run.
    return guarded(lambda _: "fatal", lambda: describe(error, Disposition(judge(error))))


def describe(error: BaseException, disposition: Disposition) -> Failure:
    """Returns an exception in words: the innermost place that is the user's, and what led there."""
    told = traceback.TracebackException.from_exception(error)
    own = _own(told.stack)
    failure = Failure(disposition, said_by(error), plain_text(_place(own or told.stack), _LONGEST_PLACE))
    if own:
        told.stack = traceback.StackSummary.from_list(own)
    failure.exception = error
    failure.trace = plain_text("".join(told.format()), _LONGEST_TRACE)
    if isinstance(error, FlowError):
        failure.code, failure.remedy, failure.exit_status = error.code, error.remedy, error.exit_status
    failure.remedy = failure.remedy or remedy_for(error)
    return failure


def _place(frames: Sequence[traceback.FrameSummary]) -> str:
    if not frames:
        return ""
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


def _own(frames: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Leaves out the frames of the worker, which are the same for every node."""
    return [frame for frame in frames if not _is_machinery(frame.filename)]


@functools.lru_cache(maxsize=1024)
def _is_machinery(filename: str) -> bool:
    return any(Path(filename).is_relative_to(place) for place in _MACHINERY)


def frozen(outputs: Sequence[Emitted], limits: Mapping[str, int], node: str) -> list[Emitted]:
    """Returns outputs as an edge carries them.

    Args:
        outputs: What the node handed over.
        limits: Port → largest item in bytes, for ports that leave the task.
        node: For the error.

    Raises:
        ValueRefused: A value that no edge carries, or one larger than its port declared.
    """
    done: list[Emitted] = []
    for port, value, key in outputs:
        fixed = freeze(value)
        limit = limits.get(port)
        if limit is not None and (size := size_bytes(fixed)) > limit:
            raise ValueRefused(
                f"node {node} made an item of {size} bytes on port {port}{_shown(fixed)}",
                cause=f"before the run its items were taken to have {limit} bytes at most",
                remedy=f"set max_item_bytes of the node or of its class to {size}, or more if others"
                " are larger; pictures may grow in the middle of a video",
            )
        done.append((port, fixed, key))
    return done


def _shown(value: Value) -> str:
    """Returns the shape of an array, or of the largest one of a record, in words; else an empty text."""
    record = dataclasses.is_dataclass(value) and not isinstance(value, type)
    parts = [getattr(value, field.name) for field in dataclasses.fields(value)] if record else [value]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if not arrays:
        return ""
    shape = max(arrays, key=lambda array: array.nbytes).shape
    return f", with an array of {' x '.join(map(str, shape))}"


def size_bytes(value: Value) -> int:
    """Returns the bytes of the arrays, texts and byte strings in a frozen value."""
    kind = type(value)
    if kind is np.ndarray:
        return int(value.nbytes)
    if kind is bytes or kind is str:
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(size_bytes(part) for part in value)
    if isinstance(value, dict):
        return sum(size_bytes(part) for part in value.values())
    if isinstance(value, msgspec.Struct):
        return sum(size_bytes(getattr(value, name)) for name in value.__struct_fields__)
    if dataclasses.is_dataclass(value):
        return sum(size_bytes(getattr(value, field.name)) for field in dataclasses.fields(value))
    return 8
