"""The ledger of one user's grants on this host: claims and shares in SQLite, changed by compare-and-swap.

Used by the allocator. A share is written under the version of the device's record that was read; a holder is
a process by number and start time, and what a dead one held is free without anybody's doing. It refuses to
take a holder that it cannot see for a dead one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from videoflow.backends.allocation import ClaimStatus, DeviceIdentity, WorkloadRequest, device_key
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason, known, unknown
from videoflow.backends.runtime import ABSENT, Change, RuntimeStore, Stored, StoreOutcome
from videoflow.clock import Clock
from videoflow.ids import hash_id
from videoflow.processes import ProcessIdentity

_CALL_SECONDS = 10.0
_CLAIMS, _DEVICES = "claim/", "device/"
Lives = Callable[[ProcessIdentity], bool | None]


class Share(msgspec.Struct, frozen=True):
    """One workload's hold on one device.

    Attributes:
        claim: Id of its claim.
        owner: Whose the claim is, as people read it.
        workload: Which workload.
        exclusive: Nobody else may hold the device.
        peak_bytes: What it says that it uses at most; 0 where nothing is reserved.
    """

    claim: str
    owner: str
    workload: str
    exclusive: bool
    peak_bytes: int = 0


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim as it lies in the ledger.

    Attributes:
        claim_id: Derived from the operation id.
        operation_id: Of the reservation.
        plan_id: Of the plan that it carries out.
        owner: Whose it is, as people read it.
        generation: Differs between any two claims of one id.
        status: How far it has come.
        holder: The process with which it ends.
        policy: By which it was granted.
        assignments: Workload → devices.
        requests: What was asked for.
    """

    claim_id: str
    operation_id: str
    plan_id: str
    owner: str
    generation: str
    status: ClaimStatus
    holder: ProcessIdentity
    policy: str
    assignments: dict[str, tuple[DeviceIdentity, ...]]
    requests: tuple[WorkloadRequest, ...] = ()


@dataclass(frozen=True)
class Book:
    """The ledger as it was read, what dead holders left taken out.

    Attributes:
        claims: Those whose holder lives, or cannot be seen.
        shares: Device → its shares, of those claims.
        dead: Claims whose holder has died.
        versions: Key of each record → its version, those of the dead included.
        generation: Moves with every change of a device's record.
    """

    claims: Mapping[str, Claim] = field(default_factory=dict)
    shares: Mapping[str, tuple[Share, ...]] = field(default_factory=dict)
    dead: Mapping[str, Claim] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def generation(self) -> str:
        """Moves with every change of a device's record."""
        devices = sorted(item for item in self.versions.items() if item[0].startswith(_DEVICES))
        return hash_id(*(part for item in devices for part in item))


class Ledger:
    """One ledger file.

    Args:
        store: Where it is kept.
        clock: For deadlines.
        lives: Says whether a process lives; None: that cannot be seen.
    """

    def __init__(self, store: RuntimeStore, clock: Clock, lives: Lives) -> None:
        self._store = store
        self._clock = clock
        self._lives = lives

    def read(self) -> Observation[Book]:
        """Returns the whole ledger; writes nothing."""
        seen = self._store.scan("", deadline=self._deadline())
        if isinstance(seen, Unknown):
            return seen
        try:
            return known(self._book(seen.value), seen.observed_at)
        except msgspec.MsgspecError as error:
            return unknown(UnknownReason.MALFORMED, seen.observed_at, f"the ledger: {error}")

    def _book(self, stored: Mapping[str, Stored]) -> Book:
        claims, dead, shares = dict[str, Claim](), dict[str, Claim](), dict[str, tuple[Share, ...]]()
        for key, record in stored.items():
            if key.startswith(_CLAIMS):
                claim = msgspec.json.decode(record.value, type=Claim)
                (dead if self._lives(claim.holder) is False else claims)[claim.claim_id] = claim
            elif key.startswith(_DEVICES):
                held = msgspec.json.decode(record.value, type=tuple[Share, ...])
                shares[key.removeprefix(_DEVICES)] = held
        living = {
            device: tuple(share for share in held if share.claim in claims) for device, held in shares.items()
        }
        versions = {key: record.version for key, record in stored.items()}
        return Book(claims, {device: held for device, held in living.items() if held}, dead, versions)

    def add(self, book: Book, claim: Claim, shares: Mapping[str, Sequence[Share]]) -> StoreOutcome:
        """Writes a claim and its shares, and clears up after the dead; all of it or nothing.

        Args:
            book: What was read, and must still be so.
            claim: To be written; there is none of its id among the living.
            shares: Device key → what is added.
        """
        changed = {device: (*book.shares.get(device, ()), *added) for device, added in shares.items()}
        for gone in book.dead.values():
            for device in _devices_of(gone):
                changed.setdefault(device, book.shares.get(device, ()))
        changes = [self._device(book, device, held) for device, held in changed.items()]
        changes += [self._claim(book, gone, None) for gone in book.dead if gone != claim.claim_id]
        changes.append(self._claim(book, claim.claim_id, claim))
        return self._store.commit(changes, deadline=self._deadline())

    def move(self, book: Book, claim: Claim, status: ClaimStatus) -> StoreOutcome:
        """Writes the new status of a claim."""
        moved = msgspec.structs.replace(claim, status=status)
        return self._store.commit([self._claim(book, claim.claim_id, moved)], deadline=self._deadline())

    def remove(self, book: Book, claim: Claim) -> StoreOutcome:
        """Removes a claim and its shares."""
        changes = [
            self._device(book, device, tuple(s for s in held if s.claim != claim.claim_id))
            for device, held in book.shares.items()
            if any(share.claim == claim.claim_id for share in held)
        ]
        changes.append(self._claim(book, claim.claim_id, None))
        return self._store.commit(changes, deadline=self._deadline())

    def _device(self, book: Book, device: str, held: Sequence[Share]) -> Change:
        # Kept when it is empty, so that its version tells a device that was held in between.
        return self._changed(book, f"{_DEVICES}{device}", msgspec.json.encode(held))

    def _claim(self, book: Book, claim_id: str, claim: Claim | None) -> Change:
        value = None if claim is None else msgspec.json.encode(claim)
        return self._changed(book, f"{_CLAIMS}{claim_id}", value)

    def _changed(self, book: Book, key: str, value: bytes | None) -> Change:
        return Change(key, value, book.versions.get(key, ABSENT))

    def _deadline(self) -> float:
        return self._clock.monotonic() + _CALL_SECONDS


def _devices_of(claim: Claim) -> list[str]:
    return [device_key(device) for devices in claim.assignments.values() for device in devices]
