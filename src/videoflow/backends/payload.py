"""The payload contract: where are the image bytes, and how long must they survive?

Used by the worker to keep large arrays out of envelopes. A payload may be reclaimed only when no
obligation names it; a time to live is a backstop, never proof that all have read. It refuses to
answer None: a read is bytes, or says what kind of failure it was.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import msgspec

from videoflow.backends.capabilities import PayloadCapabilities
from videoflow.backends.outcomes import Observation, SettleConfirmed

Buffer = bytes | bytearray | memoryview


class PayloadRef(msgspec.Struct, frozen=True, array_like=True):
    """An immutable reference to one object of a store.

    Attributes:
        store: Name of the store.
        key: The store's own key, minted by it.
        size_bytes: Length.
        digest: `algorithm:hex`, or "" where the store declares none.
        generation: Distinguishes objects that reuse a key.
        content_id: `<publication_id>/<index of the array in the value>`.
    """

    store: str
    key: str
    size_bytes: int
    digest: str = ""
    generation: int = 0
    content_id: str = ""


class View(msgspec.Struct, frozen=True, array_like=True):
    """An array within an object: how whole arrays and crops travel.

    Attributes:
        ref: The object.
        offset_bytes: Of the first element.
        shape: Of the array.
        strides: In bytes, one per axis.
        dtype: NumPy type string, such as `|u1` or `<f4`.
    """

    ref: PayloadRef
    offset_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class RetentionContract(msgspec.Struct, frozen=True):
    """How long an object must be kept, beside its obligations.

    Attributes:
        ttl_seconds: Backstop after which the store may remove it, or None.
        horizon_seconds: For how long a reader may still ask for it, or None for the run.
        durable_required: Whether it must survive the store's processes.
        obligations: Claims that exist from the start, such as `intent/<publication_id>`.
    """

    ttl_seconds: float | None = None
    horizon_seconds: float | None = None
    durable_required: bool = False
    obligations: tuple[str, ...] = ()


class TransientFailure(msgspec.Struct, frozen=True):
    """The bytes could not be read now; ask again."""

    detail: str


class Missing(msgspec.Struct, frozen=True):
    """The object is gone for good."""

    detail: str = ""


class Corrupt(msgspec.Struct, frozen=True):
    """The bytes are not those that were written."""

    expected: str
    actual: str


class ReleaseReceipt(msgspec.Struct, frozen=True):
    """What a release left: obligations remaining, and whether the object was reclaimed."""

    remaining: int
    reclaimed: bool
    stale: bool = False
    unknown: bool = False


class ObligationReceipt(msgspec.Struct, frozen=True):
    """An obligation in force until `deadline` (monotonic seconds; infinite on one host)."""

    obligation_id: str
    deadline: float


class PayloadBytes(ABC):
    """A read-only view of an object, pinned until `close`, collection, or the owner's death."""

    data: memoryview
    digest_verified: bool

    @abstractmethod
    def close(self) -> None:
        """Ends the pin; arrays made over `data` must be gone."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PendingPayload(ABC):
    """A writable buffer in the store, of exactly the size asked for."""

    buffer: memoryview

    @abstractmethod
    def seal(self) -> PayloadRef:
        """Makes the bytes immutable and returns their reference."""

    @abstractmethod
    def abandon(self) -> None:
        """Frees the buffer."""


class PayloadStore(ABC):
    """Keeps bytes under named obligations; one object per owner (worker id and incarnation).

    A *full* store within the deadline raises nothing: `create` returns None, which is backpressure.
    """

    @abstractmethod
    def capabilities(self) -> PayloadCapabilities:
        """Returns what this store, as configured, guarantees."""

    @abstractmethod
    def create(
        self, size_bytes: int, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PendingPayload | None:
        """Returns a writable buffer, or None when there was no room until the deadline.

        Raises:
            ValueRefused: Larger than the store's largest object, or a horizon beyond the ttl with
                nothing pinning it; before a byte is written.
        """

    @abstractmethod
    def put(
        self, data: Buffer, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PayloadRef | None:
        """Stores C-contiguous bytes: create, copy, seal. A store in this process keeps the object itself."""

    @abstractmethod
    def reserve(self, size_bytes: int) -> None:
        """Keeps space that only this owner's `create` may use.

        Raises:
            MemoryShort: It does not fit.
        """

    @abstractmethod
    def read(
        self, ref: PayloadRef, *, deadline: float
    ) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        """Returns pinned bytes, or the kind of failure."""

    @abstractmethod
    def acquire_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Makes named claims; making one twice is once."""

    @abstractmethod
    def renew_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Extends claims that have a deadline."""

    @abstractmethod
    def release_obligation(
        self,
        claims: Sequence[tuple[PayloadRef, str]],
        completion_receipt: SettleConfirmed | None,
        *,
        deadline: float,
    ) -> Sequence[ReleaseReceipt]:
        """Ends claims, idempotently; a reader's claim only with the receipt of its settlement.

        An older generation than the stored one touches nothing (`stale`).
        """

    @abstractmethod
    def reconcile(
        self, ledger: Mapping[str, frozenset[str]], operation_id: str, *, deadline: float
    ) -> Observation[int]:
        """Reclaims what no ledger requires; returns the number of objects reclaimed.

        Args:
            ledger: Obligation family (the part before the first `/`) → the claims that stand. A family
                that is absent is not spoken for, and its claims are kept.
            operation_id: One logical attempt; the same id again is the same call.
            deadline: Monotonic seconds.
        """

    @abstractmethod
    def inventory(self, *, deadline: float) -> Observation[tuple[PayloadRef, ...]]:
        """Returns what is stored, or Unknown."""
