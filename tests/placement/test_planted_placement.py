"""Each part of the solver, the catalogue and the refusals has a defect here that some test must notice."""

from pathlib import Path

import pytest

from tests.promises.planting import Change, Planted, sampled

BOARD = "placement/_board.py"
BOUNDS = "placement/_bounds.py"
CATALOGUE = "placement/mig_catalogue.json"
GEOMETRY = "placement/_geometry.py"
OPTIONS = "placement/_options.py"
SEARCH = "placement/_search.py"
CHECK = "placement/check/_certificates.py"
ADMISSION = "backends/allocation/_admission.py"

CARDS = "tests/placement/test_catalogue.py"
SOLVER = "tests/placement/test_solver.py::"
CROWDED = "tests/placement/test_certificates.py"
AGREES = SOLVER + "test_it_agrees_with_brute_force_on_small_problems"
WORDS = "tests/placement/test_labels_and_masks.py"
CONTRACT = "tests/backends/test_allocation.py"

# What is planted; where; the tests of which one must fail.
DEFECTS: dict[str, tuple[Change, str]] = {
    "a double slice may begin anywhere": (
        Change(
            CATALOGUE, '"width": 2, "starts": [0, 2, 4, 6]', '"width": 2, "starts": [0, 1, 2, 3, 4, 5, 6]'
        ),
        CARDS,
    ),
    "a label is taken for usable memory": (
        Change("placement/_catalogue.py", 'entry["usable_mib"] * MIB', 'entry["label_gb"] * 1024 * MIB'),
        CARDS,
    ),
    "the name outweighs the device id": (
        Change(
            "placement/_catalogue.py",
            "return by_name if device_id is None else",
            "return by_name if by_name or device_id is None else",
        ),
        CARDS + "::test_a_device_id_finds_its_card_whatever_it_is_called",
    ),
    "a running slice is cut through": (
        Change(BOARD, "            occupied |= footprint(", "            occupied &= footprint("),
        SOLVER + "test_running_slices_stay_and_what_is_new_is_laid_out_around_them",
    ),
    "a bound that promises too much": (
        Change(BOUNDS, "churn += max(0, self._slices[number] - total[7])", "churn += self._slices[number]"),
        SOLVER + "test_no_bound_is_above_what_can_be_reached",
    ),
    "cards of different links are taken for equal": (
        Change(BOARD, "            return spot.card.key\n", "            return self._looks(spot.card)\n"),
        SOLVER + "test_several_cards_are_chosen_so_that_the_worst_link_is_the_best",
    ),
    "a state that was seen is never better": (
        Change(SEARCH, "        if seen is not None and seen <= so_far:", "        if seen is not None:"),
        SOLVER + "test_a_worse_way_to_the_same_state_hides_no_better_one",
    ),
    "equal demands are refused first": (
        Change(
            SEARCH, "        if not equal or last is not None:\n", "        if not equal or last is None:\n"
        ),
        SOLVER + "test_where_greed_is_not_enough_the_search_finds_the_best_and_no_less_is_called_so",
    ),
    "a search that was cut short is complete": (
        Change(
            SEARCH, "            self._complete = False\n            return True", "            return True"
        ),
        SOLVER + "test_where_greed_is_not_enough_the_search_finds_the_best_and_no_less_is_called_so",
    ),
    "a rule nobody can check is ignored": (
        Change("placement/_rules.py", "if rule.hard and rule.key not in known", "if rule.key in known"),
        SOLVER + "test_a_hard_rule_holds_a_soft_one_is_preferred_and_one_nobody_can_check_refuses",
    ),
    "certificates are taken on trust": (
        Change(
            CHECK,
            '        faults.append("there is enough")\n    return tuple(faults)\n\n\ndef _lightest',
            "        pass\n\n\ndef _lightest",
        ),
        SOLVER + "test_a_forged_sum_is_not_accepted",
    ),
    "a card is said to hold less weight than it does": (
        Change("placement/_weights.py", "return len(least) - 1", "return len(least) - 2"),
        CROWDED,
    ),
    "what stands in the way is taken on trust": (
        Change(CHECK, "if wrong or Packer(", "if wrong and Packer("),
        CROWDED,
    ),
    "the weights of a card are taken on trust": (
        Change(CHECK, "if most > said[host.name]:", "if most < 0:"),
        CROWDED,
    ),
    "a stable server implies its gates": (
        Change(ADMISSION, " and feature not in matrix", " and not matrix"),
        CONTRACT,
    ),
}
# These are planted by `make nightly` only, for their time.
MORE_DEFECTS: dict[str, tuple[Change, str]] = {
    "two slices with media extensions": (
        Change(GEOMETRY, "> profile.maximum or media > 1", "> profile.maximum + 1"),
        CARDS + "::test_media_extensions_are_on_one_slice_of_a_card_and_never_taken_unasked",
    ),
    "a layout that is not ours is changed": (
        Change(OPTIONS, "    if not spot.card.managed:\n        return\n", ""),
        SOLVER + "test_no_slice_is_made_on_a_card_whose_layout_is_not_ours",
    ),
    "a time-sliced host gives whole cards": (
        Change(BOARD, '"time-sliced": frozenset({Kind.SHARE})', '"time-sliced": frozenset(Kind)'),
        SOLVER + "test_only_a_physical_host_gives_whole_cards_and_an_unknown_one_gives_nothing",
    ),
    "a demand is refused though there is a place for it": (
        Change(SEARCH, "            self._admit_more()", "            pass"),
        CROWDED,
    ),
    "sharers count on cards that are not for them": (
        Change("placement/_weights.py", "if index in need.spots and weights[number])", "if weights[number])"),
        CROWDED,
    ),
    "devices agree and differ by chance": (
        Change(OPTIONS, "    bound = bool(need.demand.alike or need.demand.apart)\n", "    bound = False\n"),
        SOLVER + "test_devices_agree_and_differ_where_that_is_asked",
    ),
    "headroom is for others": (
        Change(BOARD, "card.free_bytes - headroom", "card.free_bytes"),
        SOLVER + "test_sharers_fill_free_memory_less_headroom_and_no_more",
    ),
    "unknown links give peer access": (
        Change(BOARD, "(UNKNOWN_DISTANCE, False)", "(UNKNOWN_DISTANCE, True)"),
        SOLVER + "test_peer_access_that_was_not_verified_is_none",
    ),
    "slices have peer access": (
        Change(BOARD, "is None and not alone", "is None"),
        AGREES,
    ),
    "a twice named device is shown": (
        Change(
            "placement/_visible.py",
            "            return Visible((), entry,",
            "            return Visible(tuple(shown), entry,",
        ),
        WORDS,
    ),
    "replicas are not seen": (
        Change("placement/_labels.py", " or _replicated(labels):", ":"),
        WORDS,
    ),
    "accounting is taken for isolation": (
        Change(ADMISSION, "request.sharing is Sharing.ISOLATED_MIG and not found.isolated_mig", "False"),
        CONTRACT,
    ),
}


ALWAYS = (
    "a double slice may begin anywhere",
    "a label is taken for usable memory",
    "a running slice is cut through",
    "certificates are taken on trust",
    "accounting is taken for isolation",
)


@pytest.mark.parametrize("name", sampled(DEFECTS, ALWAYS))
def test_a_planted_defect_is_noticed(name: str, tmp_path: Path) -> None:
    notices(DEFECTS[name], tmp_path)


def notices(defect: tuple[Change, str], tmp_path: Path) -> None:
    """Fails unless a test fails in a copy with the defect."""
    change, tests = defect
    ran = Planted(tmp_path, [change]).test(tests)
    assert ran.status == 1, ran.output
    assert "AssertionError" in ran.output or "\nE  " in ran.output, ran.output
