"""One claim on its way: take every host, look again, change geometry; or give everything back.

A host is read before the record is checked, and written under the version that was read. So a process that
was overtaken writes nothing: whoever overtakes moves the record first and then writes every host, whether or
not there is something to change.
"""

from collections.abc import Mapping

from videoflow import faults
from videoflow.adapters.kubernetes import CONFIG_MAPS, Object, Refused
from videoflow.backends.allocation import device_key
from videoflow.backends.allocation.lifecycle import Aborted, Phase
from videoflow.deploy.allocation_kubernetes._geometry import Geometry
from videoflow.deploy.allocation_kubernetes._hosts import HostView, resource_of, view
from videoflow.deploy.allocation_kubernetes._inventory import pod_use, read_config, read_ledger
from videoflow.deploy.allocation_kubernetes._ledger import (
    Ledger,
    disowned,
    holds_of,
    owned,
    written,
)
from videoflow.deploy.allocation_kubernetes._mig_config import totals
from videoflow.deploy.allocation_kubernetes._records import ClaimRecord, Journal, Original
from videoflow.deploy.allocation_kubernetes._session import Session, claim_of

BARRIERS = (
    "allocation.owned",
    "allocation.looked",
    "allocation.recorded",
    "allocation.cut",
    "allocation.restored",
    "allocation.disowned",
)
faults.declare(*BARRIERS)


class Operation:
    """The steps of one claim; each can be done again, by this process or the next.

    Every step raises Superseded where another process took the claim over, and Unanswered where the
    authority is silent: then the record says where to carry on.
    """

    def __init__(self, session: Session, journal: Journal) -> None:
        self._session = session
        self._journal = journal
        self._geometry = Geometry(session, journal)
        self._seen: dict[str, tuple[Object, HostView]] = {}

    def own(self) -> None:
        """Takes every device, host by host; raises Taken."""
        for name in self._journal.record.hosts():
            self._enter(name)
            if name in self._journal.record.geometry:
                self._geometry.stamp(name)
            faults.reach("allocation.owned")

    def look_again(self) -> None:
        """Reads who uses the devices, now that they are owned; raises Aborted, Unanswered."""
        record, drivers, config = self._journal.record, self._session.drivers(), read_config(self._session)
        pods = self._session.pods()
        for name in record.hosts():
            node = self._session.node(name)
            host = None if node is None else view(node, self._session.settings, drivers, config)
            if node is None or host is None or host.excluded:
                raise Aborted(f"{name} cannot be used: {'it is gone' if host is None else host.excluded}")
            self._seen[name] = node, host
            self._still_there(record, host)
            _, ledger = read_ledger(self._session, name)
            _room(ledger, host, pod_use(pods, name, frozenset(hold.claim for _, hold in ledger.held())))
            if name in record.geometry and (used := pod_use(pods, name)):
                raise Aborted(f"{name} is in use since it was planned: {_told(used)}")
        faults.reach("allocation.looked")

    def change_geometry(self) -> None:
        """Asks for every layout, after what was there before is on record; raises Aborted, Taken."""
        record = self._journal.record
        if not record.geometry:
            return
        if record.phase is Phase.OWNING:
            self._journal.move(phase=Phase.CHANGING, originals=self._originals(record))
        faults.reach("allocation.recorded")
        for name in sorted(self._journal.record.geometry):
            if failed := self._geometry.cut(name):
                raise Aborted(failed)
            faults.reach("allocation.cut")

    def give_back(self) -> tuple[str, ...]:
        """Restores geometry, then gives up ownership; returns the cards that are not restored yet."""
        record = self._journal.record
        remaining = [card for name in sorted(record.originals) for card in self._geometry.restore(name)]
        if remaining:
            return tuple(remaining)
        faults.reach("allocation.restored")
        for name in record.hosts():
            if name in record.geometry:
                self._geometry.unstamp(name)
            self._leave(name)
            faults.reach("allocation.disowned")
        if record.geometry:
            self._geometry.forget()
        return ()

    def users(self) -> tuple[str, ...]:
        """Returns what of the claim is in use; raises Unanswered."""
        record, pods = self._journal.record, self._session.pods()
        found = {
            f"pod {pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
            for pod in pods
            if claim_of(pod) == record.claim_id
        }
        for name, cards in record.geometry.items():
            kept = totals(card for number, card in enumerate(cards) if number not in record.recut[name])
            made = totals(card for number, card in enumerate(cards) if number in record.recut[name])
            used = pod_use(pods, name)
            found |= {
                f"{resource} of {name}"
                for profile in made
                for resource in [resource_of(profile)]
                if used.get(resource, 0) > kept.get(profile, 0)
            }
        return tuple(sorted(found))

    # Inside -----------------------------------------------------------------------------------

    def _enter(self, name: str) -> None:
        def write(read: tuple[Object | None, Ledger]) -> Object | Refused | None:
            holder, ledger = read
            changed = owned(ledger, self._journal.record)
            return None if changed == ledger else self._put(holder, changed)

        self._session.change(lambda: read_ledger(self._session, name), write, self._journal.check)

    def _leave(self, name: str) -> None:
        def write(read: tuple[Object | None, Ledger]) -> Object | Refused | None:
            holder, ledger = read
            changed = disowned(ledger, self._journal.record)
            return None if changed == ledger else self._put(holder, changed)

        self._session.change(lambda: read_ledger(self._session, name), write, self._journal.check)

    def _put(self, holder: Object | None, ledger: Ledger) -> Object | Refused:
        body = written(ledger, self._session.settings.namespace, holder)
        if holder is None:
            return self._session.api.create(CONFIG_MAPS, body)
        return self._session.api.replace(CONFIG_MAPS, body)

    def _still_there(self, record: ClaimRecord, host: HostView) -> None:
        there = {device_key(device) for device in host.devices()}
        for key in holds_of(record, host.name):
            if key not in there:
                raise Aborted(f"{key} is no longer on {host.name}")
        if host.name in record.geometry and not host.cards:
            raise Aborted(f"nobody can tell what the cards of {host.name} are cut into")

    def _originals(self, record: ClaimRecord) -> Mapping[str, Original]:
        found = {}
        for name in record.geometry:
            node, host = self._seen[name]
            if host.pooled or len(host.cards) != len(record.geometry[name]):
                raise Aborted(f"nobody can tell what the cards of {name} are cut into")
            found[name] = self._geometry.original(node, host.cards)
        return found


def _room(ledger: Ledger, host: HostView, foreign: Mapping[str, int]) -> None:
    """Raises Aborted where what is owned and what foreign pods hold is more than what is advertised."""
    needed = dict(foreign)
    for _, hold in ledger.held():
        if hold.resource:
            needed[hold.resource] = needed.get(hold.resource, 0) + hold.units
    advertised = dict(host.allocatable)
    for resource, count in needed.items():
        if count > advertised.get(resource, 0) and any(h.resource == resource for _, h in ledger.held()):
            raise Aborted(f"{resource} of {host.name} is in use since it was planned: {_told(foreign)}")


def _told(used: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {resource}" for resource, count in sorted(used.items())) or "by nobody known"
