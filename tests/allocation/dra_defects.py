"""One defect or more for each property that DRA is held to, with cards cut by hand and by the driver."""

from tests.allocation.planted import RECORDED, TERMS, Defect, defect

PACKAGE = "videoflow.deploy.allocation_dra"
BACKEND, CAPABILITIES, GATES = "_backend.py", "_capabilities.py", "_gates.py"
INVENTORY, OPERATION, PLANNING = "_inventory.py", "_operation.py", "_planning.py"
POOLS, RECORDS, SEEING = "_pools.py", "_records.py", "_seeing.py"


POSSIBLE = "return model is not None and is_legal(model, layout) and set(layout) <= published"
PLANS = "return plan_for(requests, snapshot, self._settings, self._gates)"

# However cards are cut.
BOTH: dict[str, Defect] = {
    "a whole card passes for a slice": defect(
        "ALLOC-26",
        "26_accounting_is_never_taken_for_isolation",
        (TERMS, "Sharing.ISOLATED_MIG: Kind.SLICE", "Sharing.ISOLATED_MIG: Kind.WHOLE"),
    ),
    "nobody asks who was given the device": defect(
        "ALLOC-4",
        "4_of_two_who_read_the_same_one_is_the_owner",
        (OPERATION, "            self._why_not(waiting, given)\n", "            pass\n"),
    ),
    "what is made belongs to no record": defect(
        "ALLOC-4",
        "4_who_was_overtaken_owns_nothing_any_more",
        (
            RECORDS,
            '{"apiVersion": "v1", "kind": "ConfigMap", "name": record.claim_id, "uid": owner}',
            '*([] if owner else [{"uid": owner}])',
        ),
        (OPERATION, "_owners(found) == {self._owner}", "_owners(found) <= {self._owner}"),
        (
            SEEING,
            'if claim_label(one) and owner in {ref["uid"] for ref in one["metadata"]'
            '.get("ownerReferences") or ()}',
            "if claim_label(one) and owner",
        ),
    ),
    "a holder is left behind": defect(
        "ALLOC-6",
        "6_wherever_a_reservation_ends_the_next_process_finds_it",
        (OPERATION, "gone = self._remove(PODS, self._record.holder_of(workload))", "gone = True"),
    ),
    "claims that cannot be listed are none": defect(
        "ALLOC-7",
        "7_a_read_that_failed_is_unknown_and_blocks_what_rests_on_it",
        (INVENTORY, "given, whole = (), False", "given, whole = (), True"),
    ),
    "what cannot be read again is as it was": defect(
        "ALLOC-7",
        "7_users_that_cannot_be_read_again_end_the_operation",
        (
            RECORDED,
            '        raise Aborted(f"occupancy cannot be read again: {error}") from error\n',
            "        return\n",
        ),
    ),
    "a pod that runs does not keep its claim": defect(
        "ALLOC-7",
        "7_what_is_busy_kept_or_unreadable_stays_owned",
        (OPERATION, 'if user["name"] not in holders', 'if user["name"] in ()'),
    ),
    "hosts are one pool": defect(
        "ALLOC-8",
        "8_what_one_host_holds_is_not_added_up_over_hosts",
        (POOLS, 'found.setdefault(spec["nodeName"], [])', "found.setdefault(min(by_name), [])"),
    ),
    "labels that deny it are overlooked": defect(
        "ALLOC-9",
        "9_only_physical_evidence_gives_whole_devices",
        (POOLS, "    if labelled in _CONTRADICTED:\n", "    if labelled is None:\n"),
    ),
    "a device for several is one of its own": defect(
        "ALLOC-9",
        "9_only_physical_evidence_gives_whole_devices",
        (POOLS, "    if any(one.several for one in devices):\n", "    if not devices:\n"),
    ),
    "a plan is kept for the next": defect(
        "ALLOC-11",
        "11_a_plan_is_a_value_and_nothing_leaks_into_the_next",
        (BACKEND, PLANS, PLANS.replace("plan_for(", 'vars(self).setdefault("kept", plan_for(') + ")"),
    ),
    "nobody looks again": defect(
        "ALLOC-12",
        "12_one_who_cannot_be_kept_out_is_seen_before_anything_changes",
        (RECORDED, "                _look(steps)\n", ""),
    ),
    "a request is shortened to what there is": defect(
        "ALLOC-14",
        "14_nothing_is_planned_short",
        (PLANNING, "        count=request.device_count,\n", "        count=min(request.device_count, 2),\n"),
    ),
    "who has a device is not asked": defect(
        "ALLOC-18",
        "18_a_card_and_a_slice_of_it_never_have_two_owners",
        (
            PLANNING,
            "users, model = snapshot.occupancy.get(key, 0), model_of(card)",
            "users, model = 0, model_of(card)",
        ),
    ),
    "workloads share a claim that declared no group": defect(
        "ALLOC-20",
        "20_workloads_without_a_declared_group_share_no_claim",
        (RECORDS, "return hash_id(workload) if group is None", "return hash_id('all') if group is None"),
    ),
    "what is allocated is prepared": defect(
        "ALLOC-21",
        "21_allocated_prepared_and_ready_are_three_states",
        (SEEING, "    if unprepared:\n", "    if unprepared and not pods:\n"),
    ),
    "what is prepared can be used": defect(
        "ALLOC-21",
        "21_allocated_prepared_and_ready_are_three_states",
        (SEEING, "    if unready:\n", "    if unready and not pods:\n"),
    ),
    "an operation id is good for any plan": defect(
        "ALLOC-22",
        "22_the_same_operation_is_done_once_by_any_process",
        (RECORDED, "journal.record.plan != plan_digest(plan)", "journal.record.plan != journal.record.plan"),
    ),
    "a claim that is gone is stale": defect(
        "ALLOC-22",
        "22_a_release_is_idempotent_over_every_mishap",
        (
            BACKEND,
            'ReleaseObservation(claim_id, ReleaseStatus.RELEASED, reason="no such',
            'ReleaseObservation(claim_id, ReleaseStatus.STALE, reason="no such',
        ),
    ),
    "nothing is rejected beforehand": defect(
        "ALLOC-23",
        "23_what_is_not_claimed_is_refused_by_name",
        (
            CAPABILITIES,
            "found = allocation_rejections(requests, capabilities_of(gates))",
            "found = list[str]()",
        ),
    ),
    "a core brings its gates": defect(
        "ALLOC-24",
        "24_a_core_that_is_stable_implies_no_gate",
        (GATES, "return all(gate in self.on or", "return any(gate in self.on or"),
    ),
    "sharing is claimed where nothing is shared": defect(
        "ALLOC-25",
        "25_sharers_never_have_more_than_the_device",
        (CAPABILITIES, "cooperative_sharing=shares", "cooperative_sharing=True"),
    ),
    "what was asked is told as one": defect(
        "ALLOC-30",
        "30_desired_admitted_and_ready_are_three_numbers",
        (SEEING, "requested = sum(len(record.assignments[name]) for name in names)", "requested = 1"),
    ),
    "constraints are dropped": defect(
        "ALLOC-31",
        "31_hard_constraints_are_kept_or_refused_and_soft_ones_stay_soft",
        (PLANNING, "            if rule.operator in OPERATORS and rule.key", "            if rule.key"),
        (PLANNING, "            if (is_placing(rule) or rule.key", "            if (not rule or rule.key"),
    ),
    "a default is passed over": defect(
        "ALLOC-34",
        "34_a_default_is_said_to_be_one",
        (TERMS, "if provenance is not Provenance.EXPLICIT", "if provenance is None"),
    ),
}

