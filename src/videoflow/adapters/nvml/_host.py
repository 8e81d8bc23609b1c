"""One reading of the host, with a limit on how long the driver may take."""

import threading
from collections.abc import Callable

from videoflow.adapters.nvml._library import LibraryLacking, read_through_library
from videoflow.adapters.nvml._reading import HostReading
from videoflow.adapters.nvml._smi import read_through_command
from videoflow.backends.outcomes import Observation, UnknownReason, unknown
from videoflow.clock import Clock

ANSWER_SECONDS = 10.0
"""How long a driver may take to answer: one that has to be loaded first takes seconds."""
_reading = threading.Lock()


def read_host(
    host: str, clock: Clock, *, links: bool = False, answer_seconds: float = ANSWER_SECONDS
) -> Observation[HostReading]:
    """Returns what this host's GPUs say; Unknown where it could not be listed whether there are any.

    Args:
        host: What it is called in identities.
        clock: Time.
        links: Whether to ask also how near its GPUs are to each other.
        answer_seconds: After so long it is Unknown, and the call that hangs is left to itself.
    """
    return _within(answer_seconds, clock, lambda: _read(host, clock, links=links))


def _read(host: str, clock: Clock, *, links: bool) -> Observation[HostReading]:
    try:
        return read_through_library(host, clock.monotonic(), links=links)
    except LibraryLacking as lacking:
        return read_through_command(host, clock.monotonic(), str(lacking))


def _within(
    seconds: float, clock: Clock, read: Callable[[], Observation[HostReading]]
) -> Observation[HostReading]:
    """Runs a reading in a thread that may be left behind: a driver that hangs cannot be interrupted."""
    if not _reading.acquire(timeout=seconds):
        detail = f"an earlier question to the driver has not been answered for {seconds:g} s"
        return unknown(UnknownReason.TIMEOUT, clock.monotonic(), detail)
    found: list[Observation[HostReading]] = []
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            found.append(read())
        except BaseException as error:  # raised again where the answer is waited for
            failed.append(error)
            raise
        finally:
            _reading.release()

    thread = threading.Thread(target=attempt, name="videoflow-gpus", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if found:
        return found[0]
    return unknown(
        UnknownReason.TIMEOUT, clock.monotonic(), f"the driver did not answer within {seconds:g} s"
    )
