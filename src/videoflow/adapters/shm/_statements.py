"""Publications under way in a producer replica: the handle of each, and the statements that they make."""

from collections.abc import Sequence

from videoflow.backends.messaging import Envelope, Kind
from videoflow.backends.outcomes import PublicationOutcome, Rejected, RejectReason
from videoflow.errors import ContractBroken


class Intents:
    """The intents of one `begin_publish`: each ends when its publication is in every channel (rule 16)."""

    def __init__(self, envelopes: Sequence[Envelope]) -> None:
        self._missing: dict[str, int] = {}
        for envelope in envelopes:
            if envelope.payloads:
                self._missing[envelope.publication_id] = self._missing.get(envelope.publication_id, 0) + 1

    def accepted(self, envelope: Envelope) -> bool:
        """Counts an accepted envelope with payloads; returns whether it was the last of its publication."""
        self._missing[envelope.publication_id] -= 1
        return not self._missing[envelope.publication_id]


class Handle:
    """One publication on its way; `outcome` is None as long as there was no room."""

    __slots__ = ("concluded", "envelope", "intents", "outcome", "slots")

    def __init__(self, envelope: Envelope, intents: Intents) -> None:
        self.envelope = envelope
        self.intents = intents
        self.outcome: PublicationOutcome | None = None
        self.slots: tuple[tuple[int, int, int, int], ...] = ()
        self.concluded = False


class Statement:
    """The envelopes of one input on one channel: accepted all or none."""

    __slots__ = ("deadline", "handles")

    def __init__(self, handles: list[Handle], deadline: float) -> None:
        self.handles = handles
        self.deadline = deadline

    def refuse(self, reason: RejectReason, *, retryable: bool = False) -> None:
        """Refuses all."""
        for handle in self.handles:
            handle.outcome = Rejected(handle.envelope.publication_id, reason, retryable)


class Prepared:
    """A statement that has room: which of its handles say something new, and the bytes of each."""

    __slots__ = ("encoded", "fresh", "handles", "refused")

    def __init__(
        self,
        handles: list[Handle],
        fresh: list[Envelope | None] | None = None,
        encoded: list[bytes] | None = None,
        refused: RejectReason | None = None,
    ) -> None:
        self.handles = handles
        self.fresh = fresh or []
        self.encoded = encoded or []
        self.refused = refused


def check_group(envelopes: Sequence[Envelope], partitions: int) -> None:
    """Looks at the envelopes of one statement: each is for a partition, and alone there or data or a notice.

    Raises:
        ContractBroken: One is not.
    """
    places = [envelope.partition for envelope in envelopes]
    if max(places) >= partitions:
        raise ContractBroken(f"a statement is for partition {max(places)}, and there are {partitions}")
    if len(places) == 1:
        return
    alone = [e.partition for e in envelopes if e.kind is not Kind.DATA and not e.elsewhere]
    if any(places.count(partition) > 1 for partition in alone):
        raise ContractBroken("a statement of several envelopes holds something else than data")
