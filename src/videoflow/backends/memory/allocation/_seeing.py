"""What is read: the inventory, and a claim as it is on its hosts. Nothing here writes or guesses."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from videoflow.backends.allocation import (
    EVIDENCE_LOST,
    ClaimObservation,
    ClaimStatus,
    Completeness,
    DeliveredGrant,
    DeviceIdentity,
    InventorySnapshot,
    memory_key,
)
from videoflow.backends.allocation.lifecycle import Phase
from videoflow.backends.memory.allocation._cluster import Page, Unanswered
from videoflow.backends.memory.allocation._holding import holds_all, is_laid_out
from videoflow.backends.memory.allocation._hosts import MemoryHost, MemoryPod
from videoflow.backends.memory.allocation._records import ClaimRecord, Terms
from videoflow.backends.memory.allocation._session import MemorySession
from videoflow.backends.outcomes import Observation, UnknownReason, known, unknown
from videoflow.placement import classify_labels

POLICY = "memory"


def inventory(session: MemorySession, scope: str) -> Observation[InventorySnapshot]:
    """Returns the devices of a host, or of all; Unknown where the hosts cannot be listed whole."""
    try:
        hosts = session.hosts()
    except Unanswered as error:
        return unknown(error.reason, session.now(), "the hosts cannot be listed")
    if not hosts.whole:
        return unknown(UnknownReason.MALFORMED, session.now(), "the list of hosts was cut short")
    try:
        pods: Page[MemoryPod] | None = session.pods()
    except Unanswered:
        pods = None
    read = pods is not None and pods.whole
    listed = [host for host in hosts.items if scope in ("", host.name)]
    versions = [str(pods.version) if pods is not None else "?", *(str(host.version) for host in hosts.items)]
    generation = ".".join(versions)
    snapshot = InventorySnapshot(
        devices=tuple(device for host in listed for device in devices_of(host)),
        occupancy=_occupancy(listed, pods.items) if pods is not None and read else {},
        sharing={host.name: classify_labels(host.labels) for host in listed},
        owners={host.name: stamp for host in listed if (stamp := _owner(host))},
        completeness=Completeness.COMPLETE if read else Completeness.PARTIAL,
        observed_at=session.now(),
        generation=generation,
    )
    return known(snapshot, session.now(), generation)


def devices_of(host: MemoryHost) -> list[DeviceIdentity]:
    """Returns the cards of a host, each with its slices behind it."""
    found = []
    for card in host.cards:
        whole = DeviceIdentity(host.name, card.ordinal, card.uuid, None, card.product, card.memory_bytes)
        found.append(whole)
        found += [
            replace(whole, mig_uuid=piece.uuid, memory_bytes=piece.memory_bytes, mig_profile=piece.profile)
            for piece in card.slices
        ]
    return found


def _owner(host: MemoryHost) -> str:
    return ",".join(sorted({host.owner, *(hold.stamp for _, hold in host.held())} - {""}))


def _occupancy(hosts: Iterable[MemoryHost], pods: Iterable[MemoryPod]) -> dict[str, int]:
    used: Counter[str] = Counter()
    listed = list(pods)
    for host in hosts:
        keys = {memory_key(device): device for device in devices_of(host)}
        for size_key, device in keys.items():
            key = size_key.removesuffix(":bytes")
            holds = host.holds.get(key, ())
            claims = {hold.claim for hold in holds}
            others = [pod for pod in listed if pod.device == key and pod.claim not in claims]
            sizes = [hold.size_bytes for hold in holds] + [pod.size_bytes for pod in others]
            units = sum(hold.units for hold in holds) + len(others)
            if units:
                used[key] = units
                used[size_key] = sum((device.memory_bytes or 0) if size is None else size for size in sizes)
    return dict(used)


def observed(session: MemorySession, record: ClaimRecord) -> ClaimObservation:
    """Returns a claim as it is on its hosts now; raises Unanswered."""
    if record.phase in (Phase.FAILED, Phase.ABORTING):
        return _said(record, ClaimStatus.FAILED, record.evidence)
    if record.phase is Phase.RELEASING:
        return _said(record, ClaimStatus.RELEASING, ("it is being released",))
    hosts = {name: _found(session, name) for name in record.hosts()}
    lost = [name for name, host in hosts.items() if not holds_all(host, record)]
    if record.phase is Phase.OWNING or (record.phase is Phase.CHANGING and lost):
        return _said(record, ClaimStatus.PENDING, ("its devices are being taken",))
    if lost:
        return _said(record, ClaimStatus.FAILED, (EVIDENCE_LOST, f"replaced on {', '.join(lost)}"))
    seen = [
        is_laid_out(hosts[name], entries, record.stamp, advertised=advertised)
        for advertised in (False, True)
        for name, entries in record.geometry.items()
    ]
    made, usable = all(seen[: len(record.geometry)]), all(seen)
    grant = grant_of(record, record.assignments, hosts)
    evidence = tuple(f"{name} is owned under {record.stamp}" for name in hosts)
    if record.phase is Phase.CHANGING or not made:
        return _said(record, ClaimStatus.ALLOCATED, evidence, grant)
    if not usable:
        return _said(record, ClaimStatus.PREPARED, (*evidence, "its slices are made"), grant)
    ready = _said(record, ClaimStatus.READY, (*evidence, "its devices can be used"), grant)
    return replace(ready, observed_generation=ready.desired_generation)


def grant_of(record: ClaimRecord, workloads: Iterable[str], hosts: dict[str, MemoryHost]) -> DeliveredGrant:
    """Returns what workloads of a claim have, with the ids of the slices that were made for it."""
    names = sorted(workloads)
    resolved = resolve(record, hosts)
    devices = tuple(device for name in names for device in resolved[name])
    alone = all(record.terms.get(name, Terms(None)).size_bytes is None for name in names)
    return DeliveredGrant(",".join(names), devices, alone, len(devices), POLICY)


def resolve(record: ClaimRecord, hosts: dict[str, MemoryHost]) -> dict[str, tuple[DeviceIdentity, ...]]:
    """Returns the devices of each workload; each slice that was made is given once."""
    left = {
        (name, card.uuid): sorted(card.slices, key=lambda piece: piece.start)
        for name, host in hosts.items()
        for card in host.cards
        if card.made == record.stamp
    }
    found = {}
    for workload in sorted(record.assignments):
        devices = []
        for device in record.assignments[workload]:
            pieces = left.get((device.node, str(device.uuid)), [])
            fits = [piece for piece in pieces if piece.profile == device.mig_profile]
            if device.mig_uuid is None and device.mig_profile is not None and fits:
                pieces.remove(fits[0])
                device = replace(device, mig_uuid=fits[0].uuid, memory_bytes=fits[0].memory_bytes)
            devices.append(device)
        found[workload] = tuple(devices)
    return found


def hosts_of(session: MemorySession, record: ClaimRecord) -> dict[str, MemoryHost]:
    """Reads the hosts of a claim; raises Unanswered."""
    return {name: _found(session, name) for name in record.hosts()}


def _found(session: MemorySession, name: str) -> MemoryHost:
    host = session.host(name)
    return MemoryHost(name, ()) if host is None else host


def _said(
    record: ClaimRecord, status: ClaimStatus, evidence: tuple[str, ...], grant: DeliveredGrant | None = None
) -> ClaimObservation:
    return ClaimObservation(
        claim_id=record.claim_id,
        owner=f"videoflow/{record.stamp}",
        desired_generation=str(record.generation),
        observed_generation=None,
        status=status,
        grant=grant,
        evidence=evidence,
    )
