"""Named barriers in the worker and the adapters: no-ops unless a test arms them.

Used by `reach("publish.sent")` at the points where a crash means something. It refuses unknown
barrier names when armed, so that a test cannot wait for a barrier that does not exist.
"""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

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
)


class FaultAction(StrEnum):
    """What an armed barrier does."""

    CRASH = "crash"
    RAISE = "raise"
    CALL = "call"


class InjectedFault(Exception):
    """Raised at a barrier that is armed with `RAISE`."""


@dataclass(frozen=True)
class Fault:
    """One planted fault: at which hit of which barrier, what happens.

    Attributes:
        barrier: One of `BARRIERS`.
        action: What happens there.
        hit: The n-th time the barrier is reached, counted from 1.
        record: Where a line `barrier` is appended before the action, so that a test can see that the
            fault fired; "" for nowhere.
    """

    barrier: str
    action: FaultAction = FaultAction.CRASH
    hit: int = 1
    record: str = ""

    def __post_init__(self) -> None:
        if self.barrier not in BARRIERS:
            raise ValueError(f"there is no barrier {self.barrier!r}; known are {', '.join(BARRIERS)}")


@dataclass
class _Armed:
    faults: Sequence[Fault]
    observer: Callable[[str], None] | None
    hits: dict[str, int] = field(default_factory=dict)


_armed: _Armed | None = None


def arm(faults: Sequence[Fault] = (), observer: Callable[[str], None] | None = None) -> None:
    """Arms faults in this process; `observer` is called with the name of each barrier reached."""
    global _armed
    _armed = _Armed(tuple(faults), observer)


def disarm() -> None:
    """Makes every barrier a no-op again."""
    global _armed
    _armed = None


def reach(barrier: str) -> None:
    """Says that the caller has come to a barrier."""
    if _armed is not None:
        _reach(_armed, barrier)


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
        if fault.action is FaultAction.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.action is FaultAction.RAISE:
            raise InjectedFault(barrier)
