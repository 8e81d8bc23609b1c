"""Named barriers in the worker and the adapters: no-ops unless a test arms them.

Used by `reach("publish.sent")` at the points where a crash means something. It refuses unknown
barrier names when armed, so that a test cannot wait for a barrier that does not exist.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

BARRIERS = (
    "acquire.after",
    "receive.after",
    "process.before",
    "process.after",
    "payload.sealed",
    "publish.sent",
    "publish.accepted",
    "commit.before",
    "commit.after",
    "outbox.published",
    "settle.sent",
    "release.before",
    "tombstone.before",
    "flush.published",
    "terminator.sent",
    "source.item",
    "effect.done",
    "shm.appended",
    "shm.committed",
    "shm.settled",
    "claim.owned",
    "claim.changing",
    "claim.restored",
)


class FaultAction(StrEnum):
    """What an armed barrier does.

    `CRASH`: this process is killed. `RAISE`: `InjectedFault`. `DROP`: `ResponseLost`, which whoever stands
    for a transport turns into an unknown outcome. `DELAY`: so many seconds pass. `PAUSE`, `CALL`: what
    `Fault.call` does, which may wait until it is let go.
    """

    CRASH = "crash"
    RAISE = "raise"
    DROP = "drop"
    DELAY = "delay"
    PAUSE = "pause"
    CALL = "call"


class InjectedFault(Exception):
    """Raised at a barrier that is armed with `RAISE`."""


class ResponseLost(InjectedFault):
    """Raised at a barrier that is armed with `DROP`: what was done is done, and nobody hears of it."""


_declared: set[str] = set()


def declare(*barriers: str) -> None:
    """Makes barriers of an adapter of your own known, such as `mystore.written`."""
    _declared.update(barriers)


@dataclass(frozen=True)
class Fault:
    """One planted fault: at which hit of which barrier, what happens.

    Attributes:
        barrier: One of `BARRIERS`.
        action: What happens there.
        hit: The n-th time the barrier is reached, counted from 1.
        record: Where a line `barrier` is appended before the action, so that a test can see that the
            fault fired; "" for nowhere.
        seconds: Of a delay.
        call: What a pause or a call does; of a delay, instead of waiting.
    """

    barrier: str
    action: FaultAction = FaultAction.CRASH
    hit: int = 1
    record: str = ""
    seconds: float = 0.0
    call: Callable[[], None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.barrier not in BARRIERS and self.barrier not in _declared:
            known = ", ".join([*BARRIERS, *sorted(_declared)])
            raise ValueError(f"there is no barrier {self.barrier!r}; known are {known}")


@dataclass
class _Armed:
    faults: Sequence[Fault]
    observer: Callable[[str], None] | None
    hits: dict[str, int] = field(default_factory=dict)
    fired: list[Fault] = field(default_factory=list)


_armed: _Armed | None = None
_reached: Callable[[str], None] | None = None


def arm(faults: Sequence[Fault] = (), observer: Callable[[str], None] | None = None) -> None:
    """Arms faults in this process; `observer` is called with the name of each barrier reached."""
    global _armed, _reached
    _armed = _Armed(tuple(faults), observer) if faults else None
    _reached = observer if _armed is None else partial(_reach, _armed)


def disarm() -> None:
    """Makes every barrier a no-op again."""
    global _armed, _reached
    _armed = _reached = None


def fired() -> tuple[Fault, ...]:
    """Returns the armed faults that have fired in this process."""
    return () if _armed is None else tuple(_armed.fired)


def reach(barrier: str) -> None:
    """Says that the caller has come to a barrier."""
    if _reached is not None:
        _reached(barrier)


def _reach(armed: _Armed, barrier: str) -> None:
    hit = armed.hits[barrier] = armed.hits.get(barrier, 0) + 1
    if armed.observer is not None:
        armed.observer(barrier)
    for fault in armed.faults:
        if fault.barrier != barrier or fault.hit != hit:
            continue
        if fault.record:
            with open(fault.record, "a", encoding="utf-8") as file:
                file.write(f"{barrier} {os.getpid()}\n")
        armed.fired.append(fault)
        _act(fault)


def _act(fault: Fault) -> None:
    match fault.action:
        case FaultAction.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        case FaultAction.RAISE:
            raise InjectedFault(fault.barrier)
        case FaultAction.DROP:
            raise ResponseLost(fault.barrier)
        case _ if fault.call is not None:
            fault.call()
        case _:
            threading.Event().wait(fault.seconds)
