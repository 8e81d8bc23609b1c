"""One worker process, from its start to its reaping.

Used by the supervisor of the local engine. A worker runs in a session of its own, with two inherited sockets:
the control link, and a lifeline on which nothing is ever sent. It refuses to leave anything that the worker
started: its process group ends with it.
"""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import IO

from videoflow.errors import EnvironmentFault
from videoflow.worker.link import Boot, Link, LinkClosed, Message
from videoflow.worker.page import Page, make_page

_REMEDIES = {
    errno.EMFILE: "allow more open files (ulimit -n), fuse nodes, or run with --engine threads",
    errno.EAGAIN: "allow more processes (ulimit -u), fuse nodes, or run with --engine threads",
    errno.ENOMEM: "free memory, fuse nodes, or run with --engine threads",
}
_LOG_LINES = 24
_LOG_BYTES = 8192
# A frame is made where the one before was freed: glibc would give its pages back to the kernel, which clears
# new ones. The names are those of mallopt(3); whoever has set them means it, and other C libraries do not
# look.
_HEAP: Mapping[str, str] = MappingProxyType(
    {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
)
_NOTHING: Mapping[str, str] = MappingProxyType({})


class WorkerProcess:
    """One incarnation of a replica.

    Attributes:
        pid: Its process number, which is also that of its session.
        pidfd: Polls readable when it has died.
        page: What it did so far; readable until `reap` and after.
        link: To talk to it.
    """

    def __init__(
        self,
        boot: Boot,
        descriptors: Sequence[int],
        nodes: Sequence[str],
        log: Path,
        told: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Starts a worker and queues its boot document.

        Args:
            boot: What it is to be.
            descriptors: Those of its kit; duplicated here, so the caller may close them.
            nodes: The nodes of its task, in order.
            log: Where its output is appended.
            told: Environment variables beyond those that it inherits.

        Raises:
            EnvironmentFault: The system gives no process, or the log cannot be written.
        """
        self.log = log
        self._told = told
        self._to_send: list[int] = []
        try:
            with ExitStack() as undone:
                undone.callback(self._close_sent)
                ours = self._begin(descriptors, nodes, undone)
                undone.pop_all()
        except OSError as error:
            raise not_startable(boot.task, error) from error
        ours.setblocking(False)
        self.link = Link(ours)
        self.link.queue(boot, self._to_send)

    def _begin(self, descriptors: Sequence[int], nodes: Sequence[str], undone: ExitStack) -> socket.socket:
        """Starts the process; returns our end of the control link.

        Args:
            descriptors: To be sent.
            nodes: Of the task.
            undone: Takes what is to be done where this fails half way.
        """
        self._to_send.append(make_page())
        for number in descriptors:
            self._to_send.append(os.dup(number))
        self.page = Page(os.dup(self._to_send[0]), nodes)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undone.callback(ours.close)
        with theirs, self.log.open("ab") as output:
            self._lifeline, their_lifeline = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undone.callback(self._lifeline.close)
            with their_lifeline:
                self._process = _started(output, (theirs.fileno(), their_lifeline.fileno()), self._told)
        undone.callback(self._process.wait)
        undone.callback(self._process.kill)
        self.pid = self._process.pid
        self.pidfd = os.pidfd_open(self.pid)
        return ours

    def flush(self) -> bool:
        """Sends what is queued; returns whether nothing is left, also when the worker is gone."""
        try:
            done = self.link.flush()
        except LinkClosed:
            done = True
        if done:
            self._close_sent()
        return done

    def take(self) -> tuple[list[Message], bool]:
        """Returns what the worker has said since the last time, and whether it may say more."""
        said = []
        try:
            while (received := self.link.receive()) is not None:
                said.append(received[0])
        except LinkClosed:
            return said, False
        return said, True

    def kill(self) -> None:
        """Ends it now; `pidfd` tells when it has."""
        self._process.kill()

    def interrupt_to_write_stacks(self) -> None:
        """Lets it write the stacks of its threads to its log; only where it has begun to work."""
        os.kill(self.pid, signal.SIGUSR1)

    def reap(self) -> int:
        """Reaps the dead worker, ends whatever it started, and returns its exit status (negative: signal)."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # before its number is free again
        status = self._process.wait()
        os.close(self.pidfd)
        self._lifeline.close()
        self.link.close()
        self._close_sent()
        return status

    def last_lines(self) -> str:
        """Returns the last lines of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _LOG_BYTES))
                lines = deque(file.read().decode(errors="replace").splitlines(), _LOG_LINES)
        except OSError:
            return ""
        return "\n".join(lines)

    def note(self, text: str) -> None:
        """Appends a line of the supervisor's to its log."""
        with contextlib.suppress(OSError), self.log.open("ab") as file:
            file.write(f"supervisor: {text}\n".encode())

    def _close_sent(self) -> None:
        while self._to_send:
            os.close(self._to_send.pop())


def _started(
    output: IO[bytes], inherited: tuple[int, int], told: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "videoflow.worker.process", *map(str, inherited)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**_HEAP, **os.environ, **told},
        pass_fds=inherited,
        start_new_session=True,
    )


def not_startable(task: str, error: OSError) -> EnvironmentFault:
    """Returns what to say where the system gives no process, or not what one needs."""
    return EnvironmentFault(
        f"a process for task {task} cannot be started",
        cause=error.strerror or str(error),
        remedy=_REMEDIES.get(error.errno or 0, ""),
    )


def how_it_died(status: int) -> str:
    """Returns an exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
