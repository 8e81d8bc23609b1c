"""One claim on its way: its resource claims and their holders, then a second look; or everything back.

The scheduler is the authority: it gives a device to one claim, whoever asks. What is made here is owned by
the record of the claim: whatever a process makes that was overtaken goes as soon as the record has gone.
"""

from videoflow import faults
from videoflow.adapters.kubernetes import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
    Refusal,
    Refused,
    ResourceKind,
)
from videoflow.backends.allocation import DeviceIdentity, device_key
from videoflow.backends.allocation.lifecycle import Aborted, Taken, Undecided
from videoflow.deploy.allocation_dra._inventory import Given, given_out, results_of
from videoflow.deploy.allocation_dra._pools import HostView, hosts_of, newest
from videoflow.deploy.allocation_dra._records import DraRecord, Journal, claim_manifest, holder_manifest
from videoflow.deploy.allocation_dra._settings import CLAIM, DraSettings
from videoflow.deploy.kubernetes_records import MOST_TRIES, Reads, Unanswered

BARRIERS = ("dra.claimed", "dra.held", "dra.looked", "dra.let-go", "dra.deleted")
faults.declare(*BARRIERS)


class Operation:
    """The steps of one claim; each can be done again, by this process or the next."""

    def __init__(self, session: Reads, settings: DraSettings, journal: Journal) -> None:
        self._session = session
        self._settings = settings
        self._journal = journal

    def own(self) -> None:
        """Makes the resource claim of each workload, and the pod that holds it; raises Taken."""
        for workload in sorted(self._record.assignments):
            self._make(RESOURCE_CLAIMS, claim_manifest(self._record, workload, self._owner, self._settings))
            faults.reach("dra.claimed")
            self._make(PODS, holder_manifest(self._record, workload, self._owner, self._settings))
            faults.reach("dra.held")

    def look_again(self) -> None:
        """Reads what was given out, and to whom; raises Aborted, Taken, Undecided, Unanswered."""
        record = self._record
        claims = self._session.listed(RESOURCE_CLAIMS)
        given = given_out(claims, self._settings)
        mine = {one["metadata"]["name"]: one for one in claims if claim_label(one) == record.claim_id}
        waiting = []
        for workload, devices in sorted(record.assignments.items()):
            claim = mine.get(record.claim_of(workload))
            if claim is None or not results_of(claim):
                waiting.append((workload, devices))
            elif len(results_of(claim)) != len(devices):
                raise Aborted(f"{workload} was given {len(results_of(claim))} of {len(devices)} devices")
        faults.reach("dra.looked")
        if waiting:
            self._why_not(waiting, given)

    def change_geometry(self) -> None:
        """Does nothing: the driver cuts a card when a slice of it is given out."""

    def give_back(self) -> tuple[str, ...]:
        """Removes the holders, then the resource claims; returns what is still there."""
        remaining = []
        for workload in sorted(self._record.assignments):
            gone = self._remove(PODS, self._record.holder_of(workload))
            faults.reach("dra.let-go")
            if not (self._remove(RESOURCE_CLAIMS, self._record.claim_of(workload)) and gone):
                remaining.append(self._record.claim_of(workload))
            faults.reach("dra.deleted")
        return tuple(remaining)

    def users(self) -> tuple[str, ...]:
        """Returns the pods, other than its holders, for which a claim is reserved; raises Unanswered."""
        record = self._record
        holders = {record.holder_of(workload) for workload in record.assignments}
        claims = self._session.listed(RESOURCE_CLAIMS, self._settings.namespace)
        names = {record.claim_of(workload) for workload in record.assignments}
        found = {
            f"{user['resource']} {self._settings.namespace}/{user['name']}"
            for claim in claims
            if claim["metadata"]["name"] in names
            for user in (claim.get("status") or {}).get("reservedFor") or ()
            if user["name"] not in holders
        }
        return tuple(sorted(found))

    def missing(self) -> tuple[str, ...]:
        """Returns the holders that are not there any more; raises Unanswered."""
        record = self._record
        pods = self._session.listed(PODS, self._settings.namespace, f"{CLAIM}={record.claim_id}")
        there = {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}
        return tuple(sorted({record.holder_of(name) for name in record.assignments} - there))

    # Inside -----------------------------------------------------------------------------------

    @property
    def _record(self) -> DraRecord:
        return self._journal.record

    @property
    def _owner(self) -> str:
        return self._journal.uid

    def _make(self, kind: ResourceKind, body: Object) -> None:
        """Makes an object once; what an earlier claim of this name left is removed first."""
        name = body["metadata"]["name"]
        refused: Refused | None = None
        for _ in range(MOST_TRIES):
            found = self._session.found(kind, name, self._settings.namespace)
            self._journal.check()
            if found is not None and _owners(found) == {self._owner}:
                if found["metadata"].get("deletionTimestamp"):
                    raise Undecided
                return
            if found is not None:
                if claim_label(found) != self._record.claim_id:
                    raise Taken(f"{kind.plural} {name} is somebody else's")
                self._delete(kind, found)
                continue
            done = self._session.api.create(kind, body)
            if not isinstance(done, Refused):
                return
            refused = done
            if done.why in (Refusal.DENIED, Refusal.INVALID):
                break
        if refused is None:
            raise Undecided
        raise Unanswered(refused)

    def _remove(self, kind: ResourceKind, name: str) -> bool:
        """Removes an object of this claim; returns whether it is gone."""
        for _ in range(MOST_TRIES):
            found = self._session.found(kind, name, self._settings.namespace)
            self._journal.check()
            if found is None or claim_label(found) != self._record.claim_id:
                return True
            if found["metadata"].get("deletionTimestamp"):
                return False
            self._delete(kind, found)
        return False

    def _delete(self, kind: ResourceKind, found: Object) -> None:
        metadata = found["metadata"]
        refused = self._session.api.delete(kind, metadata["name"], metadata["namespace"], uid=metadata["uid"])
        if refused is not None and refused.why in (Refusal.DENIED, Refusal.INVALID):
            raise Unanswered(refused)

    def _why_not(
        self, waiting: list[tuple[str, tuple[DeviceIdentity, ...]]], given: tuple[Given, ...]
    ) -> None:
        """Raises what is known of workloads that have nothing yet."""
        specs, short = newest(self._session.listed(RESOURCE_SLICES), self._settings.driver)
        nodes = self._session.listed(NODES)
        hosts = {host.name: host for host in hosts_of(specs, nodes, self._settings.driver)}
        pods = self._session.listed(PODS, self._settings.namespace, f"{CLAIM}={self._record.claim_id}")
        placeless = {pod["metadata"]["name"]: why for pod in pods if (why := _placeless(pod))}
        for workload, devices in waiting:
            for device in devices:
                if other := _holder(hosts.get(device.node), device, given):
                    raise Taken(f"a device of {workload} is owned by {other}")
                if not short and not _is_there(hosts.get(device.node), device):
                    raise Aborted(f"a device of {workload} is no longer published on {device.node}")
            if said := placeless.get(self._record.holder_of(workload), ""):
                raise Aborted(f"the scheduler finds no place for {workload}: {said}")
        raise Undecided


