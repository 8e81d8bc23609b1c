"""Publications under way in a producer replica: the handle of each, and the statements that they make."""

from videoflow.backends.messaging import Envelope
from videoflow.backends.outcomes import PublicationOutcome, Rejected, RejectReason


class Handle:
    """One publication on its way; `outcome` is None as long as there was no room."""

    __slots__ = ("concluded", "envelope", "outcome", "slots")

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
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
