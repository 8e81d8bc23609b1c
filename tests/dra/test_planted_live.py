"""Defects of what no other allocator has, each noticed by the test that is about it."""

from pathlib import Path

import pytest

from tests.allocation.dra_defects import (
    BACKEND,
    INVENTORY,
    OPERATION,
    PACKAGE,
    PLANNING,
    POOLS,
    RECORDS,
    SEEING,
)
from tests.allocation.planted import planted
from tests.dra import test_choosing, test_live
from tests.promises.planting import Change

DEFECTS = {
    "half a pool is a pool": (
        Change(POOLS, "if wanted != {len(there)}:", "if not wanted:"),
        test_live.test_only_the_newest_generation_of_a_pool_counts_and_only_if_it_is_whole,
    ),
    "old generations count": (
        Change(POOLS, 'if spec["pool"]["generation"] == generations[spec["pool"]["name"]]]', "if spec]"),
        test_live.test_only_the_newest_generation_of_a_pool_counts_and_only_if_it_is_whole,
    ),
    "a device plugin is overlooked": (
        Change(POOLS, "    if given:\n", "    if given is None:\n"),
        test_live.test_a_host_whose_devices_a_plugin_gives_out_is_off_limits,
    ),
    "devices agree by chance": (
        Change(PLANNING, "        alike=_keys(request, everybody, SAME),\n", ""),
        test_choosing.test_devices_that_have_to_agree_are_found_where_they_do,
    ),
    "taints of devices are overlooked": (
        Change(POOLS, '            withheld=", ".join(_taints(device)),\n', ""),
        test_choosing.test_a_device_that_its_driver_taints_is_not_planned_and_why_is_said,
    ),
    "devices differ by chance": (
        Change(PLANNING, "        apart=_keys(request, everybody, DISTINCT),\n", ""),
        test_choosing.test_devices_that_have_to_differ_are_found_where_they_do,
    ),
    "what sharers took is free": (
        Change(
            PLANNING,
            "free = memory - snapshot.occupancy.get(memory_key(card.identity), 0)",
            "free = memory",
        ),
        test_live.test_what_sharers_take_never_exceeds_what_is_published,
    ),
    "what a sharer took is not counted": (
        Change(
            INVENTORY, "None if consumed is None else size_of(consumed)", "None if consumed is None else 0"
        ),
        test_live.test_what_sharers_take_never_exceeds_what_is_published,
    ),
    "a group shares no claim": (
        Change(RECORDS, 'else hash_id("group", group)', "else hash_id(workload)"),
        test_live.test_a_declared_group_shares_one_claim_and_nobody_else_has_its_card,
    ),
    "a group needs no room": (
        Change(
            PLANNING, "figures.append(sum(share_bytes(one) for", "figures.append(max(share_bytes(one) for"
        ),
        test_live.test_a_declared_group_shares_one_claim_and_nobody_else_has_its_card,
    ),
    "one sharer may take all": (
        Change(PLANNING, "memory if card.most_bytes is None else card.most_bytes", "memory"),
        test_live.test_one_sharer_never_takes_more_than_the_policy_gives_one,
    ),
    "every card is the driver's to cut": (
        Change(PLANNING, "managed=card.counted and model is not None", "managed=model is not None"),
        test_live.test_a_card_cut_by_hand_is_never_taken_over_by_the_driver,
    ),
    "what is allocated is prepared": (
        Change(SEEING, "    if unprepared:\n", "    if unprepared and not pods:\n"),
        test_live.test_allocated_prepared_and_ready_are_three_states_of_whole_cards_too,
    ),
    "a pod of anybody is evidence": (
        Change(SEEING, "if claim_label(one) and owner in {", "if claim_label(one) or owner in {"),
        test_live.test_a_pod_of_somebody_else_is_no_evidence,
    ),
    "not yet is never": (
        Change(
            OPERATION,
            "            self._why_not(waiting, given)\n",
            '            raise Aborted("nothing was given")\n',
        ),
        test_live.test_a_scheduler_may_take_its_time,
    ),
    "a scheduler that gives up is still thinking": (
        Change(OPERATION, 'return str(told.get("message") or "it says nothing more")', 'return ""'),
        test_live.test_where_the_scheduler_finds_no_place_all_is_given_back,
    ),
    "an evicted holder is not missed": (
        Change(BACKEND, "if held and self._steps(journal).missing():", "if held and not journal:"),
        test_live.test_an_evicted_holder_is_made_anew_where_its_device_is_still_to_be_had,
    ),
    "a pod that runs does not keep its claim": (
        Change(OPERATION, 'if user["name"] not in holders', 'if user["name"] in ()'),
        test_live.test_a_claim_that_a_workload_uses_is_not_taken_from_it,
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change, test = DEFECTS[name]
    with planted(tmp_path, PACKAGE, [change]) as product:
        monkeypatch.setattr(test_live, "DraAllocation", product.DraAllocation)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            test()
