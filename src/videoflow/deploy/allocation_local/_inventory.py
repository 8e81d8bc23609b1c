"""From what the driver says, the mask and the ledger, to one snapshot.

Used by the allocator. It refuses to call a device idle because a read failed: what one visible device does
not say makes the snapshot partial, with no occupancy at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from videoflow.adapters.nvml import IDLE_BYTES, DeviceReading, HostReading, ambiguous, maskable
from videoflow.backends.allocation import (
    Completeness,
    HostSharing,
    InventorySnapshot,
    device_key,
    memory_key,
)
from videoflow.backends.outcomes import Known, Observation, Unknown, UnknownReason, known, unknown
from videoflow.deploy.allocation_local._ledger import Book, Share
from videoflow.deploy.allocation_local._settings import LocalSettings
from videoflow.environment import MASK_VARIABLE, ORDER_VARIABLE
from videoflow.ids import hash_id
from videoflow.placement import Link, resolve_mask
from videoflow.processes import ProcessIdentity, is_within

_WORST_FIRST = (HostSharing.MPS, HostSharing.TIME_SLICED, HostSharing.UNKNOWN)


@dataclass(frozen=True)
class LocalSnapshot(InventorySnapshot):
    """A snapshot of this host.

    Attributes:
        facts: Device key → what a constraint may ask of it.
        links: Between its whole GPUs.
        shares: Device key → who holds it, by the ledger.
        notes: Why a device that is there is not among these.
    """

    facts: Mapping[str, Mapping[str, str]]
    links: tuple[Link, ...]
    shares: Mapping[str, tuple[Share, ...]]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """What one look at driver and ledger gave."""

    host: HostReading
    book: Observation[Book]
    observed_at: float


def visible(seen: Seen, settings: LocalSettings) -> Observation[tuple[list[DeviceReading], list[str]]]:
    """Returns the devices that may be given, in the order of the mask, and why others may not."""
    devices = seen.host.devices
    if ambiguous(settings.mask, settings.order, devices):
        detail = (
            f"{MASK_VARIABLE} has ordinals and the GPUs differ: CUDA numbers the fastest first; "
            f"set {ORDER_VARIABLE}=PCI_BUS_ID, or name UUIDs"
        )
        return unknown(UnknownReason.MALFORMED, seen.observed_at, detail)
    shown = resolve_mask(settings.mask, maskable(devices))
    given, notes = [], []
    if shown.reason:
        at = "" if shown.stopped_at is None else f" at {shown.stopped_at!r}"
        notes.append(f"{MASK_VARIABLE}={settings.mask} ends{at}: {shown.reason}")
    for number in shown.devices:
        device = devices[number]
        if device.partitioned:
            notes.append(f"{_name(device)}: MIG mode is on; name one of its slices in {MASK_VARIABLE}")
        elif device.prohibited:
            notes.append(f"{_name(device)}: its compute mode is Prohibited")
        else:
            given.append(device)
    return known((given, notes), seen.observed_at)


def snapshot_of(seen: Seen, settings: LocalSettings, holder: ProcessIdentity) -> Observation[LocalSnapshot]:
    """Returns one snapshot; pure, but for looking at which process belongs to which.

    Args:
        seen: What was read.
        settings: Mask and host.
        holder: This process, whose own use of a device is nobody else's.
    """
    found = visible(seen, settings)
    if isinstance(found, Unknown):
        return found
    devices, notes = found.value
    book = seen.book.value if isinstance(seen.book, Known) else Book()
    problems = [problem for device in devices for problem in device.problems]
    if isinstance(seen.book, Unknown):
        problems.append(f"the ledger could not be read: {seen.book.reason}, {seen.book.detail}")
    occupancy: dict[str, int] = {}
    for device in () if problems else devices:
        key = device_key(device.identity)
        users = foreign_users(device, book, holder)
        held = book.shares.get(key, ())
        occupancy[key] = len(held) + users
        occupancy[memory_key(device.identity)] = _spoken_for(device, book, held)
    sharing = _sharing(devices, seen.host.devices)
    claims = {book.claims[share.claim].owner for held in book.shares.values() for share in held}
    identities = tuple(device.identity for device in devices)
    return known(
        LocalSnapshot(
            devices=identities,
            occupancy=occupancy,
            sharing={settings.host: sharing},
            owners={settings.host: ", ".join(sorted(claims))} if claims else {},
            completeness=Completeness.PARTIAL if problems else Completeness.COMPLETE,
            observed_at=seen.observed_at,
            generation=hash_id(sharing, book.generation, *map(device_key, identities)),
            facts={device_key(device.identity): _facts(device) for device in devices},
            links=seen.host.links,
            shares={device_key(i): book.shares.get(device_key(i), ()) for i in identities},
            notes=tuple(dict.fromkeys((*notes, *problems))),
        ),
        seen.observed_at,
    )


def foreign_users(device: DeviceReading, book: Book, holder: ProcessIdentity) -> int:
    """Counts processes on a device that belong to none of those who hold it, nor to this process.

    Memory that is in use, and by no process that the driver names, is used by somebody all the same: in a
    container it names only the container's own.
    """
    held = book.shares.get(device_key(device.identity), ())
    holders = [book.claims[share.claim].holder for share in held]
    ours = [one.pid for one in (*holders, holder) if one.place == holder.place]
    users = device.users or ()
    foreign = sum(not any(is_within(user.pid, pid) for pid in ours) for user in users)
    unnamed = not users and not held and (device.used_bytes or 0) > IDLE_BYTES
    return foreign + unnamed


def used_within(device: DeviceReading, pid: int, *, alone: bool) -> int | None:
    """Returns the bytes of a device that a process and what it started use; None: cannot be told.

    Args:
        device: As it was read.
        pid: The process.
        alone: Nobody else may be on the device, so that what is used and by no named process is its.
    """
    if device.users is None or device.used_bytes is None:
        return None
    own = [user for user in device.users if is_within(user.pid, pid)]
    if own and all(user.used_bytes is not None for user in own):
        return sum(user.used_bytes or 0 for user in own)
    if device.used_bytes <= IDLE_BYTES:
        return 0
    if alone and (own or not device.users):
        return device.used_bytes
    return None if own or not device.users else 0


def _spoken_for(device: DeviceReading, book: Book, held: Iterable[Share]) -> int:
    """Returns the bytes that are in use or promised: what holders may still come to use counts."""
    held, total = tuple(held), device.identity.memory_bytes or 0
    if any(share.exclusive for share in held):
        return total
    used, promised = device.used_bytes or 0, sum(share.peak_bytes for share in held)
    pids = [book.claims[share.claim].holder.pid for share in held]
    users = device.users or ()
    own = sum(user.used_bytes or 0 for user in users if any(is_within(user.pid, pid) for pid in pids))
    return min(total, used - own + max(own, promised))


def _sharing(given: Iterable[DeviceReading], everything: Iterable[DeviceReading]) -> HostSharing:
    kinds = [device.sharing for device in given]
    shared = next((kind for kind in _WORST_FIRST if kind in kinds), None)
    if shared is not None:
        return shared
    cut = any(device.partitioned for device in everything)
    return HostSharing.MIG if cut and all(kind is HostSharing.MIG for kind in kinds) else HostSharing.PHYSICAL


def _facts(device: DeviceReading) -> dict[str, str]:
    identity = device.identity
    said = {
        "product": identity.product,
        "uuid": identity.mig_uuid or identity.uuid,
        "ordinal": identity.ordinal,
        "memory_bytes": identity.memory_bytes,
        "mig_profile": identity.mig_profile,
    }
    return {**device.facts, **{key: str(value) for key, value in said.items() if value is not None}}


def _name(device: DeviceReading) -> str:
    return f"{device.identity.product} {device_key(device.identity)}"


@dataclass(frozen=True)
class Surveyed:
    """One device as people see it.

    Attributes:
        reading: What the driver says.
        given: Whether it may be given to a workload.
        shares: Who holds it, by the ledger.
    """

    reading: DeviceReading
    given: bool
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Survey:
    """Everything that could be seen of this host's GPUs, and what could not.

    Attributes:
        devices: All of them, slices after their GPU.
        sharing: How the host hands its visible devices out.
        driver: Its version, or "".
        source: Who said so.
        notes: Why devices may not be given.
        unknown: What could not be read.
    """

    devices: tuple[Surveyed, ...]
    sharing: HostSharing
    driver: str
    source: str
    notes: tuple[str, ...]
    unknown: tuple[str, ...]


def survey_of(seen: Seen, settings: LocalSettings) -> Survey:
    """Returns what people may want to see; a mask that cannot be resolved is among what is unknown."""
    found = visible(seen, settings)
    given, notes = found.value if isinstance(found, Known) else ([], [])
    book = seen.book.value if isinstance(seen.book, Known) else Book()
    problems = [problem for device in seen.host.devices for problem in device.problems]
    if isinstance(found, Unknown):
        problems.append(found.detail)
    if isinstance(seen.book, Unknown):
        problems.append(f"who holds what: {seen.book.reason}, {seen.book.detail}")
    names = {device_key(device.identity) for device in given}
    rows = []
    for device in seen.host.devices:
        key = device_key(device.identity)
        rows.append(Surveyed(device, key in names, book.shares.get(key, ())))
    return Survey(
        tuple(rows),
        _sharing(given, seen.host.devices),
        seen.host.driver,
        seen.host.source,
        tuple(notes),
        tuple(dict.fromkeys(problems)),
    )
