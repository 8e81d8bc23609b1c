"""The supervisor's side: makes the memory, connects processes, buries the dead, adds up the ledger."""

import array
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from videoflow.adapters.shm._book import Book
from videoflow.adapters.shm._kit import Kit
from videoflow.adapters.shm._layout import Layout, TaskShape, plan_layout
from videoflow.adapters.shm._links import RECEIVE_BYTES, Peer
from videoflow.adapters.shm._log import Log
from videoflow.adapters.shm._memory import attach, check_budget, make
from videoflow.adapters.shm._refusals import refuse_unclaimed
from videoflow.adapters.shm._status import Progress, channel_status, whole_channel_status
from videoflow.backends.coverage import Coverage, OriginRecord, without_elsewhere
from videoflow.backends.messaging import (
    ChannelId,
    ChannelSpec,
    ChannelStatus,
    SubscriptionId,
    SubscriptionSpec,
    SubscriptionStatus,
)
from videoflow.backends.outcomes import CleanupObservation, Observation, UnknownReason, known, unknown
from videoflow.clock import Clock
from videoflow.errors import ContractBroken, UnknownName

_encode = msgspec.msgpack.Encoder().encode


class WorkerKit(msgspec.Struct, frozen=True):
    """What a new worker process needs: a document, and descriptors in their order, for it to inherit.

    The descriptors are this process's to close once the worker has been started.
    """

    document: bytes
    descriptors: list[int]

    def close(self) -> None:
        """Closes the descriptors here."""
        for descriptor in self.descriptors:
            os.close(descriptor)


