"""Which process is meant, so that a recycled process number is not taken for the one that died.

Used by the run folder to judge whether a supervisor lives, and by the ledger of accelerators to judge whether
a holder does. It refuses to guess: a process of another host, boot or process namespace is neither alive nor
dead to us.
"""

import os
from pathlib import Path

import msgspec

_START_FIELD = 19  # of /proc/<pid>/stat, counted after the command's closing parenthesis
_PARENT_FIELD = 1
_ENDED_STATES = ("Z", "X")
_HALTED_STATE = "T"


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """One process, for as long as the machine runs.

    Attributes:
        pid: Process number, in its own namespace.
        started: Start time in clock ticks since boot; "" where the system does not tell.
        place: Boot and process namespace in which the number means something; "" where unknown.
    """

    pid: int
    started: str = ""
    place: str = ""


def this_process() -> ProcessIdentity:
    """Returns the identity of the calling process."""
    pid = os.getpid()
    return ProcessIdentity(pid=pid, started=_start_of(pid) or "", place=_place())


def is_alive(process: ProcessIdentity) -> bool | None:
    """Returns whether a process still runs, or None where that cannot be seen from here."""
    if process.place != _place():
        return None
    if process.started:
        return _start_of(process.pid) == process.started
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_halted(pid: int) -> bool:
    """Returns whether a process of ours was stopped by a signal, and waits to be continued."""
    fields = _fields_of(pid)
    return fields is not None and fields[0] == _HALTED_STATE


def is_within(pid: int, ancestor: int) -> bool:
    """Returns whether a process is another one, or was started by it, or by what it started.

    A process whose parent has ended belongs to nobody any more.
    """
    while pid > 1:
        if pid == ancestor:
            return True
        fields = _fields_of(pid)
        if fields is None:
            return False
        pid = int(fields[_PARENT_FIELD])
    return False


def this_boot() -> str:
    """Returns the id of this boot of this machine, which its containers share; "" where unknown."""
    return _place().partition("/")[0]


def _start_of(pid: int) -> str | None:
    """Returns the start time of a live process; None for one that is gone or waits to be reaped."""
    fields = _fields_of(pid)
    return None if fields is None or fields[0] in _ENDED_STATES else fields[_START_FIELD]


def _fields_of(pid: int) -> list[str] | None:
    """Returns what the system says of a process, from its state on; None where there is no such process."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return line.rpartition(")")[2].split()


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
