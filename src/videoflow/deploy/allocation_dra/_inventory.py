"""What is read of a cluster: devices, and who has them. Nothing here writes or guesses."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from videoflow.adapters.kubernetes import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, Object
from videoflow.backends.allocation import (
    Completeness,
    DeviceIdentity,
    InventorySnapshot,
    device_key,
    memory_key,
)
from videoflow.backends.outcomes import Observation, known, unknown
from videoflow.deploy.allocation_dra._pools import HostView, Published, hosts_of, newest, size_of
from videoflow.deploy.allocation_dra._settings import CLAIM, DraSettings
from videoflow.deploy.kubernetes_records import Reads, Unanswered


@dataclass(frozen=True)
class Given:
    """One device of one allocated claim.

    Attributes:
        pool: Its pool.
        device: Its name there.
        claim: Namespace and name of the claim.
        ours: The claim of ours that it belongs to; empty: somebody else's.
        consumed_bytes: Memory of it; None: all.
    """

    pool: str
    device: str
    claim: str
    ours: str
    consumed_bytes: int | None


@dataclass(frozen=True)
class DraSnapshot(InventorySnapshot):
    """An inventory with what a plan needs beside devices.

    Attributes:
        hosts: Its hosts.
        given: Every device that some claim has.
        notes: What could not be read, and what is odd.
    """

    hosts: tuple[HostView, ...] = ()
    given: tuple[Given, ...] = ()
    notes: tuple[str, ...] = ()


def inventory(session: Reads, settings: DraSettings, scope: str) -> Observation[DraSnapshot]:
    """Returns the devices of a host, or of all; Unknown where what drivers publish cannot be listed whole."""
    try:
        slices, nodes = session.listed(RESOURCE_SLICES), session.listed(NODES)
    except Unanswered as error:
        return unknown(error.reason, session.now(), f"the devices cannot be listed: {error}")
    specs, notes = newest(slices, settings.driver)
    whole = not notes
    try:
        given = given_out(session.listed(RESOURCE_CLAIMS), settings)
    except Unanswered as error:
        notes.append(f"who has the devices cannot be read: {error}")
        given, whole = (), False
    hosts = tuple(host for host in hosts_of(specs, nodes, settings.driver) if scope in ("", host.name))
    hosts = tuple(_made(host, given) for host in hosts)
    notes += [f"{host.name}: {host.excluded}" for host in hosts if host.excluded]
    notes += [
        f"{host.name}/{one.name} is withheld: {one.withheld}"
        for host in hosts
        for one in (*host.cards, *host.slices)
        if one.withheld
    ]
    occupancy = _occupancy(hosts, given) if whole else {}
    owners = {host.name: owner for host in hosts if (owner := _owners(host, given))}
    told = (hosts, sorted(occupancy.items()), sorted(owners.items()), whole)
    generation = hashlib.sha256(repr(told).encode()).hexdigest()[:20]
    snapshot = DraSnapshot(
        devices=tuple(one.identity for host in hosts for one in (*host.cards, *host.slices)),
        occupancy=occupancy,
        sharing={host.name: host.sharing for host in hosts},
        owners=owners,
        completeness=Completeness.COMPLETE if whole else Completeness.PARTIAL,
        observed_at=session.now(),
        generation=generation,
        hosts=hosts,
        given=given,
        notes=tuple(notes),
    )
    return known(snapshot, session.now(), generation)


def given_out(claims: Sequence[Object], settings: DraSettings) -> tuple[Given, ...]:
    """Returns every device of the driver that some claim has."""
    return tuple(
        _given(claim, result)
        for claim in claims
        for result in results_of(claim)
        if result["driver"] == settings.driver and not result.get("adminAccess")
    )


def results_of(claim: Object) -> Sequence[Object]:
    """Returns what a claim was given."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def _given(claim: Object, result: Object) -> Given:
    metadata = claim["metadata"]
    consumed = (result.get("consumedCapacity") or {}).get("memory")
    return Given(
        pool=result["pool"],
        device=result["device"],
        claim=f"{metadata['namespace']}/{metadata['name']}",
        ours=(metadata.get("labels") or {}).get(CLAIM, ""),
        consumed_bytes=None if consumed is None else size_of(consumed),
    )


def slice_name(node: str, device: str) -> str:
    """Returns how a slice that the driver makes is called here: nobody outside its host knows its UUID."""
    return f"{node}/{device}"


def _made(host: HostView, given: Sequence[Given]) -> HostView:
    """Returns a host with the slices that the driver made, or makes, because a claim has them."""
    taken = {(one.pool, one.device) for one in given}
    made = [
        replace(one, identity=replace(one.identity, mig_uuid=slice_name(host.name, one.name)))
        for one in host.possible
        if (one.pool, one.name) in taken
    ]
    return replace(host, slices=(*host.slices, *made))


def _occupancy(hosts: Sequence[HostView], given: Sequence[Given]) -> dict[str, int]:
    by_device: dict[tuple[str, str], list[Given]] = {}
    for one in given:
        by_device.setdefault((one.pool, one.device), []).append(one)
    found: dict[str, int] = {}
    for host in hosts:
        for device in (*host.cards, *host.slices):
            users = by_device.get((device.pool, device.name), [])
            if users:
                memory = device.identity.memory_bytes or 0
                taken = [memory if one.consumed_bytes is None else one.consumed_bytes for one in users]
                found[device_key(device.identity)] = len(users)
                found[memory_key(device.identity)] = sum(taken)
    return found


def _owners(host: HostView, given: Sequence[Given]) -> str:
    pools = {(one.pool, one.name) for one in (*host.cards, *host.slices)}
    stamps = {one.ours or one.claim for one in given if (one.pool, one.device) in pools}
    return ",".join(sorted(stamps))


def place_of(hosts: Mapping[str, HostView], device: DeviceIdentity) -> Published | None:
    """Returns what is published under a device of a plan; a slice to be made has none."""
    host = hosts.get(device.node)
    if host is None or (device.mig_profile is not None and device.mig_uuid is None):
        return None
    key = device_key(device)
    return next((one for one in (*host.cards, *host.slices) if device_key(one.identity) == key), None)