BY_HAND: dict[str, Defect] = {
    "a whole card passes for a slice of it": defect(
        "ALLOC-1",
        "1_a_layout_beyond_the_card_is_refused_with_nothing_written",
        (TERMS, "Sharing.ISOLATED_MIG: Kind.SLICE", "Sharing.ISOLATED_MIG: Kind.WHOLE"),
    ),
    "a host is counted though it was left out": defect(
        "ALLOC-8",
        "8_capacity_is_that_of_the_hosts_that_were_classified",
        (PLANNING, "        excluded=host.excluded,\n", ""),
    ),
    "prepared slices are overlooked": defect(
        "ALLOC-17",
        "17_slices_that_are_there_are_used_as_they_are",
        (POOLS, 'if one.kind == "mig" and not one.counted]', 'if one.kind == "none"]'),
    ),
    "a claim believes its record": defect(
        "ALLOC-18",
        "18_what_another_allocator_owns_or_takes_is_left_alone",
        (SEEING, "if name in hosts and hosts[name].excluded", "if name not in hosts"),
    ),
    "every card is the driver's to cut": defect(
        "ALLOC-28",
        "28_a_card_with_slices_in_use_is_not_cut",
        (PLANNING, "managed=card.counted and model is not None", "managed=model is not None"),
    ),
}

BY_DRIVER: dict[str, Defect] = {
    "a layout is only judged by the driver": defect(
        "ALLOC-1",
        "1_a_layout_beyond_the_card_is_refused_with_nothing_written",
        (BACKEND, POSSIBLE, "return model is not None"),
    ),
    "slots are counted and not placed": defect(
        "ALLOC-2",
        "2_slices_begin_where_the_card_allows",
        (
            BACKEND,
            POSSIBLE,
            "return model is not None and 8 >= sum(\n"
            "        p.width for one in layout if (p := model.profile(one[0]))\n    )",
        ),
    ),
}

STATIC = BOTH | BY_HAND
DYNAMIC = BOTH | BY_DRIVER
