"""Random schedules of stores, against the reference."""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from videoflow.backends.payload import PayloadBytes, PayloadRef, PendingPayload
from videoflow.backends.runtime import ABSENT, Change, StoreOutcome
from videoflow.testing.examiners._payload import PayloadSubject
from videoflow.testing.examiners._store import StoreSubject

picks = st.integers(0, 20)
keys = st.sampled_from(("a", "a/1", "a/2", "b", "b\u00e9"))
values = st.sampled_from((b"", b"1", b"22"))


class StoreMachine(RuleBasedStateMachine):
    """A runtime store against the reference: the same outcomes, values, orders and logs.

    Attributes:
        make_subjects: Returns (reference, tried).
    """

    make_subjects: Callable[[], tuple[StoreSubject, StoreSubject]]

    def __init__(self) -> None:
        super().__init__()
        self.twins = self.make_subjects()
        self.old: list[tuple[str, list[str]]] = []

    @rule(names=st.lists(keys, unique=True, max_size=3), value=st.none() | values, how=st.integers(0, 3))
    def commit(self, names: list[str], value: bytes | None, how: int) -> None:
        outcomes = []
        for twin in self.twins:
            expected = {
                name: (None, ABSENT, twin.version(name), "never-minted")[how if n == 0 else 0]
                for n, name in enumerate(names)
            }
            outcomes.append(twin.commit(*(Change(name, value, expected[name]) for name in names)))
        assert outcomes[0] is outcomes[1]

    @rule(name=keys)
    def remember(self, name: str) -> None:
        self.old.append((name, [twin.version(name) for twin in self.twins]))

    @precondition(lambda self: self.old)
    @rule(pick=picks)
    def commit_on_an_old_version(self, pick: int) -> None:
        name, versions = self.old[pick % len(self.old)]  # of another key it says nothing
        outcomes = [
            twin.commit(Change(name, b"late", version))
            for twin, version in zip(self.twins, versions, strict=True)
        ]
        assert outcomes[0] is outcomes[1]

    @rule(log=st.sampled_from("xy"), records=st.lists(values, max_size=3))
    def append(self, log: str, records: list[bytes]) -> None:
        for twin in self.twins:
            assert twin.store.append(log, records, deadline=twin.soon()) is StoreOutcome.COMMITTED

    @invariant()
    def both_say_the_same(self) -> None:
        one, other = (
            [list(t.scanned().items()), t.values("a", "b"), t.records("x"), t.records("y", 1), dict(t.raw())]
            for t in self.twins
        )
        assert one == other

    def teardown(self) -> None:
        for twin in self.twins:
            twin.close()


claims = st.sampled_from(("intent/p", "archive/x", "dead_letter/y"))


class PayloadMachine(RuleBasedStateMachine):
    """A payload store against the reference, for one owner: the same reads, receipts and inventories.

    Attributes:
        make_subjects: Returns (reference, tried); both hold at least `ROOMS` objects.
    """

    ROOMS = 6
    make_subjects: Callable[[], tuple[PayloadSubject, PayloadSubject]]

    def __init__(self) -> None:
        super().__init__()
        self.twins = self.make_subjects()
        self.made: list[tuple[PayloadRef, ...]] = []
        self.pins: list[tuple[PayloadBytes, ...]] = []
        self.pending: list[tuple[PendingPayload, ...]] = []

    def taken(self) -> int:
        return self.twins[0].raw_objects()

    @precondition(lambda self: self.taken() < self.ROOMS)
    @rule(claim=claims)
    def put(self, claim: str) -> None:
        number = len(self.made)
        self.made.append(tuple(twin.made(number, obligations=(claim,)) for twin in self.twins))

    @precondition(lambda self: self.taken() < self.ROOMS)
    @rule()
    def begin(self) -> None:
        self.pending.append(tuple(twin.pending() for twin in self.twins))

    @precondition(lambda self: self.pending)
    @rule(pick=picks, seal=st.booleans())
    def finish(self, pick: int, seal: bool) -> None:
        pair = self.pending.pop(pick % len(self.pending))
        if seal:
            for begun in pair:
                begun.buffer[:] = bytes([len(self.made)]) * begun.buffer.nbytes
            self.made.append(tuple(begun.seal() for begun in pair))
        else:
            for begun in pair:
                begun.abandon()

    @precondition(lambda self: self.made)
    @rule(pick=picks)
    def read(self, pick: int) -> None:
        pair = self.made[pick % len(self.made)]
        found = [
            twin.store("a").read(ref, deadline=twin.soon())
            for twin, ref in zip(self.twins, pair, strict=True)
        ]
        assert [isinstance(read, PayloadBytes) for read in found] in ([True, True], [False, False])
        pinned = tuple(read for read in found if isinstance(read, PayloadBytes))
        if pinned:
            assert pinned[0].data[0] == pinned[1].data[0] == pick % len(self.made)
            self.pins.append(pinned)

    @precondition(lambda self: self.pins)
    @rule(pick=picks)
    def close(self, pick: int) -> None:
        for pinned in self.pins.pop(pick % len(self.pins)):
            pinned.close()

    @precondition(lambda self: self.made)
    @rule(pick=picks, claim=claims)
    def acquire(self, pick: int, claim: str) -> None:
        pair = self.made[pick % len(self.made)]
        receipts = []
        for twin, ref in zip(self.twins, pair, strict=True):
            store = twin.store("a")
            made = store.acquire_obligation([(ref, claim)], deadline=twin.soon())
            renewed = store.renew_obligation([(ref, claim)], deadline=twin.soon())
            receipts.append((type(made[0]), type(renewed[0])))
        assert receipts[0] == receipts[1]

    @precondition(lambda self: self.made)
    @rule(pick=picks, claim=claims)
    def release(self, pick: int, claim: str) -> None:
        pair = self.made[pick % len(self.made)]
        for twin, ref in zip(self.twins, pair, strict=True):
            twin.release(ref, claim)

    @rule(ledger=st.dictionaries(st.sampled_from(("intent", "archive")), st.just(frozenset[str]())))
    def reconcile(self, ledger: dict[str, frozenset[str]]) -> None:
        for twin in self.twins:
            twin.store("a").reconcile(ledger, "op", deadline=twin.soon())

    @invariant()
    def both_keep_the_same(self) -> None:
        assert len(self.twins[0].kept()) == len(self.twins[1].kept())
        assert self.live(0) == self.live(1)

    def live(self, number: int) -> list[bool]:
        found = []
        twin = self.twins[number]
        for pair in self.made:
            read = twin.store("a").read(pair[number], deadline=twin.soon())
            found.append(isinstance(read, PayloadBytes))
            if isinstance(read, PayloadBytes):
                read.close()
        return found

    def teardown(self) -> None:
        for pinned in self.pins:
            for pin in pinned:
                pin.close()
        for pair in self.pending:
            for begun in pair:
                begun.abandon()
        for twin in self.twins:
            twin.close()
