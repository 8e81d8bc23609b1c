"""Claims as durable records, moved from phase to phase by compare-and-swap."""

from typing import Final

import msgspec

from videoflow.backends.allocation import DeviceIdentity
from videoflow.backends.allocation.lifecycle import Phase, Superseded
from videoflow.backends.memory.allocation._cluster import Conflict, Unanswered
from videoflow.backends.memory.allocation._session import MemorySession

MOST_TRIES: Final = 64


class Terms(msgspec.Struct, frozen=True):
    """On what terms a workload has its devices; None: alone, else so many bytes of each."""

    size_bytes: int | None


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One claim.

    Attributes:
        claim_id: Derived from the operation id.
        plan: Digest of the plan; the operation id is good for no other.
        generation: Of what is desired.
        epoch: Moved by each process that takes the claim over; ownership of an older one is not ours.
        writer: Process that wrote this record last, by which a write without an answer is told.
        phase: How far it has come.
        assignments: Workload → its devices, slices to be made included.
        terms: Workload → its terms.
        geometry: Host → entries of the layout to be made.
        originals: Host → entries of the layouts that were there before.
        evidence: Why it failed.
    """

    claim_id: str
    plan: str
    generation: int
    epoch: int
    writer: str
    phase: Phase
    assignments: dict[str, tuple[DeviceIdentity, ...]]
    terms: dict[str, Terms]
    geometry: dict[str, tuple[str, ...]]
    originals: dict[str, tuple[str, ...]] = {}
    evidence: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """Under which it asks for geometry, and by which it knows that it was made for it."""
        return f"{self.claim_id}@{self.epoch}"

    def hosts(self) -> list[str]:
        """Returns the hosts that it owns something of, in the order in which it takes them."""
        return sorted({device.node for devices in self.assignments.values() for device in devices})


class Journal:
    """The record of one claim, as this process knows it.

    Args:
        session: The way to the authority.
        version: Of the record.
        record: Its value.
    """

    def __init__(self, session: MemorySession, version: int, record: ClaimRecord) -> None:
        self._session = session
        self._version = version
        self.record = record

    @classmethod
    def find(cls, session: MemorySession, claim_id: str) -> "Journal | None":
        """Reads a claim; None: there is none. Raises Unanswered."""
        found = session.record(claim_id)
        if found is None:
            return None
        return cls(session, found[0], msgspec.json.decode(found[1], type=ClaimRecord))

    @classmethod
    def begin(cls, session: MemorySession, record: ClaimRecord) -> "Journal":
        """Writes a new record; raises Superseded where another process did, and Unanswered."""
        journal = cls(session, 0, record)
        journal._write(msgspec.json.encode(record))
        return journal

    def move(self, **changes: object) -> None:
        """Writes the record with some changes; raises Superseded and Unanswered."""
        record = msgspec.structs.replace(self.record, writer=self._session.process, **changes)
        self._write(msgspec.json.encode(record))
        self.record = record

    def delete(self) -> None:
        """Removes the record; raises Superseded and Unanswered."""
        self._write(None)

    def check(self) -> None:
        """Reads the record again; raises Superseded where it is no longer what this process wrote."""
        found = self._session.record(self.record.claim_id)
        if found is None or found[0] != self._version:
            raise Superseded

    def _write(self, value: bytes | None) -> None:
        claim, silent = self.record.claim_id, Unanswered()
        for _ in range(MOST_TRIES):
            try:
                self._version = self._session.replace_record(claim, self._version, value)
            except (Conflict, Unanswered) as error:
                # It took effect or it did not: the record tells, since its value names who wrote it.
                found = self._session.record(claim)
                version, now = (0, None) if found is None else found
                if now == value:
                    self._version = version
                    return
                if isinstance(error, Conflict) or version != self._version:
                    raise Superseded from error
                silent = error
            else:
                return
        raise silent