def claim_label(found: Object) -> str:
    """Returns the claim of ours that an object belongs to, or empty."""
    return str((found["metadata"].get("labels") or {}).get(CLAIM, ""))


def _owners(found: Object) -> set[str]:
    return {owner["uid"] for owner in found["metadata"].get("ownerReferences") or ()}


def _placeless(pod: Object) -> str:
    for told in (pod.get("status") or {}).get("conditions") or ():
        if (told["type"], told["status"], told.get("reason")) == ("PodScheduled", "False", "Unschedulable"):
            return str(told.get("message") or "it says nothing more")
    return ""


def _holder(host: HostView | None, device: DeviceIdentity, given: tuple[Given, ...]) -> str:
    """Returns the claim that has a device, or the card that it is on; empty: nobody, as far as is seen."""
    if host is None:
        return ""
    wanted = None if device.mig_profile and device.mig_uuid is None else device_key(device)
    blocking = {
        (one.pool, one.name)
        for one in (*host.cards, *host.slices, *host.possible)
        if not one.several
        if (wanted is not None and one.identity.mig_uuid == wanted)
        or (one.identity.uuid == device.uuid and (one.kind == "gpu" or device.mig_profile is None))
    }
    return next((one.ours or one.claim for one in given if (one.pool, one.device) in blocking), "")


def _is_there(host: HostView | None, device: DeviceIdentity) -> bool:
    if host is None or host.excluded:
        return False
    if device.mig_profile is not None and device.mig_uuid is None:
        made = {(one.identity.uuid, one.identity.mig_profile) for one in host.possible}
        return (device.uuid, device.mig_profile) in made
    there = (*host.cards, *host.slices)
    return device_key(device) in {device_key(one.identity) for one in there}
