"""Why demands are refused that are too many for cards nearly full; a checker believes what holds."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.placement.crowded import crowded, hosts, sharers
from videoflow.placement import (
    Assignment,
    Certificate,
    Demand,
    Device,
    Host,
    Label,
    Operator,
    Problem,
    Proof,
    Rule,
    solve,
)
from videoflow.placement.check import answer_faults, bound_faults, certificate_faults

# 27 GiB of 30 are asked for, and no card holds two of these.
THREE_FOR_TWO = Problem(hosts([[15, 15]]), sharers(9, 9, 9), headroom_bytes=0)


def refused(asked: Problem) -> Certificate:
    """The one refusal's certificate."""
    (refusal,) = solve(asked).refusals
    assert certificate_faults(asked, refusal.certificate) == ()
    return refusal.certificate


def test_three_sharers_of_more_than_half_a_card_do_not_fit_on_two_and_weights_say_so() -> None:
    assert refused(THREE_FOR_TWO).proof is Proof.WEIGHTS


FORGERIES: dict[str, Callable[[Certificate], Certificate]] = {
    "cards hold less than they do": lambda c: replace(c, room=tuple((name, 0) for name, _ in c.room)),
    "the core weighs more": lambda c: replace(c, needed=c.needed + 1),
    "there is enough": lambda c: replace(c, needed=sum(room for _, room in c.room)),
    "a weight is left out": lambda c: replace(c, weights=c.weights[1:]),
    "a weight below nothing": lambda c: replace(c, weights=((c.weights[0][0], -1), *c.weights[1:])),
    "a host is left out": lambda c: replace(c, room=()),
    "more are refused than that": lambda c: replace(c, fewest=2),
    "all and one more are refused": lambda c: replace(c, fewest=len(c.core) + 1),
    "as if the others stood in the way": lambda c: replace(c, proof=Proof.STANDING),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_weights_are_not_accepted(name: str) -> None:
    good = refused(THREE_FOR_TWO)
    assert certificate_faults(THREE_FOR_TWO, FORGERIES[name](good)) != ()


def test_a_card_for_few_sharers_holds_no_more_of_them_however_small() -> None:
    asked = Problem(hosts([[15, 15]], sharers_left=2), sharers(1, 1, 1, 1, 1), headroom_bytes=0)
    refused(asked)
    assert solve(replace(asked, hosts=hosts([[15, 15]]))).refusals == ()


def only(on: str, *demands: Demand) -> tuple[Demand, ...]:
    """The same demands, on such cards alone."""
    return tuple(replace(demand, rules=(Rule("pace", Operator.IN, (on,)),)) for demand in demands)


def paced(slow: Sequence[float], fast: float) -> Host:
    (found,) = hosts([[*slow, fast]])
    cards = [replace(card, facts={"pace": "slow"}) for card in found.cards[:-1]]
    return replace(found, cards=(*cards, replace(found.cards[-1], facts={"pace": "fast"})))


def test_sharers_that_may_be_on_one_card_only_do_not_count_the_other() -> None:
    asked = Problem((paced([15], 15),), only("fast", *sharers(9, 9)), headroom_bytes=0)
    assert refused(asked).proof is Proof.WEIGHTS


def test_what_was_left_out_for_others_is_admitted_where_it_still_fits() -> None:
    # The largest is left out first, though it takes nothing from those that are too many.
    large = replace(sharers(19)[0], key="large")
    small = sharers(10, 10, 8, 8, 7, 7, 6, 6, 6, 6, 5, 5, 4, 4)
    demands = (*only("fast", large), *only("slow", *small))
    answer = solve(Problem((paced([18] * 4, 20),), demands, headroom_bytes=0), budget=0)
    assert "large" in answer.assignments
    assert answer.aim.refused == 2


def test_nearly_full_cards_are_filled_where_one_after_the_other_leaves_one_out() -> None:
    # Two cards of 18: 8, 6, 4 and 7, 6, 5; the largest first gives 8, 7 and is stuck with the rest.
    asked = Problem(hosts([[18, 18]]), sharers(8, 7, 6, 6, 5, 4), headroom_bytes=0)
    answer = solve(asked, budget=0)
    assert (answer.label, answer.refusals) == (Label.OPTIMAL, ())
    assert answer_faults(asked, answer) == ()


@pytest.mark.parametrize(("seed", "most_gib"), [(0, 58), (1, 58), (2, 66), (3, 75), (4, 75)])
def test_forty_sharers_on_sixteen_cards_get_an_answer_with_a_bound_that_can_be_checked(
    seed: int, most_gib: int
) -> None:
    asked = crowded(seed, most_gib)
    answer = solve(asked, relax=False)
    assert answer_faults(asked, answer) + bound_faults(asked, answer) == ()
    for refusal in answer.refusals:
        assert certificate_faults(asked, refusal.certificate, answer) == ()
        assert refusal.proven or answer.label is Label.UNPROVEN


def test_a_bound_that_counts_twice_or_says_more_than_it_shows_is_not_accepted() -> None:
    answer = solve(THREE_FOR_TWO)
    (proof,) = answer.proofs
    assert bound_faults(THREE_FOR_TWO, answer) == ()
    assert bound_faults(THREE_FOR_TWO, replace(answer, proofs=(proof, proof))) != ()
    assert bound_faults(THREE_FOR_TWO, replace(answer, proofs=(replace(proof, fewest=2),))) != ()
    unproven = replace(answer, label=Label.UNPROVEN, proofs=())
    assert bound_faults(THREE_FOR_TWO, unproven) != ()


def test_that_others_stand_in_the_way_holds_for_their_places_alone() -> None:
    asked = Problem(hosts([[10, 10]]), sharers(4, 4, 7), headroom_bytes=0)
    one, other = (Assignment("h0", (Device(f"h0/{i}"),)) for i in range(2))
    answer = replace(solve(asked), assignments={"d0": one, "d1": other})
    said = Certificate(Proof.STANDING, ("d2",))
    assert certificate_faults(asked, said, answer) == ()
    assert certificate_faults(asked, said, replace(answer, assignments={"d0": one, "d1": one})) != ()
    assert certificate_faults(asked, said, replace(answer, assignments={"d2": one})) != ()
    assert certificate_faults(asked, said) != ()
