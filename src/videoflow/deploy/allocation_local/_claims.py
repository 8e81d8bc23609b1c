"""Claims as values: what they hold of each device, and how they are observed."""

from videoflow.adapters.nvml import HostReading
from videoflow.backends.allocation import (
    ClaimObservation,
    ClaimStatus,
    DeviceIdentity,
    Sharing,
    WorkloadRequest,
    device_key,
)
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason, known, unknown
from videoflow.deploy.allocation_local._bindings import granted
from videoflow.deploy.allocation_local._ledger import Claim, Share
from videoflow.deploy.allocation_local._settings import Policy
from videoflow.processes import is_within


def shares_of(claim: Claim) -> dict[str, list[Share]]:
    """Returns, for each device of a claim, what its workloads hold of it."""
    requests = {request.workload_id: request for request in claim.requests}
    shares: dict[str, list[Share]] = {}
    for name, devices in claim.assignments.items():
        request = requests.get(name)
        strict = claim.policy == Policy.STRICT
        exclusive = strict and (
            request is None or request.sharing in (Sharing.EXCLUSIVE, Sharing.ISOLATED_MIG)
        )
        promised = peak(request) if strict and not exclusive else 0
        for device in devices:
            share = Share(claim.claim_id, claim.owner, name, exclusive, promised)
            shares.setdefault(device_key(device), []).append(share)
    return shares


def peak(request: WorkloadRequest | None) -> int:
    """Returns the bytes of each device that are promised to a sharer."""
    if request is None:
        return 0
    return max(request.declared_peak_memory_bytes or 0, request.reserved_memory_bytes or 0)


def still_fits(claim: Claim, request: WorkloadRequest) -> bool:
    """Returns whether what a workload holds is enough for what it now asks."""
    before = next((one for one in claim.requests if one.workload_id == request.workload_id), None)
    held: tuple[DeviceIdentity, ...] = claim.assignments[request.workload_id]
    return (
        before is not None
        and request.sharing is before.sharing
        and peak(request) <= peak(before)
        and all((device.memory_bytes or 0) >= (request.minimum_usable_memory_bytes or 0) for device in held)
    )


def observation(claim: Claim, evidence: tuple[str, ...] = ()) -> ClaimObservation:
    """Returns a claim as it stands in the ledger."""
    ready = claim.status is ClaimStatus.READY
    names = sorted(claim.assignments)
    return ClaimObservation(
        claim_id=claim.claim_id,
        owner=claim.owner,
        desired_generation=claim.generation,
        observed_generation=claim.generation if ready else None,
        status=claim.status,
        grant=granted(claim, *names) if ready and names else None,
        evidence=evidence
        or (("looked at after it was claimed, and nobody else was there",) if ready else ()),
    )


def failed(claim: Claim, evidence: str, why: str) -> ClaimObservation:
    """Returns a claim that holds nothing, and why."""
    return ClaimObservation(
        claim_id=claim.claim_id,
        owner=claim.owner,
        desired_generation=claim.generation,
        observed_generation=None,
        status=ClaimStatus.FAILED,
        grant=None,
        evidence=(evidence, why),
    )


def busy_devices(seen: Observation[HostReading], claim: Claim) -> Observation[tuple[str, ...]]:
    """Returns the devices that are used by what the holder started; its own use is no workload's."""
    if isinstance(seen, Unknown):
        return seen
    there = {device_key(device.identity): device for device in seen.value.devices}
    busy = []
    for device in (d for assigned in claim.assignments.values() for d in assigned):
        reading = there.get(device_key(device))
        users = () if reading is None else reading.users
        if users is None:
            return unknown(UnknownReason.UNSUPPORTED, seen.observed_at, f"{device_key(device)} does not say")
        holder = claim.holder.pid
        if any(user.pid != holder and is_within(user.pid, holder) for user in users):
            busy.append(device_key(device))
    return known(tuple(dict.fromkeys(busy)), seen.observed_at)
