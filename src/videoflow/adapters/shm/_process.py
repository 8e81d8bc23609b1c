"""One worker process on the log: its sockets, what it publishes, reads, holds, and how it starts again."""

import mmap
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from videoflow.adapters.shm._feeds import Feed, ProcessParts
from videoflow.adapters.shm._inlet import Inlet
from videoflow.adapters.shm._kit import Kit
from videoflow.adapters.shm._ledger import loosened
from videoflow.adapters.shm._links import Hub, Op, Peer, sequences_of
from videoflow.adapters.shm._log import Journal, Log
from videoflow.adapters.shm._memory import attach
from videoflow.adapters.shm._outlet import Outlet
from videoflow.adapters.shm._slab import Holds, Slab, Slot
from videoflow.backends.coverage import OriginRecord
from videoflow.clock import Clock
from videoflow.errors import ContractBroken

_SERVICE_SECONDS = 0.02
_DONE, _HEAD, _GIVE = int(Op.DONE), int(Op.HEAD), int(Op.GIVE)  # what is said all the time


def lost_supervisor() -> None:
    """Ends this process: its supervisor is gone, and with it whoever could use what it makes."""
    os.kill(os.getpid(), signal.SIGKILL)


class Process(ProcessParts):
    """The shared part of a worker's messaging and payloads.

    One thread works; another takes what peers say while the first is busy with user code. Both hold
    `lock` while they touch anything here.

    Args:
        kit: From the supervisor.
        descriptors: Control socket, log, slabs.
        clock: For deadlines and arrivals.
        lost: Called when the supervisor is gone.

    Attributes:
        served_at: When the sockets were last looked at, in monotonic seconds.
        looked: Whether that was just now, by who waits for input, and there is some.
        dropped: Slots whose arrays were collected.
        unpins: What goes back to its lenders with the next `sweep`.
    """

    def __init__(
        self,
        kit: Kit,
        descriptors: Sequence[int],
        clock: Clock,
        lost: Callable[[], None] = lost_supervisor,
    ) -> None:
        self.kit = kit
        self.clock = clock
        self.lock = threading.RLock()
        self.me: Peer = (kit.task, kit.slot)
        control, log, *slabs = descriptors
        self.log = Log(attach(log, write=True))
        os.close(log)
        self._slab_descriptors = slabs
        self._mapped: dict[int, mmap.mmap] = {}
        self.hub = Hub(socket.socket(fileno=control), self._operations, self._control, lost)
        self.place = kit.layout.tasks[kit.task].replicas[kit.slot]
        slab = kit.layout.slabs[self.place.slab] if self.place.slab >= 0 else None
        self.slab = Slab(slab.size, slab.largest) if slab is not None else Slab(0, 1)
        self.holds = Holds(self.place.slab, self.slab, self._unpin)
        self.dropped: deque[Slot] = deque()
        self.unpins: dict[Peer, list[Slot]] = {}
        self.journal = Journal(self.log, self.place.journal, self.log.words[self.place.commit])
        self._poked = False
        self.woken = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.hub.watch(self._wake, self._woken)
        self.served_at = 0.0
        self.looked = False
        self.awaiting = {peer for peer in kit.started if peer not in kit.ended}
        self._adopting = kit.incarnation > 1
        self._introduced = False
        self._asked: dict[Peer, int] = {}
        self.outlets: dict[int, Outlet] = {}
        self.inlets: dict[int, Inlet] = {}
        self._feeds: dict[int, Feed] = {}
        self._build()
        self.awaiting &= {peer for outlet in self.outlets.values() for peer in outlet.readers()}
        self._stopped = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="videoflow-shm", daemon=True)
        self._keeper.start()

    def _build(self) -> None:
        layout, (task, slot) = self.kit.layout, self.me
        for number, channel in enumerate(layout.channels):
            if channel.writer == task:
                announced = loosened(self.kit.announced.get(number, []))
                outlet = self.outlets[number] = Outlet(self, number, layout, slot, announced)
                for feed in outlet.feeds:
                    self._feeds[feed.number] = feed
                    if all(peer in self.kit.ended for peer in feed.peers):
                        feed.retire()
        for number, subscription in enumerate(layout.subscriptions):
            if subscription.reader != task or not 0 <= slot - subscription.first < len(subscription.cells):
                continue
            channel = layout.channels[subscription.channel]
            inlet = Inlet(self, number, (channel, subscription), slot, self.kit.incarnation)
            self.inlets[number] = inlet
            for writer in range(len(channel.rings)):
                if (channel.writer, writer) in self.kit.ended:
                    inlet.ended(writer)

    # Serving the sockets ----------------------------------------------------------------------

    def service(self, *, background: bool = False) -> bool:
        """Takes what peers said, drops what was collected, sends what waits; the lock is held."""
        self.served_at = self.clock.monotonic()
        came = self.hub.service(background=background)
        if came:
            for outlet in self.outlets.values():
                if outlet.queue:
                    outlet.retry()
        if self.dropped or self.unpins:
            self.sweep()
        self.hub.flush()
        return came

    def sweep(self) -> None:
        """Gives up the slots whose arrays were collected."""
        while self.dropped:
            self.holds.drop(self.dropped.popleft())
        for lender, slots in self.unpins.items():
            self.hub.queue(lender, (Op.UNPIN, slots))
        self.unpins.clear()

    def wake(self) -> None:
        """Lets whoever waits for this process's sockets look again; from any thread."""
        os.eventfd_write(self._wake, 1)

    def wait(self, deadline: float) -> None:
        """Waits until peers say something, or until the deadline; the lock must not be held."""
        self.clock.wait((_Sockets(self),), deadline)

    def room_in(self, journal: Journal, length: int) -> None:
        """Waits until the supervisor has taken enough of a journal for an entry of this length.

        Raises:
            ContractBroken: The entry never fits.
        """
        if journal.roomy(length):
            return
        if length > journal.largest():
            raise ContractBroken(f"a ledger entry of {length} bytes is too long")
        if journal.half_full() and not self._poked:
            self._poked = True
            self.hub.tell(("poke",))
        while journal.full(length):
            self.clock.wait((_Control(self.hub),), self.clock.monotonic() + 1.0)
            self.hub.service_control()
            self.hub.tell(("poke",))

    def close(self) -> None:
        """Ends the use of the log in this process."""
        self._stopped.set()
        self._keeper.join()
        with self.lock:
            self.hub.close()
            os.close(self._wake)
            for descriptor in self._slab_descriptors:
                os.close(descriptor)
            self._slab_descriptors = []

    def memory(self, slab: int) -> mmap.mmap:
        """Returns the memory of a slab; that of another process is read-only."""
        found = self._mapped.get(slab)
        if found is None:
            own = slab == self.place.slab
            found = attach(self._slab_descriptors[slab], write=own, populate=own)
            self._mapped[slab] = found
        return found

    def _keep(self) -> None:
        while not self._stopped.wait(_SERVICE_SECONDS):
            if self.clock.monotonic() - self.served_at < _SERVICE_SECONDS:
                continue
            if self.lock.acquire(blocking=False):
                try:
                    if self.service(background=True) or any(i.is_due() for i in self.inlets.values()):
                        self.wake()
                finally:
                    self.lock.release()

    def _woken(self) -> None:
        os.eventfd_read(self._wake)
        self.woken = True

    # What peers say ---------------------------------------------------------------------------

    def _operations(self, peer: Peer, operations: list[Any]) -> None:
        for operation in operations:
            code = operation[0]
            if code == _DONE:
                self._done(peer, *operation[1:])
            elif code == _HEAD:
                for inlet in self._reading(operation[1]):
                    inlet.told_head(peer[1], operation[2])
            elif code == _GIVE:
                _, number, cause, count, pairs = operation
                self.inlets[number].told_given(peer[1], sequences_of(pairs), cause, count)
            else:
                self._seldom(peer, code, operation)
        for feed in self._feeds.values():
            feed.dispatch()
        for outlet in self.outlets.values():
            outlet.note_drops()

    def _seldom(self, peer: Peer, code: int, operation: list[Any]) -> None:
        if code == Op.END:
            for inlet in self._reading(operation[1]):
                inlet.ended(peer[1], gone=False)
        elif code == Op.WANT:
            feed = self._feeds[operation[1]]
            feed.want(feed.replica(peer), operation[2])
        elif code == Op.BACK:
            feed = self._feeds[operation[1]]
            for sequence in sequences_of(operation[2]):
                feed.handed_back(feed.replica(peer), sequence)
        elif code == Op.RECALL:
            self.inlets[operation[1]].recalled(peer[1], operation[2])
        elif code == Op.UNPIN:
            for slot in operation[1]:
                self.holds.returned(peer, (slot[0], slot[1], slot[2], slot[3]))
        elif code == Op.HELLO:
            self._greet(peer)
        elif code == Op.HOLDS:
            self._holds_of(peer, *operation[1:])
        elif code == Op.ASK:
            self._asked_by(peer, operation[1])

    def _done(self, peer: Peer, number: int, pairs: list[int], kept: list[list[int]]) -> None:
        for slot in kept:
            self.holds.lend(peer, (slot[0], slot[1], slot[2], slot[3]))
        feed = self._feeds[number]
        feed.settled(feed.replica(peer), sequences_of(pairs))

    def _greet(self, peer: Peer) -> None:
        for outlet in self.outlets.values():
            for feed in outlet.feeds:
                if peer in feed.peers:
                    feed.greet(feed.replica(peer))
            if self.log.words[outlet.ring.place.end]:
                self.hub.queue(peer, (Op.END, outlet.number))

    def _asked_by(self, peer: Peer, mark: int) -> None:
        """A writer that looked at what is settled asks what is held: answered now, or once it is known."""
        self._asked[peer] = mark
        if not self._adopting or (self._introduced and not self.awaiting):
            self._tell_holds(peer)

    def _holds_of(self, peer: Peer, slots: list[list[int]], mark: int) -> None:
        """Learns what a reader holds; what it said before this process looked at its cells is not all.

        What it settled in between is settled here and was not lent, so only an answer to the own question
        counts.
        """
        held = {(slab, offset, generation, size) for slab, offset, generation, size in slots}
        for slot in held:
            self.holds.lend(peer, slot, adopting=self._adopting)
        self.holds.only(peer, held)
        if mark == self.kit.incarnation:
            self._answered(peer)

    # What the supervisor says -----------------------------------------------------------------

    def _control(self, message: list[Any], descriptors: list[int]) -> None:
        match message:
            case ["link", task, slot]:
                self._connect((task, slot), socket.socket(fileno=descriptors[0]))
            case ["gone", task, slot, final]:
                self._gone((task, slot), final=final)
            case ["closed", number, records]:
                self.outlets[number].closed.merge(msgspec.convert(records, list[OriginRecord]))
            case ["folded"]:
                self._poked = False

    def _connect(self, peer: Peer, end: socket.socket) -> None:
        self.hub.connect(peer, end)
        self._asked.pop(peer, None)
        if peer in self.awaiting:
            self.hub.queue(peer, (Op.ASK, self.kit.incarnation))
        if peer not in self._lenders():
            return
        if not self._adopting:
            self._tell_holds(peer)
        if self._introduced and not self.awaiting:
            self._say_hello(peer)

    def _gone(self, peer: Peer, *, final: bool) -> None:
        self.hub.drain(peer)
        self.hub.disconnect(peer)
        writes = bool(self.kit.layout.tasks[peer[0]].shape.writes)
        feeds = [feed for feed in self._feeds.values() if peer in feed.peers]
        for feed in feeds:
            for record in feed.leased(feed.replica(peer)) if writes else ():
                for slot in record.slots:
                    self.holds.lend(peer, slot)
            feed.gone(feed.replica(peer), passed_on=writes)
            if final and all(other == peer for other in feed.peers):
                feed.retire()
            feed.dispatch()
        for inlet in self.inlets.values():
            if final and peer in inlet.peers:
                inlet.ended(peer[1])
        if final or not writes:
            self.holds.only(peer, set())
            self._answered(peer)

    def _answered(self, peer: Peer) -> None:
        """A reader has said all that it holds; when all have, this process can say the same above."""
        if peer in self.awaiting:
            self.awaiting.discard(peer)
            if not self.awaiting and self._introduced:
                for lender in self._lenders():
                    self._say_hello(lender)

    def introduce(self) -> None:
        """Lets writers know that this process reads; it is ready for input, and has published its outbox.

        A new incarnation says before that what it holds: the records in its rings and in its outbox may
        refer to payloads that nobody else keeps.
        """
        if not self._introduced:
            self._introduced = True
            if not self.awaiting:
                for lender in self._lenders():
                    self._say_hello(lender)
                self.hub.flush()

    def _tell_holds(self, lender: Peer) -> None:
        slots = self.holds.kept_from(lender, adopting=self._adopting)
        self.hub.queue(lender, (Op.HOLDS, slots, self._asked.get(lender, 0)))

    def _say_hello(self, lender: Peer) -> None:
        if self._adopting:  # before the hello, with which what was settled meanwhile may end
            self._tell_holds(lender)
        self.hub.queue(lender, (Op.HELLO,))
        for inlet in self.inlets.values():
            if lender in inlet.peers:
                pairs = inlet.settled_lately(lender[1])
                if pairs:  # said again: an earlier socket may have lost it; what is kept was said above
                    self.hub.queue(lender, (Op.DONE, inlet.number, pairs, []))
                inlet.connected(lender[1])

    def _unpin(self, lender: Peer, slot: Slot) -> None:
        self.unpins.setdefault(lender, []).append(slot)

    def _lenders(self) -> set[Peer]:
        return {peer for inlet in self.inlets.values() for peer in inlet.peers}

    def _reading(self, channel: int) -> list[Inlet]:
        return [inlet for inlet in self.inlets.values() if inlet.place.channel == channel]


class _Sockets:
    """Becomes ready when peers have said something; what they say is taken by whoever asks."""

    def __init__(self, process: "Process") -> None:
        self._process = process

    def ready(self) -> bool:
        process = self._process
        with process.lock:
            process.woken = False
            return process.service() or process.woken

    def fileno(self) -> int:
        return self._process.hub.fileno()


class _Control:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def ready(self) -> bool:
        return self._hub.service_control()

    def fileno(self) -> int:
        return self._hub.control.fileno()
