"""One claim on its way: take every host, look again, change geometry; or give everything back.

A host is read before the record is checked, and written under the version that was read. So a process that
was overtaken writes nothing: whoever overtakes moves the record first and then writes each host, whether or
not there is something to change.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from videoflow import faults
from videoflow.backends.allocation import LayoutEntry
from videoflow.backends.allocation.lifecycle import Aborted, Phase, Taken
from videoflow.backends.memory.allocation._cluster import Conflict, Refused, Unanswered
from videoflow.backends.memory.allocation._holding import (
    asked_by,
    disowned,
    entries_of,
    holds_all,
    holds_of,
    is_laid_out,
    laid_out,
    layouts_in,
    memory_left,
    owned,
)
from videoflow.backends.memory.allocation._hosts import MemoryHost, MemoryPod
from videoflow.backends.memory.allocation._records import MOST_TRIES, Journal
from videoflow.backends.memory.allocation._session import MemorySession
from videoflow.backends.outcomes import UnknownReason

RESTORING = "/restore"


class Operation:
    """The steps of one claim; each can be done again, by this process or the next.

    Every step raises Superseded where another process took the claim over, and Unanswered where the
    authority is silent: then the record says where to carry on.
    """

    def __init__(self, session: MemorySession, journal: Journal) -> None:
        self._session = session
        self._journal = journal

    def own(self) -> None:
        """Takes every device, host by host; raises Taken."""
        for name in self._journal.record.hosts():
            self._change(name, "own", lambda host: owned(host, self._journal.record))
            faults.reach("claim.owned")

    def look_again(self) -> None:
        """Reads who uses the devices, now that nobody new should come; raises Aborted."""
        users, short = self.users(), self._short()
        if users:
            raise Aborted(f"in use since it was planned: {', '.join(users)}")
        if short:
            raise Aborted(f"too little memory since it was planned: {', '.join(short)}")

    def change_geometry(self) -> None:
        """Asks for every layout, after what was there before is on record; raises Aborted, Taken."""
        record = self._journal.record
        if not record.geometry:
            return
        if record.phase is Phase.OWNING:
            self._journal.move(phase=Phase.CHANGING, originals=self._layouts_now())
        faults.reach("claim.changing")
        for name, entries in sorted(self._journal.record.geometry.items()):
            try:
                self._change(name, "lay out", partial(self._cut, entries))
            except Refused as error:
                raise Aborted(str(error)) from error

    def give_back(self) -> tuple[str, ...]:
        """Restores geometry, then gives up ownership; returns the cards that are not restored yet."""
        remaining = [
            card
            for name, entries in sorted(self._journal.record.originals.items())
            for card in self._restore(name, entries)
        ]
        if remaining:
            return tuple(remaining)
        faults.reach("claim.restored")
        for name in self._journal.record.hosts():
            if self._session.host(name) is None:
                continue
            self._change(name, "disown", lambda host: disowned(host, self._journal.record), always=True)
        return ()

    def users(self) -> tuple[str, ...]:
        """Returns the devices that somebody uses: anybody those held alone, we ourselves those shared.

        Raises Unanswered.
        """
        record, found = self._journal.record, set[str]()
        for name, pods in self._pods().items():
            host = self._host(name)
            for key, hold in holds_of(record, name).items():
                found |= {
                    pod.device
                    for pod in pods
                    if pod.device in host.related(key)
                    and (hold.size_bytes is None or pod.claim == record.claim_id)
                }
        return tuple(sorted(found))

    # Inside -----------------------------------------------------------------------------------

    def _pods(self) -> Mapping[str, list[MemoryPod]]:
        page = self._session.pods()
        if not page.whole:
            raise Unanswered(UnknownReason.MALFORMED)
        return {
            name: [pod for pod in page.items if pod.host == name] for name in self._journal.record.hosts()
        }

    def _short(self) -> list[str]:
        """Returns the shared devices that all who are on them need more memory than there is."""
        record = self._journal.record
        return [
            key
            for name, pods in self._pods().items()
            for key, hold in holds_of(record, name).items()
            if hold.size_bytes is not None and memory_left(self._host(name), key, pods) < 0
        ]

    def _cut(self, entries: tuple[str, ...], host: MemoryHost) -> MemoryHost:
        record = self._journal.record
        if not holds_all(host, record):
            raise Taken(f"{host.name} went to somebody else")
        return laid_out(host, entries, record.stamp)

    def _layouts_now(self) -> Mapping[str, tuple[str, ...]]:
        found = {}
        for name, entries in self._journal.record.geometry.items():
            changed = layouts_in(entries)
            found[name] = entries_of(card for card in self._host(name).cards if card.uuid in changed)
        return found

    def _restore(self, name: str, entries: tuple[str, ...]) -> tuple[str, ...]:
        """Restores the cards of a host that are still this claim's; returns those that are not restored."""
        record = self._journal.record
        stamp = record.claim_id + RESTORING

        def mine(host: MemoryHost) -> tuple[str, ...]:
            held = {key for key, hold in host.held() if hold.claim == record.claim_id}
            return tuple(
                entry
                for card, layout in layouts_in(entries).items()
                if card in held and asked_by(host, card, record.claim_id, layout)
                for entry in entries
                if LayoutEntry.parse(entry).card == card
            )

        try:
            self._change(name, "restore", lambda host: laid_out(host, mine(host), stamp))
        except Refused:
            return tuple(layouts_in(entries))
        host = self._host(name)
        asked = mine(host)
        return () if is_laid_out(host, asked, stamp, advertised=True) else tuple(layouts_in(asked))

    def _host(self, name: str) -> MemoryHost:
        host = self._session.host(name)
        return MemoryHost(name, ()) if host is None else host

    def _change(
        self, name: str, detail: str, change: Callable[[MemoryHost], MemoryHost], *, always: bool = False
    ) -> None:
        """Changes a host for as long as the claim is this process's; `always`: also where nothing differs.

        What is written then is a new version, which stops whoever read the one before; another allocator's
        host is left alone.
        """
        silent = Unanswered()
        for _ in range(MOST_TRIES):
            host = self._session.host(name)
            self._journal.check()
            if host is None:
                raise Taken(f"there is no host {name}")
            changed = change(host)
            if changed == host and (host.owner or not always):
                return
            try:
                self._session.replace_host(replace(changed, version=host.version), detail)
            except Conflict:
                continue
            except Unanswered as error:
                silent = error
            else:
                return
        raise silent
