"""Sockets between processes: one of each pair of replicas, and one to the supervisor.

A link carries small operations, collected until the next flush and sent as one message; what the
socket does not take now stays collected. All descriptors of a process poll as one.
"""

import array
import contextlib
import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import msgspec

_MESSAGE_BYTES = 96 << 10
RECEIVE_BYTES = 128 << 10
CHUNK = 4096

Peer = tuple[int, int]
Operation = Sequence[Any]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Op(IntEnum):
    """What a message between replicas says.

    From writer to reader: `HEAD` (channel, head), `GIVE` (subscription, cause, count, pairs), `END`
    (channel), `RECALL` (subscription, items), `ASK` (mark: say what you hold, after this).
    From reader to writer: `HELLO`, `DONE` (subscription, pairs, slots kept), `BACK` (subscription, pairs),
    `WANT` (subscription, items), `UNPIN` (slots), `HOLDS` (slots: all that are kept, mark:
    what was asked last), `POKE` (subscription). Pairs are (first sequence, count), flat.
    """

    HEAD = 0
    GIVE = 1
    END = 2
    HELLO = 3
    DONE = 4
    BACK = 5
    WANT = 6
    UNPIN = 7
    HOLDS = 8
    POKE = 9
    RECALL = 10
    ASK = 11


class Link:
    """One socket to a peer, and what waits to be sent."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self.socket = end
        self.waiting: list[Operation] = []
        self.blocked = False

    def send_waiting(self) -> bool:
        """Sends what waits; returns whether all of it is sent."""
        while self.waiting:
            count = len(self.waiting)
            data = _encode(self.waiting)
            while len(data) > _MESSAGE_BYTES and count > 1:
                count = max(1, count // 2)
                data = _encode(self.waiting[:count])
            try:
                self.socket.send(data)
            except BlockingIOError:
                return False
            except OSError:  # the peer is gone; what it missed is read from memory by its next incarnation
                self.waiting.clear()
                return True
            del self.waiting[:count]
        return True


class Hub:
    """All sockets of one process.

    Args:
        control: To the supervisor.
        on_operations: Called with (peer, operations).
        on_control: Called with (message, descriptors).
        on_lost: Called when the supervisor is gone.
    """

    def __init__(
        self,
        control: socket.socket,
        on_operations: Callable[[Peer, list[Any]], None],
        on_control: Callable[[list[Any], list[int]], None],
        on_lost: Callable[[], None],
    ) -> None:
        control.setblocking(False)
        self.control = control
        self.links: dict[Peer, Link] = {}
        self._epoll = select.epoll()
        self._epoll.register(control.fileno(), select.EPOLLIN)
        self._by_descriptor: dict[int, Peer] = {}
        self._dirty: set[Peer] = set()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._unheard: deque[tuple[Peer, list[Any]]] = deque()
        self._on_operations = on_operations
        self._on_control = on_control
        self._on_lost = on_lost
        self._lost = False
        self._watched: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, call: Callable[[], None]) -> None:
        """Calls back when a descriptor is readable, in every `service` that is not in the background."""
        self._watched[descriptor] = call
        self._epoll.register(descriptor, select.EPOLLIN)

    def fileno(self) -> int:
        """Returns a descriptor that polls readable when `service` has something to do."""
        return self._epoll.fileno()

    def queue(self, peer: Peer, operation: Operation) -> None:
        """Collects an operation for the next flush; dropped where the peer is not connected."""
        link = self.links.get(peer)
        if link is not None:
            link.waiting.append(operation)
            self._dirty.add(peer)

    def connect(self, peer: Peer, end: socket.socket) -> None:
        """Puts a new socket in the place of the old one to this peer."""
        self.disconnect(peer)
        link = self.links[peer] = Link(end)
        self._epoll.register(link.socket.fileno(), select.EPOLLIN)
        self._by_descriptor[link.socket.fileno()] = peer

    def disconnect(self, peer: Peer) -> None:
        """Closes the socket to a peer, if there is one."""
        link = self.links.pop(peer, None)
        self._dirty.discard(peer)
        if link is not None:
            self._epoll.unregister(link.socket.fileno())
            del self._by_descriptor[link.socket.fileno()]
            link.socket.close()

    def tell(self, message: Operation) -> None:
        """Tells the supervisor; lost where its buffer is full, so only for what may be said again."""
        with contextlib.suppress(OSError):
            self.control.send(_encode(message))

    def service(self, *, background: bool = False) -> bool:
        """Takes what has come; returns whether anything came.

        What a peer said is heard one look later than it is taken, so that what the supervisor said before
        the peer could know of it comes first.

        Args:
            background: Leave what is watched to the thread that waits for it.
        """
        came, progress, peers = False, True, self._by_descriptor
        while progress:
            events = self._epoll.poll(0)
            progress = False
            for descriptor, _ in events:
                if descriptor not in peers:
                    progress |= self._own(descriptor, background=background)
            while self._unheard:
                self._on_operations(*self._unheard.popleft())
            for descriptor, event in events:
                peer = peers.get(descriptor)
                if peer is not None:
                    progress |= self._take(peer, event)
            came |= progress
        return came

    def service_control(self) -> bool:
        """Takes what the supervisor said; returns whether it said anything."""
        came = False
        while not self._lost:
            descriptors: list[int] = []
            try:
                data, ancillary, _, _ = self.control.recvmsg(RECEIVE_BYTES, 256)
            except BlockingIOError:
                break
            except OSError:
                data, ancillary = b"", []
            if not data:
                self._lost = True
                self._epoll.unregister(self.control.fileno())
                self._on_lost()
                break
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(content[: len(content) - len(content) % received.itemsize])
                    descriptors += received
            came = True
            self._on_control(_decode(data), descriptors)
        return came

    def flush(self) -> None:
        """Sends what was collected, as far as the sockets take it."""
        if not self._dirty:
            return
        for peer in tuple(self._dirty):
            link = self.links[peer]
            if link.blocked:
                continue
            if link.send_waiting():
                self._dirty.discard(peer)
            else:
                link.blocked = True
                self._epoll.modify(link.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def unsent(self) -> bool:
        """Returns whether something still waits to be sent."""
        return bool(self._dirty)

    def close(self) -> None:
        """Closes all sockets."""
        for peer in tuple(self.links):
            self.disconnect(peer)
        self._epoll.close()
        self.control.close()

    def _own(self, descriptor: int, *, background: bool) -> bool:
        if descriptor in self._watched:
            if not background:
                self._watched[descriptor]()
            return False
        return self.service_control()

    def _take(self, peer: Peer, event: int) -> bool:
        """Takes one message of a peer, to be heard later; returns whether there was one, or its end."""
        link = self.links[peer]
        if event & select.EPOLLOUT:
            link.blocked = False
            self._epoll.modify(link.socket.fileno(), select.EPOLLIN)
        if not event & ~select.EPOLLOUT:
            return False
        try:
            length = link.socket.recv_into(self._buffer)
        except BlockingIOError:
            return False
        except OSError:
            length = 0
        if length:
            self._unheard.append((peer, _decode(self._view[:length])))
        else:
            self.disconnect(peer)
        return True

    def drain(self, peer: Peer) -> None:
        """Takes all that a peer has said that is dead now, before it is disconnected."""
        for said in [each for each in self._unheard if each[0] == peer]:
            self._unheard.remove(said)
            self._on_operations(*said)
        link = self.links.get(peer)
        while link is not None:
            try:
                length = link.socket.recv_into(self._buffer)
            except OSError:
                break
            if length == 0:
                break
            self._on_operations(peer, _decode(self._view[:length]))


def pairs_of(sequences: Sequence[int]) -> list[int]:
    """Returns ascending sequences as flat (first, count) pairs."""
    if sequences and sequences[-1] - sequences[0] == len(sequences) - 1:
        return [sequences[0], len(sequences)]
    pairs: list[int] = []
    expected = -1
    for sequence in sequences:
        if sequence == expected:
            pairs[-1] += 1
        else:
            pairs += (sequence, 1)
        expected = sequence + 1
    return pairs


def sequences_of(pairs: Sequence[int]) -> list[int]:
    """Returns the sequences that flat pairs stand for."""
    found: list[int] = []
    for at in range(0, len(pairs), 2):
        first = pairs[at]
        found += range(first, first + pairs[at + 1])
    return found
