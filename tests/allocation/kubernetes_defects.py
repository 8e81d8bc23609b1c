"""One defect or more for each property that a cluster is held to; each is a small change of its code."""

from tests.allocation.planted import RECORDED, TERMS, Defect, defect

PACKAGE = "videoflow.deploy.allocation_kubernetes"
BACKEND, HOSTS, INVENTORY = "_backend.py", "_hosts.py", "_inventory.py"
GEOMETRY, OPERATION, PLANNING = "_geometry.py", "_operation.py", "_planning.py"
SEEING, SESSION = "_seeing.py", "_session.py"

LEAVING = """else self._put(holder, changed)

        self._session.change(lambda: read_ledger(self._session, name), write, self._journal.check)

    def _put"""

LISTED = "        return tuple(pod for pod in self.listed(PODS) if _holds(pod))\n"

DEFECTS: dict[str, Defect] = {
    "a layout is only judged by the MIG manager": defect(
        "ALLOC-1",
        "1_a_layout_beyond_the_card_is_refused_with_nothing_written",
        (BACKEND, " or not is_legal(model, layout):", ":"),
    ),
    "slots are counted and not placed": defect(
        "ALLOC-2",
        "2_slices_begin_where_the_card_allows",
        (
            BACKEND,
            "not is_legal(model, layout):",
            "8 < sum(p.width for one in layout if (p := model.profile(one[0]))):",
        ),
    ),
    "a ledger is written over what somebody wrote meanwhile": defect(
        "ALLOC-4",
        "4_of_two_who_read_the_same_one_is_the_owner",
        (
            OPERATION,
            "        body = written(ledger, self._session.settings.namespace, holder)\n",
            '        name = written(ledger, "", None)["metadata"]["name"]\n'
            "        holder = self._session.config_map(name)\n"
            "        body = written(ledger, self._session.settings.namespace, holder)\n",
        ),
    ),
    "who holds nothing leaves no mark on a ledger": defect(
        "ALLOC-4",
        "4_who_was_overtaken_owns_nothing_any_more",
        (
            OPERATION,
            f"return None if changed == ledger {LEAVING}",
            f"return None if changed.holds == ledger.holds {LEAVING}",
        ),
    ),
    "what is not restored yet is off the record": defect(
        "ALLOC-6",
        "6_a_restore_that_fails_is_on_record_and_carried_on",
        (
            RECORDED,
            "            if remaining := steps.give_back():\n",
            "            if remaining := steps.give_back():\n                journal.delete()\n",
        ),
    ),
    "pods that cannot be listed are none": defect(
        "ALLOC-7",
        "7_a_read_that_failed_is_unknown_and_blocks_what_rests_on_it",
        (
            INVENTORY,
            "drivers, pods, ledgers, whole = {}, (), {}, False",
            "drivers, pods, ledgers, whole = {}, (), {}, True",
        ),
    ),
    "who cannot be read again is taken for nobody": defect(
        "ALLOC-7",
        "7_users_that_cannot_be_read_again_end_the_operation",
        (
            SESSION,
            LISTED,
            f"        try:\n    {LISTED}        except Unanswered:\n            return ()\n",
        ),
    ),
    "a workload that runs does not keep its devices": defect(
        "ALLOC-7",
        "7_what_is_busy_kept_or_unreadable_stays_owned",
        (OPERATION, "        return tuple(sorted(found))\n", "        return () if found else ()\n"),
    ),
    "a host is counted though it was left out": defect(
        "ALLOC-8",
        "8_capacity_is_that_of_the_hosts_that_were_classified",
        (PLANNING, "        excluded=host.excluded,\n", ""),
    ),
    "what no label proves is physical": defect(
        "ALLOC-9",
        "9_only_physical_evidence_gives_whole_devices",
        (HOSTS, "HostSharing(classify_labels(labels))", "HostSharing.PHYSICAL"),
    ),
    "a plan is kept for the next": defect(
        "ALLOC-11",
        "11_a_plan_is_a_value_and_nothing_leaks_into_the_next",
        (
            BACKEND,
            "        return plan_for(requests, snapshot, self.capabilities(self._environment))\n",
            "        self._kept = getattr(self, '_kept', None) or plan_for(\n"
            "            requests, snapshot, self.capabilities(self._environment)\n        )\n"
            "        return self._kept\n",
        ),
    ),
    "nobody looks again": defect(
        "ALLOC-12",
        "12_one_who_cannot_be_kept_out_is_seen_before_anything_changes",
        (RECORDED, "        steps.look_again()\n", "        steps.users()\n"),
        (RECORDED, "                steps.change_geometry()\n", ""),
    ),
    "a request is shortened to what there is": defect(
        "ALLOC-14",
        "14_nothing_is_planned_short",
        (PLANNING, "        count=request.device_count,\n", "        count=min(request.device_count, 2),\n"),
    ),
    "prepared slices are overlooked": defect(
        "ALLOC-17",
        "17_slices_that_are_there_are_used_as_they_are",
        (HOSTS, "((profile, resources.get(GPU, 0)),) if profile else ()", "()"),
    ),
    "who has a card is not asked": defect(
        "ALLOC-18",
        "18_a_card_and_a_slice_of_it_never_have_two_owners",
        (PLANNING, "        users=users[key] if cut is None else 0,\n", "        users=0,\n"),
    ),
    "a claim believes its record": defect(
        "ALLOC-18",
        "18_what_another_allocator_owns_or_takes_is_left_alone",
        (SEEING, "if name in drivers or not _is_held(session, record, name, node)", "if name is node"),
    ),
    "success is enough": defect(
        "ALLOC-21",
        "21_allocated_prepared_and_ready_are_three_states",
        (SEEING, "    if short:\n", "    if short and not record.geometry:\n"),
    ),
    "an old state is believed": defect(
        "ALLOC-21",
        "21_allocated_prepared_and_ready_are_three_states",
        (
            GEOMETRY,
            "    if MIG_STATE in labels_of(node):\n",
            "    if MIG_STATE in labels_of({**node, 'metadata': {}}):\n",
        ),
        (SEEING, "    if short:\n", "    if short and not record.geometry:\n"),
    ),
    "an operation id is good for any plan": defect(
        "ALLOC-22",
        "22_the_same_operation_is_done_once_by_any_process",
        (RECORDED, "journal.record.plan != plan_digest(plan)", "journal.record.plan != journal.record.plan"),
    ),
    "the record goes before the devices": defect(
        "ALLOC-22",
        "22_a_release_is_idempotent_over_every_mishap",
        (
            RECORDED,
            "            if remaining := steps.give_back():\n",
            "            journal.delete()\n            if remaining := steps.give_back():\n",
        ),
    ),
    "nothing is rejected beforehand": defect(
        "ALLOC-23",
        "23_what_is_not_claimed_is_refused_by_name",
        (PLANNING, "*allocation_rejections(requests, capabilities), ", ""),
    ),
    "a manager is taken for granted": defect(
        "ALLOC-24",
        "24_a_core_that_is_stable_implies_no_gate",
        (
            BACKEND,
            "if settings.uses(Strategy.MANAGED_MIG) and MIG_MANAGER_FACT in environment:\n"
            "            matrix.append((str(Feature.DYNAMIC_MIG), environment[MIG_MANAGER_FACT]))",
            "if settings.uses(Strategy.MANAGED_MIG):\n"
            '            matrix.append((str(Feature.DYNAMIC_MIG), environment.get(MIG_MANAGER_FACT, "")))',
        ),
    ),
    "sharing is claimed where no host is shared": defect(
        "ALLOC-25",
        "25_sharers_never_have_more_than_the_device",
        (
            BACKEND,
            "cooperative_sharing=settings.uses(Strategy.TIME_SLICING, Strategy.MPS)",
            "cooperative_sharing=True",
        ),
    ),
    "a whole card passes for a slice": defect(
        "ALLOC-26",
        "26_accounting_is_never_taken_for_isolation",
        (TERMS, "Sharing.ISOLATED_MIG: Kind.SLICE", "Sharing.ISOLATED_MIG: Kind.WHOLE"),
    ),
    "a card in use is cut": defect(
        "ALLOC-28",
        "28_a_card_with_slices_in_use_is_not_cut",
        (
            PLANNING,
            "    idle = not any((snapshot.used or {}).get(host.name, {}).values())\n",
            "    idle = True\n",
        ),
        (
            PLANNING,
            "    users = snapshot.users(host)\n",
            "    users = dict.fromkeys(snapshot.users(host), 0)\n",
        ),
    ),
    "what was asked is told as one": defect(
        "ALLOC-30",
        "30_desired_admitted_and_ready_are_three_numbers",
        (SEEING, "alone, len(devices), POLICY)", "alone, 1, POLICY)"),
    ),
    "constraints are dropped": defect(
        "ALLOC-31",
        "31_hard_constraints_are_kept_or_refused_and_soft_ones_stay_soft",
        (PLANNING, "in request.constraints if rule.operator in OPERATORS)", "in request.constraints[:0])"),
    ),
    "a default is passed over": defect(
        "ALLOC-34",
        "34_a_default_is_said_to_be_one",
        (TERMS, "        if provenance is not Provenance.EXPLICIT\n", "        if provenance is None\n"),
    ),
}
