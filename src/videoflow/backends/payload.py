"""The payload contract: where are the image bytes, and how long must they survive?

Used by the worker to keep large arrays out of envelopes; every store passes
`videoflow.testing.examiners.PayloadExaminer`. A payload may be reclaimed only when no obligation names it;
a time to
live is a backstop, never proof that all have read. It refuses to answer None: a read is bytes, or says what
kind of
failure it was.

An *obligation* is a named claim: of a reader on a publication,
`<subscription>/<partition>/<publication_id>`; of a
writer until its outcome is definite, `intent/<publication_id>`; `pin/<owner>/<n>`, of a read;
`dead_letter/<record>`;
`archive/<name>`. The part before the first `/` is its family. A claim is one however often it is made, and
gone once
however often it is released. On one host the log holds readers' claims itself, and these calls are for the
rest.
A reference of another generation than the stored one reads nothing, claims nothing and releases nothing.
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
    """A read-only view of an object, pinned until `close`, collection, or the owner's death.

    `digest_verified` says whether the bytes were compared with the digest, which a store that claims none
    never does.
    """

    data: memoryview
    digest_verified: bool

    @abstractmethod
    def close(self) -> None:
        """Ends the pin, once, from any thread; arrays made over `data` must be gone."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PendingPayload(ABC):
    """A writable buffer in the store, of exactly the size asked for, which nobody else sees."""

    buffer: memoryview

    @abstractmethod
    def seal(self) -> PayloadRef:
        """Makes the bytes immutable and returns their reference; from now on they are read and listed.

        Raises:
            UnknownName: It was sealed or abandoned before, or its owner is known dead.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Frees the buffer; nothing where it was sealed or abandoned before."""


class PayloadStore(ABC):
    """Keeps bytes under named obligations; one object per owner (worker id and incarnation).

    A *full* store within the deadline raises nothing: `create` returns None, which is backpressure, and
    nothing
    is evicted for it. Intents and pins of an owner end with its death: pins and what it did not seal at
    once, intents
    when its next incarnation reconciles.
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
            ValueRefused: Larger than the store's largest object, durable where the store is not, or a
                horizon beyond the ttl with nothing pinning it; before a byte is written.
        """

    @abstractmethod
    def put(
        self, data: Buffer, content_id: str, contract: RetentionContract, *, deadline: float
    ) -> PayloadRef | None:
        """Stores C-contiguous bytes: create, copy, seal. A store in this process keeps the object itself."""

    @abstractmethod
    def reserve(self, size_bytes: int) -> None:
        """Keeps space that only this owner's `create` may use, in addition to what it reserved before.

        Raises:
            MemoryShort: It does not fit.
        """

    @abstractmethod
    def read(
        self, ref: PayloadRef, *, deadline: float
    ) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        """Returns pinned bytes, or the kind of failure.

        `Missing` is for good: no such object, another generation, another store, not sealed. `Corrupt`
        where the
        digest that is claimed does not fit; `TransientFailure` where asking again may help.
        """

    @abstractmethod
    def acquire_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Makes named claims; making one twice is once. `Missing` where there is no such object."""

    @abstractmethod
    def renew_obligation(
        self, claims: Sequence[tuple[PayloadRef, str]], *, deadline: float
    ) -> Sequence[ObligationReceipt | Missing]:
        """Extends claims that stand; `Missing` for one that nobody made, which this does not make."""

    @abstractmethod
    def release_obligation(
        self,
        claims: Sequence[tuple[PayloadRef, str]],
        completion_receipt: SettleConfirmed | None,
        *,
        deadline: float,
    ) -> Sequence[ReleaseReceipt]:
        """Ends claims, idempotently; a reader's claim only with the receipt of its settlement.

        Another generation than the stored one touches nothing (`stale`). What is gone has nothing remaining.

        Raises:
            ContractBroken: A reader's claim without a receipt: a family other than intent, pin, dead_letter
                and archive.
        """

    @abstractmethod
    def reconcile(
        self, ledger: Mapping[str, frozenset[str]], operation_id: str, *, deadline: float
    ) -> Observation[int]:
        """Ends the claims that a ledger does not name, of the families that it speaks for.

        Intents and pins of other workers, and what is not sealed, are kept. Returns the number of objects
        reclaimed.

        Args:
            ledger: Obligation family (the part before the first `/`) → the claims that stand. A family
                that is absent is not spoken for, and its claims are kept.
            operation_id: One logical attempt; the same id again is the same call.
            deadline: Monotonic seconds.
        """

    @abstractmethod
    def inventory(self, *, deadline: float) -> Observation[tuple[PayloadRef, ...]]:
        """Returns what is sealed and stored, or Unknown; a digest and a content id may be left out."""
