"""Claims as durable records: one config map for each, moved from phase to phase by compare-and-swap."""

from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import msgspec

from videoflow.adapters.kubernetes import CONFIG_MAPS, Object, Refusal, Refused
from videoflow.backends.allocation import DeviceIdentity
from videoflow.backends.allocation.lifecycle import Phase, Superseded
from videoflow.backends.outcomes import UnknownReason
from videoflow.deploy.kubernetes_records._reads import MOST_TRIES, Reads, Unanswered, version_of

RECORD: Final = "record"


class JournalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What every record of a claim says.

    Attributes:
        claim_id: Derived from the operation id.
        plan: Digest of the plan; the operation id is good for no other.
        generation: Of what is desired.
        epoch: Moved by each process that takes the claim over.
        writer: Process that wrote this record last, by which a write without an answer is told.
        phase: How far it has come.
        assignments: Workload → its devices, slices to be made included.
        evidence: Why it failed.
    """

    claim_id: str
    plan: str
    generation: int
    epoch: int
    writer: str
    phase: Phase
    assignments: dict[str, tuple[DeviceIdentity, ...]]
    evidence: tuple[str, ...] = ()

    @property
    def stamp(self) -> str:
        """What it writes on what it owns."""
        return f"{self.claim_id}.{self.epoch}"

    def hosts(self) -> list[str]:
        """Returns the hosts that it owns something of, in the order in which it takes them."""
        return sorted({device.node for devices in self.assignments.values() for device in devices})


R = TypeVar("R", bound=JournalRecord)


class ConfigMapJournal(Generic[R]):
    """The record of one claim, as this process knows it; a subclass says of which kind.

    Args:
        session: The way to the authority.
        holder: The config map that it was read from; None: it is not written yet.
        record: Its value.

    Attributes:
        kind: Type of its record.
        prefix: Names of its config maps begin so.
        labels: Of its config maps.
        claim_label: Label that names the claim.
    """

    kind: ClassVar[Any]
    prefix: ClassVar[str]
    labels: ClassVar[dict[str, str]]
    claim_label: ClassVar[str]

    def __init__(self, session: Reads, holder: Object | None, record: R) -> None:
        self._session = session
        self._holder = holder
        self.record = record

    @classmethod
    def find(cls, session: Reads, claim_id: str) -> Self | None:
        """Reads a claim; None: there is none. Raises Unanswered."""
        holder = session.config_map(claim_id) if claim_id.startswith(cls.prefix) else None
        return None if holder is None else cls.read(session, holder)

    @classmethod
    def listed(cls, session: Reads) -> list[Self]:
        """Reads every claim; raises Unanswered."""
        labels = ",".join(f"{name}={value}" for name, value in cls.labels.items())
        return [
            cls.read(session, holder) for holder in session.listed(CONFIG_MAPS, session.namespace, labels)
        ]

    @classmethod
    def read(cls, session: Reads, holder: Object) -> Self:
        """Takes a claim from its config map; raises Unanswered where nobody can read it."""
        try:
            record = msgspec.json.decode(holder["data"][RECORD], type=cls.kind)
        except (KeyError, TypeError, msgspec.DecodeError) as error:
            said = f"{holder['metadata']['name']} is no record of a claim: {error}"
            raise Unanswered(Refused(Refusal.INVALID, UnknownReason.MALFORMED, said)) from error
        return cls(session, holder, record)

    @classmethod
    def begin(cls, session: Reads, record: R) -> Self:
        """Writes a new record; raises Superseded where another process did, and Unanswered."""
        journal = cls(session, None, record)
        journal._write(record)
        return journal

    @property
    def uid(self) -> str:
        """The id of the config map, which no later one of the same name has."""
        assert self._holder is not None, "what was never written has no id"
        return str(self._holder["metadata"]["uid"])

    def move(self, **changes: object) -> None:
        """Writes the record with some changes; raises Superseded and Unanswered."""
        self._write(msgspec.structs.replace(self.record, writer=self._session.process, **changes))

    def check(self) -> None:
        """Reads the record again; raises Superseded where it is no longer what this process wrote."""
        found = self._session.config_map(self.record.claim_id)
        if found is None or self._holder is None or version_of(found) != version_of(self._holder):
            raise Superseded

    def delete(self) -> None:
        """Removes the record; raises Superseded and Unanswered."""
        assert self._holder is not None, "what was never written cannot be removed"
        metadata, claim = self._holder["metadata"], self.record.claim_id
        silent: Refused | None = None
        for _ in range(MOST_TRIES):
            silent = self._session.api.delete(
                CONFIG_MAPS,
                claim,
                self._session.namespace,
                uid=metadata["uid"],
                version=metadata["resourceVersion"],
            )
            if silent is None or silent.why is Refusal.MISSING:
                return
            found = self._session.config_map(claim)
            if found is None:
                return
            if version_of(found) != metadata["resourceVersion"]:
                raise Superseded
        assert silent is not None, "a loop that ended without an answer has been refused"
        raise Unanswered(silent)

    def _write(self, record: R) -> None:
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

    def _put(self, text: str, record: R) -> Object | Refused:
        data = {RECORD: text, "phase": str(record.phase)}
        if self._holder is not None:
            return self._session.api.replace(CONFIG_MAPS, {**self._holder, "data": data})
        labels = {**self.labels, self.claim_label: record.claim_id}
        body = config_map(record.claim_id, self._session.namespace, labels, data)
        return self._session.api.create(CONFIG_MAPS, body)


def config_map(name: str, namespace: str, labels: dict[str, str], data: dict[str, str]) -> Object:
    """Returns a config map of ours."""
    labels = {"app.kubernetes.io/managed-by": "videoflow", **labels}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
