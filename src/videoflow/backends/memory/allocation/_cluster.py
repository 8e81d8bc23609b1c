"""The authority of the reference: versions, preconditions, a controller of geometry, and an audit list.

It outlives every backend. What fixtures do (`add_pod`, `seize`, `fail`) is not asked about; what backends do
goes through a `MemorySession`, so that each call can be delayed, lost or made to end the process.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from videoflow.backends.allocation.lifecycle import Unanswered as AnyUnanswered
from videoflow.backends.memory.allocation._hosts import (
    Layout,
    MemoryCard,
    MemoryHost,
    MemoryPod,
    MemorySlice,
    MigTable,
    Written,
)
from videoflow.backends.outcomes import UnknownReason
from videoflow.clock import Clock

T = TypeVar("T")
Interposer = Callable[[str, bool, str, str], Callable[[], None] | None]
"""Asked before each call (process, whether it writes, operation, target); may raise instead of it, and what
it returns is called when the call has taken effect and may raise instead of its answer."""


class Conflict(Exception):
    """The precondition of a write did not hold; nothing was written."""


class Refused(Exception):
    """The authority will not do it; nothing was written."""


class Unanswered(AnyUnanswered):
    """No answer: a read that failed, or a write that may have taken effect."""

    def __init__(self, reason: UnknownReason = UnknownReason.TIMEOUT) -> None:
        super().__init__(reason, f"no answer ({reason})")


class Listing(StrEnum):
    """What is listed, and can fail."""

    HOSTS = "hosts"
    PODS = "pods"
    RECORDS = "records"


@dataclass(frozen=True)
class Page(Generic[T]):
    """A listing with its version; not `whole`: it was cut short."""

    items: tuple[T, ...]
    version: int
    whole: bool = True


class MemoryCluster:
    """Hosts, pods and claim records, with versions.

    Args:
        hosts: The fixtures.
        clock: For the times of observations.
        table: Judges layouts; None: no card is ever cut anew.

    Attributes:
        audit: Every write that took effect.
        interposer: Asked about each call of a backend; None: nobody is.
        staged: Layouts are made, and then advertised, only by `proceed`.
    """

    def __init__(self, hosts: Iterable[MemoryHost], clock: Clock, table: MigTable | None = None) -> None:
        self.hosts = {host.name: host for host in hosts}
        self.pods: dict[str, MemoryPod] = {}
        self.records: dict[str, tuple[int, bytes]] = {}
        self.clock = clock
        self.table = table
        self.audit: list[Written] = []
        self.interposer: Interposer | None = None
        self.staged = False
        self._failing: dict[Listing, UnknownReason] = {}
        self._lock = threading.Lock()
        self._versions = 1
        self._pods_version = 1

    # Fixtures ---------------------------------------------------------------------------------

    def fail(self, listing: Listing, reason: UnknownReason | None) -> None:
        """Lets a listing fail from now on; None: no more; `MALFORMED`: it is cut short."""
        self._failing.pop(listing, None)
        if reason is not None:
            self._failing[listing] = reason

    def add_pod(self, pod: MemoryPod, *, tolerant: bool = False) -> bool:
        """Schedules a pod; a foreign one is kept out of held devices unless it tolerates that."""
        host = self.hosts[pod.host]
        kept_out = any(host.holds.get(key) for key in host.related(pod.device))
        if not pod.claim and kept_out and not tolerant:
            return False
        self.pods[pod.name] = pod
        self._pods_version += 1
        return True

    def remove_pod(self, name: str) -> None:
        """Ends a pod."""
        if self.pods.pop(name, None) is not None:
            self._pods_version += 1

    def seize(self, name: str, stamp: str) -> None:
        """Another allocator takes a host; who owned its devices owns them no more."""
        self._put(replace(self.hosts[name], owner=stamp, holds={}), "foreign", "seize")

    def proceed(self) -> None:
        """Lets each card that was asked for a layout move on by one state."""
        for host in list(self.hosts.values()):
            cards = tuple(self._next_state(host, card) for card in host.cards)
            if cards != host.cards:
                self._put(replace(host, cards=cards), "controller", "proceed")

    # What sessions call -----------------------------------------------------------------------

    def page(self, listing: Listing, items: Iterable[T]) -> Page[T]:
        """Returns a listing, or a part of it, or nothing, as `fail` said.

        Raises:
            Unanswered: There is no answer.
        """
        reason, found = self._failing.get(listing), tuple(items)
        if reason is UnknownReason.MALFORMED:
            return Page(found[: len(found) // 2], self._versions, whole=False)
        if reason is not None:
            raise Unanswered(reason)
        return Page(found, self._pods_version if listing is Listing.PODS else self._versions)

    def replace_host(self, host: MemoryHost, process: str, detail: str) -> None:
        """Writes a host that was made from the version that it names.

        Raises:
            Conflict: Somebody wrote it since.
            Refused: A layout is illegal, or its card is in use.
        """
        with self._lock:
            if self.hosts[host.name].version != host.version:
                raise Conflict(host.name)
            for card in host.cards:
                if card.wanted is not None and card != self.hosts[host.name].card(card.uuid):
                    self._judge(host, card, card.wanted)
            self._put(host, process, detail)
        if not self.staged:
            self.proceed()
            self.proceed()

    def replace_record(self, claim: str, version: int, value: bytes | None, process: str) -> int:
        """Creates (version 0), replaces or (None) deletes a claim record; returns its new version.

        Raises:
            Conflict: The record is not of that version.
        """
        with self._lock:
            if self.records.get(claim, (0, b""))[0] != version:
                raise Conflict(claim)
            self._versions += 1
            if value is None:
                del self.records[claim]
            else:
                self.records[claim] = (self._versions, value)
            self.audit.append(Written(process, "delete record" if value is None else "record", claim))
            return self._versions

    # Inside -----------------------------------------------------------------------------------

    def _put(self, host: MemoryHost, process: str, detail: str) -> None:
        self._versions += 1
        self.hosts[host.name] = replace(host, version=self._versions)
        self.audit.append(Written(process, "host", host.name, detail))

    def _judge(self, host: MemoryHost, card: MemoryCard, wanted: Layout) -> None:
        why = "nobody can cut it" if self.table is None else self.table.illegal(card.product, wanted)
        if why:
            raise Refused(f"{card.uuid}: {why}")
        if wanted != card.layout and self._in_use(host, card):
            raise Refused(f"{card.uuid} is in use")

    def _in_use(self, host: MemoryHost, card: MemoryCard) -> bool:
        return any(pod.host == host.name and pod.device in card.device_keys() for pod in self.pods.values())

    def _next_state(self, host: MemoryHost, card: MemoryCard) -> MemoryCard:
        if card.wanted is None or card.advertised == card.entry:
            return card
        if card.made == card.entry:
            return replace(card, advertised=card.entry)
        if card.wanted == card.layout:
            return replace(card, made=card.entry)
        if self._in_use(host, card):
            return card
        return replace(card, made=card.entry, slices=tuple(self._made(card, *one) for one in card.wanted))

    def _made(self, card: MemoryCard, profile: str, start: int) -> MemorySlice:
        assert self.table is not None, "a layout without a table is refused before it is made"
        uuid = f"MIG-{card.uuid}-{start}-{profile}-{self._versions}"
        return MemorySlice(uuid, profile, start, self.table.usable_bytes(card.product, profile))
