"""Claims as durable records: one config map for each, moved from phase to phase by compare-and-swap."""

from typing import Final

import msgspec

from videoflow.adapters.kubernetes import CONFIG_MAPS, Object, Refusal, Refused
from videoflow.backends.allocation import DeviceIdentity
from videoflow.backends.allocation.lifecycle import Phase, Superseded
from videoflow.backends.outcomes import UnknownReason
from videoflow.deploy.allocation_kubernetes._mig_config import Cards
from videoflow.deploy.allocation_kubernetes._session import MOST_TRIES, Session, Unanswered, version_of
from videoflow.deploy.allocation_kubernetes._settings import CLAIM, KIND

RECORD: Final = "record"


class Terms(msgspec.Struct, frozen=True):
    """On what terms a workload has its devices.

    Attributes:
        shared: It shares them.
        size_bytes: What it may use of each, where it shares; 0: nobody said.
        limit_bytes: What it is stopped at, where somebody stops it.
    """

    shared: bool = False
    size_bytes: int = 0
    limit_bytes: int | None = None


class Original(msgspec.Struct, frozen=True):
    """A host before its geometry was changed.

    Attributes:
        entry: Value of the label; None: it had none.
        cards: What each card was cut into.
    """

    entry: str | None
    cards: Cards


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One claim.

    Attributes:
        claim_id: Derived from the operation id.
        plan: Digest of the plan; the operation id is good for no other.
        generation: Of what is desired.
        epoch: Moved by each process that takes the claim over.
        writer: Process that wrote this record last, by which a write without an answer is told.
        phase: How far it has come.
        assignments: Workload → its devices, slices to be made included.
        resources: Workload → resource → how many of it its pod asks for.
        terms: Workload → its terms.
        geometry: Host → what its cards are to be cut into, all of them.
        recut: Host → ordinals of the cards that change.
        shares: Host → how many may share one of its cards.
        originals: Host → what it was.
        evidence: Why it failed.
    """

    claim_id: str
    plan: str
    generation: int
    epoch: int
    writer: str
    phase: Phase
    assignments: dict[str, tuple[DeviceIdentity, ...]]
    resources: dict[str, dict[str, int]]
    terms: dict[str, Terms]
    geometry: dict[str, Cards]
    recut: dict[str, tuple[int, ...]]
    shares: dict[str, int]
    originals: dict[str, Original] = {}
    evidence: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """What it writes on hosts."""
        return f"{self.claim_id}.{self.epoch}"

    def hosts(self) -> list[str]:
        """Returns the hosts that it owns something of, in the order in which it takes them."""
        return sorted({device.node for devices in self.assignments.values() for device in devices})


class Journal:
    """The record of one claim, as this process knows it.

    Args:
        session: The way to the authority.
        holder: The config map that it was read from; None: it is not written yet.
        record: Its value.
    """

    def __init__(self, session: Session, holder: Object | None, record: ClaimRecord) -> None:
        self._session = session
        self._holder = holder
        self.record = record

    @classmethod
    def find(cls, session: Session, claim_id: str) -> "Journal | None":
        """Reads a claim; None: there is none. Raises Unanswered."""
        holder = session.config_map(claim_id) if claim_id.startswith("claim-") else None
        return None if holder is None else cls.read(session, holder)

    @classmethod
    def read(cls, session: Session, holder: Object) -> "Journal":
        """Takes a claim from its config map; raises Unanswered where nobody can read it."""
        try:
            record = msgspec.json.decode(holder["data"][RECORD], type=ClaimRecord)
        except (KeyError, TypeError, msgspec.DecodeError) as error:
            said = f"{holder['metadata']['name']} is no record of a claim: {error}"
            raise Unanswered(Refused(Refusal.INVALID, UnknownReason.MALFORMED, said)) from error
        return cls(session, holder, record)

    @classmethod
    def begin(cls, session: Session, record: ClaimRecord) -> "Journal":
        """Writes a new record; raises Superseded where another process did, and Unanswered."""
        journal = cls(session, None, record)
        journal._write(record)
        return journal

    def move(self, **changes: object) -> None:
        """Writes the record with some changes; raises Superseded and Unanswered."""
        self._write(msgspec.structs.replace(self.record, writer=self._session.settings.process, **changes))

    def check(self) -> None:
        """Reads the record again; raises Superseded where it is no longer what this process wrote."""
        found = self._session.config_map(self.record.claim_id)
        if found is None or self._holder is None or version_of(found) != version_of(self._holder):
            raise Superseded

    def delete(self) -> None:
        """Removes the record; raises Superseded and Unanswered."""
        assert self._holder is not None, "what was never written cannot be removed"
        metadata, settings = self._holder["metadata"], self._session.settings
        silent: Refused | None = None
        for _ in range(MOST_TRIES):
            silent = self._session.api.delete(
                CONFIG_MAPS,
                self.record.claim_id,
                settings.namespace,
                uid=metadata["uid"],
                version=metadata["resourceVersion"],
            )
            if silent is None or silent.why is Refusal.MISSING:
                return
            found = self._session.config_map(self.record.claim_id)
            if found is None:
                return
            if version_of(found) != metadata["resourceVersion"]:
                raise Superseded
        assert silent is not None, "a loop that ended without an answer has been refused"
        raise Unanswered(silent)

    def _write(self, record: ClaimRecord) -> None:
        text = msgspec.json.encode(record).decode()
        silent: Refused | None = None
        for _ in range(MOST_TRIES):
            done = self._put(text, record)
            if not isinstance(done, Refused):
                self._holder, self.record = done, record
                return
            # It took effect or it did not: the record tells, since its value names who wrote it.
            found = self._session.config_map(record.claim_id)
            if found is not None and (found.get("data") or {}).get(RECORD) == text:
                self._holder, self.record = found, record
                return
            before = None if self._holder is None else version_of(self._holder)
            if (None if found is None else version_of(found)) != before:
                raise Superseded
            if done.why in (Refusal.DENIED, Refusal.INVALID):
                raise Unanswered(done)
            silent = done
        assert silent is not None, "a loop that ended without an answer has been refused"
        raise Unanswered(silent)

    def _put(self, text: str, record: ClaimRecord) -> Object | Refused:
        data = {RECORD: text, "phase": str(record.phase)}
        if self._holder is not None:
            return self._session.api.replace(CONFIG_MAPS, {**self._holder, "data": data})
        labels = {KIND: "claim", CLAIM: record.claim_id}
        return self._session.api.create(
            CONFIG_MAPS, config_map(record.claim_id, self._session.settings.namespace, labels, data)
        )


def config_map(name: str, namespace: str, labels: dict[str, str], data: dict[str, str]) -> Object:
    """Returns a config map of ours."""
    labels = {"app.kubernetes.io/managed-by": "videoflow", **labels}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
