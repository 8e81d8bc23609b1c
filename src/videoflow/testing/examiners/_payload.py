"""The examiner of the payload store."""

import gc
from abc import abstractmethod
from typing import Protocol, runtime_checkable

import pytest

from videoflow.backends.outcomes import Known, SettleConfirmed
from videoflow.backends.payload import (
    Corrupt,
    Missing,
    ObligationReceipt,
    PayloadBytes,
    PayloadRef,
    PayloadStore,
    PendingPayload,
    ReleaseReceipt,
    RetentionContract,
)
from videoflow.clock import Clock
from videoflow.errors import ContractBroken, MemoryShort, UnknownName, ValueRefused
from videoflow.testing.examiners import _payload_laws as laws
from videoflow.testing.examiners._examiner import PATIENCE_SECONDS, Examiner, Subject
from videoflow.testing.examiners._law import law

INTENT = "intent/p"


@runtime_checkable
class Corruptible(Protocol):
    """What a subject must also be whose store claims a digest."""

    def corrupt(self, ref: PayloadRef) -> None:
        """Changes a byte of an object behind the store's back."""


class PayloadSubject(Subject):
    """A payload store under test, with room for `capacity` objects of `unit_bytes`.

    Attributes:
        clock: For deadlines.
        unit_bytes: Size of an object.
        capacity: How many of them one owner's objects may be.
    """

    clock: Clock
    unit_bytes: int
    capacity: int

    @abstractmethod
    def store(self, owner: str) -> PayloadStore:
        """Returns the store of an owner, `a` or `b`; the same one each time until the owner is killed."""

    @abstractmethod
    def kill(self, owner: str) -> None:
        """Ends an owner's process, as it were; `store` then returns that of its next incarnation."""

    @abstractmethod
    def raw(self, ref: PayloadRef) -> bytes | None:
        """Returns the bytes of an object as they lie in the store, None when it is gone.

        A raw probe: by other means than the object under test.
        """

    @abstractmethod
    def raw_objects(self) -> int:
        """Returns how many objects take space, by other means than the object under test."""

    def carry(self, ref: PayloadRef, owner: str) -> None:
        """Makes an object readable for another owner, where that takes a delivery; nothing otherwise."""

    # Shorthands -------------------------------------------------------------------------------

    def soon(self) -> float:
        """Returns a deadline that is far enough for whatever must happen."""
        return self.clock.monotonic() + PATIENCE_SECONDS

    def put(
        self, n: int = 1, owner: str = "a", obligations: tuple[str, ...] = (INTENT,)
    ) -> PayloadRef | None:
        """Stores an object of number n, without waiting for room."""
        data = bytes([n % 251]) * self.unit_bytes
        contract = RetentionContract(obligations=obligations)
        return self.store(owner).put(data, f"p/{n}", contract, deadline=0.0)

    def made(self, n: int = 1, owner: str = "a", obligations: tuple[str, ...] = (INTENT,)) -> PayloadRef:
        """Stores an object that must have room."""
        ref = self.put(n, owner, obligations)
        assert ref is not None, "there is no room, though there should be"
        return ref

    def filled(self, owner: str = "a") -> list[PayloadRef]:
        """Stores objects until there is no room."""
        found: list[PayloadRef] = []
        while len(found) <= self.capacity and (ref := self.put(len(found), owner)) is not None:
            found.append(ref)
        return found

    def pending(self, contract: RetentionContract | None = None, owner: str = "a") -> PendingPayload:
        """Begins an object that must have room."""
        wanted = RetentionContract(obligations=(INTENT,)) if contract is None else contract
        begun = self.store(owner).create(self.unit_bytes, "p/0", wanted, deadline=0.0)
        assert begun is not None
        return begun

    def pin(self, ref: PayloadRef, owner: str = "a") -> PayloadBytes:
        """Reads what must be there."""
        found = self.store(owner).read(ref, deadline=self.soon())
        assert isinstance(found, PayloadBytes), found
        return found

    def bytes_of(self, ref: PayloadRef, owner: str = "a") -> bytes:
        """Reads, and lets go."""
        with self.pin(ref, owner) as found:
            return bytes(found.data)

    def release(self, ref: PayloadRef, claim: str = INTENT, owner: str = "a") -> ReleaseReceipt:
        """Ends a claim that needs no receipt."""
        (receipt,) = self.store(owner).release_obligation([(ref, claim)], None, deadline=self.soon())
        return receipt

    def kept(self, owner: str = "a") -> set[str]:
        """Returns the keys of the inventory."""
        observed = self.store(owner).inventory(deadline=self.soon())
        assert isinstance(observed, Known), observed
        return {ref.key for ref in observed.value}


