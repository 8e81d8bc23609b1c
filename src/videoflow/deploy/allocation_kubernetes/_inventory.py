"""What is read of a cluster: hosts, who owns and who uses their devices. Nothing here writes or guesses."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from videoflow.adapters.kubernetes import CONFIG_MAPS, NODES, Object
from videoflow.backends.allocation import (
    Completeness,
    DeviceIdentity,
    HostSharing,
    InventorySnapshot,
    device_key,
    memory_key,
)
from videoflow.backends.outcomes import Observation, known, unknown
from videoflow.deploy.allocation_kubernetes._hosts import HostView, view
from videoflow.deploy.allocation_kubernetes._ledger import Ledger, ledger_in, ledger_name, related
from videoflow.deploy.allocation_kubernetes._session import Session, claim_of, used_by
from videoflow.deploy.allocation_kubernetes._settings import KIND, Strategy
from videoflow.deploy.kubernetes_records import Unanswered


@dataclass(frozen=True)
class KubernetesSnapshot(InventorySnapshot):
    """An inventory with what a plan needs beside devices.

    Attributes:
        hosts: Its hosts.
        used: Host → resource → how many pods hold, those of claims included.
        notes: What could not be read, and what is odd.
    """

    hosts: tuple[HostView, ...] = ()
    used: Mapping[str, Mapping[str, int]] | None = None
    notes: tuple[str, ...] = ()

    def users(self, host: HostView) -> dict[str, int]:
        """Returns the workloads on each device of a host."""
        return {device_key(d): self.occupancy.get(device_key(d), 0) for d in host.devices()}


def inventory(session: Session, scope: str) -> Observation[KubernetesSnapshot]:
    """Returns the devices of a host, or of all; Unknown where the hosts cannot be listed whole."""
    try:
        nodes = session.listed(NODES)
    except Unanswered as error:
        return unknown(error.reason, session.now(), f"the hosts cannot be listed: {error}")
    notes: list[str] = []
    try:
        drivers, pods, ledgers = session.drivers(), session.pods(), read_ledgers(session)
        whole = True
    except Unanswered as error:
        notes.append(f"who owns and uses the devices cannot be read: {error}")
        drivers, pods, ledgers, whole = {}, (), {}, False
    config = _config(session, notes)
    found = [view(node, session.settings, drivers, config) for node in nodes]
    hosts = tuple(host for host in found if host is not None and scope in ("", host.name))
    notes += [f"{host.name}: {host.note}" for host in hosts if host.note]
    occupancy = _occupancy(hosts, ledgers, pods) if whole else {}
    used = {host.name: pod_use(pods, host.name) for host in hosts}
    owners = {host.name: owner for host in hosts if (owner := _owners(host, ledgers.get(host.name)))}
    told = (hosts, sorted(occupancy.items()), sorted(owners.items()), used, whole)
    generation = hashlib.sha256(repr(told).encode()).hexdigest()[:20]
    snapshot = KubernetesSnapshot(
        devices=tuple(device for host in hosts for device in host.devices()),
        occupancy=occupancy,
        sharing={host.name: host.sharing for host in hosts},
        owners=owners,
        completeness=Completeness.COMPLETE if whole else Completeness.PARTIAL,
        observed_at=session.now(),
        generation=generation,
        hosts=hosts,
        used=used,
        notes=tuple(notes),
    )
    return known(snapshot, session.now(), generation)


def read_ledgers(session: Session) -> dict[str, Ledger]:
    """Returns the ledger of each host that has one; raises Unanswered."""
    holders = session.listed(CONFIG_MAPS, session.settings.namespace, f"{KIND}=host")
    return {holder["data"]["host"]: ledger_in(holder, holder["data"]["host"]) for holder in holders}


def read_ledger(session: Session, host: str) -> tuple[Object | None, Ledger]:
    """Returns the ledger of one host, and the object that it is in; raises Unanswered."""
    holder = session.config_map(ledger_name(host))
    return holder, ledger_in(holder, host)


def read_config(session: Session) -> str | None:
    """Returns the text of the MIG manager's configuration, or None; raises Unanswered."""
    if not session.settings.uses(Strategy.STATIC_MIG, Strategy.MANAGED_MIG):
        return None
    found = session.mig_config()
    return None if found is None else (found.get("data") or {}).get("config.yaml")


def _config(session: Session, notes: list[str]) -> str | None:
    try:
        return read_config(session)
    except Unanswered as error:
        notes.append(f"the configuration of MIG cannot be read, so no geometry changes: {error}")
        return None


def pod_use(pods: Sequence[Object], host: str, claims: frozenset[str] = frozenset()) -> dict[str, int]:
    """Returns what the pods of a host hold, less those of some claims: resource → how many."""
    found: dict[str, int] = {}
    for pod in pods:
        if pod["spec"]["nodeName"] == host and claim_of(pod) not in claims:
            for resource, count in used_by(pod).items():
                found[resource] = found.get(resource, 0) + count
    return found


def _owners(host: HostView, ledger: Ledger | None) -> str:
    stamps = {hold.stamp for _, hold in ledger.held()} if ledger is not None else set()
    foreign = {host.owner} if host.owner and not host.owner.startswith("claim-") else set()
    return ",".join(sorted(stamps | foreign))


def _occupancy(
    hosts: Sequence[HostView], ledgers: Mapping[str, Ledger], pods: Sequence[Object]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for host in hosts:
        ledger = ledgers.get(host.name, Ledger(host.name, {}))
        units = {device_key(device): 0 for device in host.devices()}
        claims = frozenset(hold.claim for _, hold in ledger.held())
        homeless: dict[str, int] = {}
        for key, hold in ledger.held():
            there = [other for other in units if related(host.name, key, other)]
            for other in there:
                units[other] += max(hold.units, 1)
            if not there and hold.resource:
                # Its seat had another name: what is cut how could be told when it was taken, or now.
                homeless[hold.resource] = homeless.get(hold.resource, 0) + hold.units
        for resource, count in homeless.items():
            _seat(host, units, resource, count)
        for resource, count in pod_use(pods, host.name, claims).items():
            _seat(host, units, resource, count)
        for device in host.devices():
            key = device_key(device)
            if units[key]:
                found[key] = units[key]
                found[memory_key(device)] = _bytes(host, device, units[key])
    return found


def _seat(host: HostView, units: dict[str, int], resource: str, count: int) -> None:
    """Counts foreign pods on the seats that are free, since nobody says which they have."""
    seats = [device_key(device) for device in _of_resource(host, resource)]
    for _ in range(count):
        free = min(reversed(seats), key=lambda key: units[key] / host.shares, default=None)
        if free is None:
            # Pods hold what is no longer advertised: nothing of this host is known to be free.
            for key in units:
                units[key] += 1
            return
        for key in units:
            if related(host.name, free, key) and (key == free or host.shares == 1):
                units[key] += 1


def _of_resource(host: HostView, resource: str) -> list[DeviceIdentity]:
    whole = [host.card(ordinal) for ordinal, cut in enumerate(host.cards) if cut is None]
    slices = [device for ordinal in range(len(host.cards)) for device in host.slices(ordinal)]
    return [
        device for device in (*whole, *slices, *host.loose()) if host.resource(device.mig_profile) == resource
    ]


def _bytes(host: HostView, device: DeviceIdentity, units: int) -> int:
    memory = device.memory_bytes or 0
    if host.sharing in (HostSharing.TIME_SLICED, HostSharing.MPS):
        return min(memory, units * (memory // host.shares))
    return memory
