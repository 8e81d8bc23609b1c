"""Coverage against the plainest model: sets of numbers, and dictionaries of traces."""

from hypothesis import given
from hypothesis import strategies as st

from videoflow.backends.coverage import Cause, Coverage, Fate, FateKind, Hop, Origin, gravest
from videoflow.backends.intervals import IntervalSet

intervals = st.tuples(st.integers(0, 30), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair)))
DONE = Fate(FateKind.DELIVERED)
FATES = (DONE, Fate(FateKind.SKIPPED, Cause.DROPPED), Fate(FateKind.DEAD_LETTERED))


@given(st.lists(intervals, max_size=12), intervals)
def test_an_interval_set_is_a_set(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    model = {n for first, last in added for n in range(first, last + 1)}
    found = IntervalSet(added)
    assert list(found) == sorted(model)
    assert len(found) == len(model)
    assert bool(found) is bool(model)
    assert found.last() == max(model, default=-1)
    assert found.closed_prefix() == next(n for n in range(99) if n not in model)
    assert all((n in found) is (n in model) for n in range(-1, 40))
    gaps = found.missing(*asked)
    assert [n for first, last in gaps for n in range(first, last + 1)] == [
        n for n in range(asked[0], asked[1] + 1) if n not in model
    ]
    for (_, last), (first, _) in zip(found.intervals(), found.intervals()[1:], strict=False):
        assert last + 1 < first
    other = IntervalSet([asked])
    other.update(found)
    assert set(other) == model | set(range(asked[0], asked[1] + 1))


ordinals = st.integers(0, 6)
closings = st.lists(
    st.one_of(
        st.tuples(ordinals, st.none(), st.sampled_from(FATES)),
        st.tuples(ordinals, st.tuples(st.integers(0, 1), st.integers(0, 2)), st.sampled_from(FATES)),
    ),
    max_size=30,
)
Closing = tuple[int, tuple[int, int] | None, Fate]


def path(ks: tuple[int, int] | None) -> tuple[Hop, ...]:
    return () if ks is None else (Hop("n", "p", ks[0], 2), Hop("m", "q", ks[1], 3))


def closed(sequence: list[Closing]) -> Coverage:
    coverage = Coverage()
    for ordinal, ks, fate in sequence:
        coverage.close(Origin("camera", 0, ordinal), path(ks), fate)
    return coverage


@given(closings)
def test_a_trace_is_covered_once_it_or_all_its_elements_are_closed(sequence: list[Closing]) -> None:
    coverage = closed(sequence)
    for ordinal in range(7):
        mine = {ks for o, ks, _ in sequence if o == ordinal}
        whole = None in mine or all((i, k) in mine for i in range(2) for k in range(3))
        origin = Origin("camera", 0, ordinal)
        assert coverage.covers(origin) is whole
        for i in range(2):
            for k in range(3):
                assert coverage.covers(origin, path((i, k))) is (whole or (i, k) in mine)
            part = whole or all((i, k) in mine for k in range(3))
            assert coverage.covers(origin, path((i, 0))[:1]) is part


@given(closings)
def test_the_first_fate_of_a_trace_stands_and_repetitions_change_nothing(sequence: list[Closing]) -> None:
    once, twice = closed(sequence), closed(sequence + sequence)
    assert once.records() == twice.records()
    first: dict[int, Fate] = {}
    for ordinal, ks, fate in sequence:
        if ks is None:
            first.setdefault(ordinal, fate)
    for record in once.records():
        for kind, cause, ranges in record.ordinals:
            for low, high in ranges:
                for ordinal in range(low, high + 1):
                    assert first[ordinal] == Fate(FateKind(kind), Cause(cause) if cause else None)


@given(st.lists(st.tuples(ordinals, st.sampled_from(FATES)), max_size=12), st.data())
def test_what_two_owners_saw_is_joined_by_union(pairs: list[tuple[int, Fate]], data: st.DataObject) -> None:
    """Owners are disjoint: an ordinal is closed by one of them."""
    mine = {ordinal: fate for ordinal, fate in pairs if ordinal % 2}
    theirs = {ordinal: fate for ordinal, fate in pairs if not ordinal % 2}
    joined = Coverage()
    for part in data.draw(st.permutations([mine, theirs, mine])):
        joined.merge(closed([(ordinal, None, fate) for ordinal, fate in part.items()]).records())
    everything = closed([(ordinal, None, fate) for ordinal, fate in {**mine, **theirs}.items()])
    assert joined.records() == everything.records()


@given(closings)
def test_records_say_everything(sequence: list[Closing]) -> None:
    coverage, again = closed(sequence), Coverage()
    again.merge(coverage.records())
    assert again.records() == coverage.records()
    for ordinal in range(7):
        for ks in [None, *((i, k) for i in range(2) for k in range(3))]:
            origin = Origin("camera", 0, ordinal)
            assert again.covers(origin, path(ks)) is coverage.covers(origin, path(ks))


def test_long_runs_take_one_interval() -> None:
    coverage = closed([(n, None, DONE) for n in range(1000)])
    (record,) = coverage.records()
    assert record.ordinals == [("delivered", "", [(0, 999)])]


def test_causes_have_an_order_of_gravity() -> None:
    assert gravest([Cause.SKIPPED, Cause.EXPIRED, Cause.ENDED]) is Cause.EXPIRED
    assert gravest([Cause.DEAD_LETTER, Cause.ABORTED]) is Cause.ABORTED