class _Worker:
    """A living worker: its control socket, and what waits to be sent there."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.waiting: deque[tuple[bytes, list[socket.socket]]] = deque()


class ShmHost:
    """Owns the log and the slabs of one run, in the supervisor.

    In steady state the workers speak to each other; here come deaths, and requests to take ledger
    entries. The caller waits for processes and tells what became of them.

    Args:
        clock: For observations.
        budget_bytes: What the log and all slabs may take.
        available_bytes: What the machine and its container leave; None where nobody knows.
    """

    def __init__(self, clock: Clock, budget_bytes: int, available_bytes: int | None = None) -> None:
        self._clock = clock
        self._budget = budget_bytes, available_bytes
        self._lock = threading.RLock()
        self._descriptors: list[int] = []
        self._layout: Layout | None = None
        self._workers: dict[Peer, _Worker] = {}
        self._by_descriptor: dict[int, Peer] = {}
        self._ended: set[Peer] = set()
        self._started: set[Peer] = set()
        self._poll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.EPOLLIN)
        self._closing = False
        self._thread: threading.Thread | None = None
        self.socket_bytes = 0

    # Making -----------------------------------------------------------------------------------

    def provision(
        self,
        channels: Sequence[ChannelSpec],
        subscriptions: Sequence[SubscriptionSpec],
        tasks: Sequence[TaskShape],
    ) -> int:
        """Makes all memory; returns its size in bytes.

        Raises:
            IncompatibleProfile: What the log cannot give.
            MemoryShort: It does not fit the budget, the machine or the container; nothing was made.
            UnknownName: A channel or subscription without its task.
        """
        if self._layout is not None:
            raise ContractBroken("a host is provisioned once")
        refuse_unclaimed(channels, subscriptions)
        layout = plan_layout(channels, subscriptions, tasks)
        total = layout.total_bytes()
        check_budget(total, *self._budget)
        sizes = [("videoflow-log", layout.log_bytes)]
        sizes += [(f"videoflow-slab-{n}", slab.size) for n, slab in enumerate(layout.slabs)]
        with ExitStack() as undone:
            undone.callback(self._release)
            for name, size in sizes:
                self._descriptors.append(make(name, size))
            undone.pop_all()
        self._log = Log(attach(self._descriptors[0], write=True))
        self._layout = layout
        self._book = Book(self._log, layout)
        self._numbers = {place.shape.name: number for number, place in enumerate(layout.tasks)}
        self._progress = [
            Progress(self._log, layout.channels[place.channel], place) for place in layout.subscriptions
        ]
        self._thread = threading.Thread(target=self._serve, name="videoflow-shm-host", daemon=True)
        self._thread.start()
        return total

    def kit(self, task: str, slot: int, incarnation: int) -> WorkerKit:
        """Prepares a new process for a replica, and connects it with its living peers.

        Args:
            task: Its task.
            slot: Its replica.
            incarnation: From 1, one more for each process of this replica.
        """
        with self._lock:
            layout, me = self._made(), self._peer(task, slot)
            if me in self._workers:
                raise ContractBroken(f"replica {slot} of {task} was not said to be dead")
            self._take_all()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            worker = self._workers[me] = _Worker(ours)
            ours.setblocking(False)
            self._by_descriptor[ours.fileno()] = me
            self._poll.register(ours.fileno(), select.EPOLLIN)
            document = _encode(self._kit(layout, me, incarnation))
            for peer in self._peers(me):
                if peer in self._workers:
                    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    self._send(worker, ("link", *peer), [one])
                    self._send(self._workers[peer], ("link", *me), [other])
            self._started.add(me)
            return WorkerKit(document, [theirs.detach(), *map(os.dup, self._descriptors)])

    # Deaths -----------------------------------------------------------------------------------

    def worker_died(self, task: str, slot: int) -> None:
        """Says that a replica's process is dead and reaped: its leases go to others, or wait for the next."""
        self._bury(self._peer(task, slot), final=False)

    def worker_ended(self, task: str, slot: int) -> None:
        """Says that a replica's process has ended for good, having done all its work."""
        self._bury(self._peer(task, slot), final=True)

    def _bury(self, dead: Peer, *, final: bool) -> None:
        with self._lock:
            worker = self._workers.pop(dead, None)
            if worker is None:
                return
            self._forget(worker)
            self._take_all()
            self._book.finish(dead)
            if final:
                self._ended.add(dead)
            self._tell_siblings(dead)
            for peer in self._peers(dead):
                if peer in self._workers:
                    self._send(self._workers[peer], ("gone", *dead, final), [])

    def _tell_siblings(self, dead: Peer) -> None:
        """Tells what the dead announced before its inputs go to others, who would say it again."""
        layout = self._made()
        siblings = [peer for peer in self._workers if peer[0] == dead[0]]
        for number, channel in enumerate(layout.channels):
            if channel.writer == dead[0] and siblings:
                records = self._book.closed(number)
                for peer in siblings:
                    self._send(self._workers[peer], ("closed", number, records), [])

    # Looking ----------------------------------------------------------------------------------

    def announced(self, channel: ChannelId, *, deadline: float) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the writers' end of the ledger, read from what the writers wrote."""
        with self._lock:
            numbers, now = self._partitions(channel), self._clock.monotonic()
            if not numbers:
                return unknown(UnknownReason.MISSING, now, f"channel {channel} was not provisioned")
            self._take_all()
            coverage = Coverage()
            for number in numbers:
                coverage.merge(without_elsewhere(self._book.announced(number)))
            return known(tuple(coverage.records()), now)

    def settled(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[tuple[OriginRecord, ...]]:
        """Returns the reader's end of the ledger, read from what the readers wrote."""
        with self._lock:
            number, now = self._subscription(subscription), self._clock.monotonic()
            if number < 0:
                return unknown(UnknownReason.MISSING, now, f"{subscription} was not provisioned")
            self._take_all()
            return known(tuple(self._book.settled(number)), now)

    def observe_subscription(
        self, subscription: SubscriptionId, *, deadline: float
    ) -> Observation[SubscriptionStatus]:
        """Returns how far a subscription has come."""
        with self._lock:
            number, now = self._subscription(subscription), self._clock.monotonic()
            if number < 0:
                return unknown(UnknownReason.MISSING, now, f"{subscription} was not provisioned")
            self._take_all()
            status = self._progress[number].status()
            return known(msgspec.structs.replace(status, evicted=self._book.dropped(number)), now)

    def observe_channel(self, channel: ChannelId, *, deadline: float) -> Observation[ChannelStatus]:
        """Returns what a channel holds."""
        with self._lock:
            numbers, now, layout = self._partitions(channel), self._clock.monotonic(), self._made()
            if not numbers:
                return unknown(UnknownReason.MISSING, now, f"channel {channel} was not provisioned")
            parts = [channel_status(self._log, layout, layout.channels[number]) for number in numbers]
            return known(whole_channel_status(parts), now)

    def close(self) -> CleanupObservation:
        """Closes everything here; the memory goes with the last process that holds it."""
        self._closing = True
        os.eventfd_write(self._wake, 1)
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            removed = tuple(f"memory {number}" for number in range(len(self._descriptors)))
            for worker in self._workers.values():
                self._forget(worker)
            self._workers.clear()
            if self._layout is not None:
                self._log.close()
            self._release()
            self._poll.close()
            os.close(self._wake)
        return CleanupObservation(complete=True, removed=removed, remaining=())

    def _release(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()

    def _take_all(self) -> None:
        """Takes ledger entries, and tells writers what they need of it."""
        self._book.take()
        for number, records in self._book.prefixes():
            writer = self._made().channels[number].writer
            for peer, worker in self._workers.items():
                if peer[0] == writer:
                    self._send(worker, ("closed", number, records), [])

    # Sockets ----------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._closing:
            for descriptor, event in self._poll.poll():
                with self._lock:
                    peer = self._by_descriptor.get(descriptor)
                    if peer is None:
                        continue
                    worker = self._workers[peer]
                    if event & select.EPOLLOUT:
                        self._flush(worker)
                    if event & ~select.EPOLLOUT:
                        self._take(worker)

    def _take(self, worker: _Worker) -> None:
        try:
            data = worker.control.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.socket_bytes += len(data)
        if data:
            self._take_all()
            self._send(worker, ("folded",), [])
        else:  # it is dead, or about to be; who waits for the process says so
            self._by_descriptor.pop(worker.control.fileno(), None)
            self._poll.unregister(worker.control.fileno())

    def _send(self, worker: _Worker, message: tuple[Any, ...], ends: list[socket.socket]) -> None:
        worker.waiting.append((_encode(message), ends))
        self._flush(worker)

    def _flush(self, worker: _Worker) -> None:
        blocked = False
        while worker.waiting and not blocked:
            data, ends = worker.waiting[0]
            rights = array.array("i", [end.fileno() for end in ends])
            try:
                worker.control.sendmsg(
                    [data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if ends else []
                )
                self.socket_bytes += len(data)
            except BlockingIOError:
                blocked = True
                continue
            except OSError:  # it is dead; its successor is told anew
                pass
            worker.waiting.popleft()
            _close(ends)
        if worker.control.fileno() in self._by_descriptor:
            self._poll.modify(worker.control.fileno(), select.EPOLLIN | (select.EPOLLOUT if blocked else 0))

    def _forget(self, worker: _Worker) -> None:
        for _, ends in worker.waiting:
            _close(ends)
        if self._by_descriptor.pop(worker.control.fileno(), None) is not None:
            self._poll.unregister(worker.control.fileno())
        worker.control.close()

    # Names ------------------------------------------------------------------------------------

    def _kit(self, layout: Layout, me: Peer, incarnation: int) -> Kit:
        channels = [n for n, place in enumerate(layout.channels) if place.writer == me[0]]
        subscriptions = [n for n, place in enumerate(layout.subscriptions) if place.reader == me[0]]
        return Kit(
            layout=layout,
            task=me[0],
            slot=me[1],
            incarnation=incarnation,
            announced={n: self._book.closed(n) for n in channels},
            settled={n: self._book.cursors(n) for n in subscriptions},
            ended=sorted(self._ended),
            started=sorted(self._started - {me}),
        )

    def _peers(self, me: Peer) -> list[Peer]:
        layout = self._made()
        tasks = set()
        for place in layout.subscriptions:
            ends = (layout.channels[place.channel].writer, place.reader)
            if me[0] in ends:
                tasks |= set(ends) - {me[0]}
        return [(task, slot) for task in sorted(tasks) for slot in range(len(layout.tasks[task].replicas))]

    def _made(self) -> Layout:
        if self._layout is None:
            raise ContractBroken("the host was not provisioned")
        return self._layout

    def _peer(self, task: str, slot: int) -> Peer:
        layout = self._made()
        number = self._numbers.get(task, -1)
        if number < 0 or not 0 <= slot < len(layout.tasks[number].replicas):
            raise UnknownName(f"there is no replica {slot} of a task {task!r}")
        return number, slot

    def _partitions(self, channel: ChannelId) -> list[int]:
        return [n for n, place in enumerate(self._made().channels) if place.spec.channel == channel]

    def _subscription(self, subscription: SubscriptionId) -> int:
        for number, place in enumerate(self._made().subscriptions):
            if place.spec.subscription == subscription:
                return number
        return -1


def _close(ends: Iterable[socket.socket]) -> None:
    for end in ends:
        end.close()