class PayloadExaminer(Examiner[PayloadSubject]):
    """Every law of `PayloadStore`; inherit in a class whose name begins with `Test`."""

    @law(laws.INTACT)
    def test_what_is_put_is_read_by_everybody(self, subject: PayloadSubject) -> None:
        refs = [subject.made(n) for n in range(3)]
        for n, ref in enumerate(refs):
            wanted = bytes([n]) * subject.unit_bytes
            assert (ref.size_bytes, ref.content_id) == (subject.unit_bytes, f"p/{n}")
            assert subject.raw(ref) == wanted
            subject.carry(ref, "b")
            for owner in ("a", "b"):
                assert subject.bytes_of(ref, owner) == wanted

    @law(laws.INTACT)
    def test_what_is_read_cannot_be_written(self, subject: PayloadSubject) -> None:
        ref = subject.made()
        with subject.pin(ref) as found:
            assert found.data.readonly
            assert found.data.nbytes == subject.unit_bytes

    @law(laws.INTACT)
    def test_the_digest_is_the_one_that_is_claimed(self, subject: PayloadSubject) -> None:
        claimed = subject.store("a").capabilities().digest
        ref = subject.made()
        if claimed == "none":
            assert ref.digest == ""
            with subject.pin(ref) as found:
                assert not found.digest_verified
            return
        assert ref.digest.startswith(f"{claimed}:")
        with subject.pin(ref) as found:
            assert found.digest_verified
        assert isinstance(subject, Corruptible), "its digests are tried by a subject that has `corrupt`"
        subject.corrupt(ref)
        assert isinstance(subject.store("a").read(ref, deadline=subject.soon()), Corrupt)

    @law(laws.SEALED)
    def test_a_pending_object_is_written_in_place_and_seen_when_it_is_sealed(
        self, subject: PayloadSubject
    ) -> None:
        pending = subject.pending()
        assert pending.buffer.nbytes == subject.unit_bytes
        pending.buffer[:4] = b"abcd"
        assert subject.kept() == set()
        ref = pending.seal()
        assert subject.kept() == {ref.key}
        assert subject.bytes_of(ref)[:4] == b"abcd"

    @law(laws.SEALED)
    def test_an_object_is_sealed_or_abandoned_once(self, subject: PayloadSubject) -> None:
        pending = subject.pending()
        ref = pending.seal()
        with pytest.raises(UnknownName):
            pending.seal()
        pending.abandon()
        assert subject.raw(ref) is not None
        other = subject.pending()
        other.abandon()
        other.abandon()
        with pytest.raises(UnknownName):
            other.seal()
        assert subject.kept() == {ref.key}

    @law(laws.SEALED)
    def test_an_abandoned_object_leaves_nothing(self, subject: PayloadSubject) -> None:
        for _ in range(2 * subject.capacity):
            pending = subject.pending()
            pending.abandon()
            del pending
        gc.collect()
        assert subject.raw_objects() == 0
        assert len(subject.filled()) == subject.capacity

    @law(laws.BACKPRESSURE)
    def test_a_full_store_is_backpressure(self, subject: PayloadSubject) -> None:
        refs = subject.filled()
        assert len(refs) == subject.capacity
        assert subject.raw_objects() == subject.capacity
        assert [subject.raw(ref) for ref in refs] == [
            bytes([n]) * subject.unit_bytes for n in range(len(refs))
        ]
        assert subject.put() is None
        subject.release(refs[1])
        assert subject.raw_objects() == subject.capacity - 1
        subject.made()
        assert subject.put() is None

    @law(laws.REFUSED)
    def test_what_can_never_fit_or_never_hold_is_refused(self, subject: PayloadSubject) -> None:
        store = subject.store("a")
        claimed = store.capabilities()
        impossible = [RetentionContract(ttl_seconds=5, horizon_seconds=6)]
        if isinstance(claimed.durable, Known) and not claimed.durable.value:
            impossible.append(RetentionContract(durable_required=True, obligations=(INTENT,)))
        for contract in impossible:
            with pytest.raises(ValueRefused):
                store.put(b"x", "p/0", contract, deadline=0.0)
            with pytest.raises(ValueRefused):
                store.create(1, "p/0", contract, deadline=0.0)
        with pytest.raises(ValueRefused):
            store.create(claimed.maximum_object_bytes + 1, "p/0", RetentionContract(), deadline=0.0)
        assert subject.raw_objects() == 0
        pinned = RetentionContract(ttl_seconds=5, horizon_seconds=6, obligations=("archive/x",))
        assert store.put(b"x", "p/0", pinned, deadline=0.0) is not None

    @law(laws.RESERVED)
    def test_reserved_space_is_for_its_owner(self, subject: PayloadSubject) -> None:
        half = subject.capacity // 2
        subject.store("a").reserve(half * subject.unit_bytes)
        subject.filled("b")
        for n in range(half):
            subject.made(n, "a")

    @law(laws.RESERVED)
    def test_a_reservation_that_does_not_fit_is_refused(self, subject: PayloadSubject) -> None:
        with pytest.raises(MemoryShort):
            subject.store("a").reserve((subject.capacity + 1) * subject.unit_bytes)
        assert len(subject.filled()) == subject.capacity

    @law(laws.PINNED)
    def test_a_pin_keeps_the_bytes_until_it_is_closed_or_collected(self, subject: PayloadSubject) -> None:
        ref = subject.made(7)
        first, second = subject.pin(ref), subject.pin(ref)
        receipt = subject.release(ref)
        assert not receipt.reclaimed
        first.close()
        first.close()
        assert subject.raw(ref) == bytes([7]) * subject.unit_bytes
        assert bytes(second.data) == bytes([7]) * subject.unit_bytes
        del second
        gc.collect()
        assert subject.kept() == set()
        assert isinstance(subject.store("a").read(ref, deadline=subject.soon()), Missing)
        assert subject.raw_objects() == 0

    @law(laws.PINNED)
    def test_a_dead_reader_keeps_nothing(self, subject: PayloadSubject) -> None:
        ref = subject.made()
        subject.carry(ref, "b")
        pinned = subject.pin(ref, "b")
        subject.kill("b")
        subject.release(ref)
        assert subject.kept() == set()
        assert subject.raw_objects() == 0
        pinned.close()

    @law(laws.CLAIMS)
    def test_a_claim_is_one_however_often_it_is_made_and_released(self, subject: PayloadSubject) -> None:
        ref = subject.made(obligations=(INTENT, "dead_letter/x"))
        store = subject.store("a")
        made = store.acquire_obligation([(ref, "archive/x")] * 3, deadline=subject.soon())
        assert [type(receipt) for receipt in made] == [ObligationReceipt] * 3
        for claim in (INTENT, "archive/x"):
            for _ in range(2):
                assert not subject.release(ref, claim).reclaimed
        assert subject.raw(ref) is not None
        last = subject.release(ref, "dead_letter/x")
        assert (last.remaining, last.reclaimed) == (0, True)
        assert subject.raw_objects() == 0
        again = subject.release(ref, "dead_letter/x")
        assert again.remaining == 0
        assert again.reclaimed or again.stale

    @law(laws.CLAIMS)
    def test_a_claim_that_nobody_made_is_not_renewed(self, subject: PayloadSubject) -> None:
        ref = subject.made()
        store, deadline = subject.store("a"), subject.soon()
        renewed = store.renew_obligation([(ref, INTENT), (ref, "archive/y")], deadline=deadline)
        assert [type(receipt) for receipt in renewed] == [ObligationReceipt, Missing]
        assert subject.release(ref).reclaimed

    @law(laws.GENERATIONS)
    def test_a_reference_of_another_generation_touches_nothing(self, subject: PayloadSubject) -> None:
        ref = subject.made(5)
        other = PayloadRef(ref.store, ref.key, ref.size_bytes, ref.digest, ref.generation + 1, ref.content_id)
        store, deadline = subject.store("a"), subject.soon()
        assert isinstance(store.read(other, deadline=deadline), Missing)
        (claim,) = store.acquire_obligation([(other, "archive/x")], deadline=deadline)
        assert isinstance(claim, Missing)
        assert subject.release(other).stale
        assert subject.bytes_of(ref) == bytes([5]) * subject.unit_bytes
        assert subject.release(ref).reclaimed

    @law(laws.GENERATIONS)
    def test_what_was_reclaimed_is_not_found_in_what_came_after(self, subject: PayloadSubject) -> None:
        old = subject.filled()
        for ref in old:
            subject.release(ref)
        new = subject.filled()
        store, deadline = subject.store("a"), subject.soon()
        assert {type(store.read(ref, deadline=deadline)) for ref in old} == {Missing}
        for ref in old:
            subject.release(ref)
        assert [subject.bytes_of(ref)[0] for ref in new] == list(range(len(new)))

    @law(laws.RECEIPTS)
    def test_a_readers_claim_ends_only_with_its_receipt(self, subject: PayloadSubject) -> None:
        ref = subject.made()
        store, deadline, claim = subject.store("a"), subject.soon(), "detect.out->track/0/p"
        store.acquire_obligation([(ref, claim)], deadline=deadline)
        subject.release(ref)
        with pytest.raises(ContractBroken):
            store.release_obligation([(ref, claim)], None, deadline=deadline)
        assert subject.raw(ref) is not None
        (receipt,) = store.release_obligation(
            [(ref, claim)], SettleConfirmed("token", "id"), deadline=deadline
        )
        assert receipt.reclaimed

    @law(laws.RECONCILED)
    def test_a_ledger_speaks_for_its_families_only(self, subject: PayloadSubject) -> None:
        archived = subject.made(1, obligations=("archive/x",))
        meant = subject.made(2)
        store, deadline = subject.store("a"), subject.soon()
        for ledger, reclaimed, left in (
            ({}, 0, {archived.key, meant.key}),
            ({"archive": frozenset({"archive/x"})}, 0, {archived.key, meant.key}),
            ({"intent": frozenset({INTENT})}, 0, {archived.key, meant.key}),
            ({"archive": frozenset[str]()}, 1, {meant.key}),
            ({"intent": frozenset[str]()}, 1, set[str]()),
        ):
            observed = store.reconcile(ledger, "op", deadline=deadline)
            assert isinstance(observed, Known)
            assert (observed.value, subject.kept()) == (reclaimed, left)

    @law(laws.RECONCILED)
    def test_another_workers_intents_and_what_is_pending_are_kept(self, subject: PayloadSubject) -> None:
        theirs = subject.made(1, "b")
        pending = subject.pending()
        subject.store("a").reconcile({"intent": frozenset()}, "op", deadline=subject.soon())
        assert subject.raw(theirs) is not None
        ref = pending.seal()
        assert len(subject.bytes_of(ref)) == subject.unit_bytes

    @law(laws.LOST)
    def test_what_is_not_there_is_missing(self, subject: PayloadSubject) -> None:
        store, deadline = subject.store("a"), subject.soon()
        real = subject.made()
        strangers = [
            PayloadRef(real.store, "no-such-key", 10),
            PayloadRef("another-store", real.key, real.size_bytes, real.digest, real.generation),
        ]
        for ref in strangers:
            assert isinstance(store.read(ref, deadline=deadline), Missing)
            (claim,) = store.acquire_obligation([(ref, "archive/x")], deadline=deadline)
            assert isinstance(claim, Missing)

    @law(laws.KNOWN)
    def test_what_is_free_is_what_may_be_taken(self, subject: PayloadSubject) -> None:
        def free() -> int:
            seen = subject.store("a").capabilities().free_bytes
            assert isinstance(seen, Known)
            return seen.value

        empty = free()
        ref = subject.made()
        assert empty - free() >= subject.unit_bytes
        subject.release(ref)
        assert free() == empty
        subject.filled()
        assert free() < subject.unit_bytes
