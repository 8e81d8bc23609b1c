"""One defect or more for each property that the reference is held to; each is a small change of its code."""

from tests.allocation.planted import RECORDED, TERMS, Defect, defect

PACKAGE = "videoflow.backends.memory.allocation"
BACKEND, HOLDING, OPERATION = "_backend.py", "_holding.py", "_operation.py"
PLANNING, RECORDS, SEEING = "_planning.py", "_records.py", "_seeing.py"

BEYOND = "1_a_layout_beyond_the_card_is_refused_with_nothing_written"
STARTS = "2_slices_begin_where_the_card_allows"
RACE = "4_of_two_who_read_the_same_one_is_the_owner"
OVERTAKEN = "4_who_was_overtaken_owns_nothing_any_more"
LATE = "4_a_late_rollback_unseats_nobody"
ENDS = "6_wherever_a_reservation_ends_the_next_process_finds_it"
RESTORE = "6_a_restore_that_fails_is_on_record_and_carried_on"
READ = "7_a_read_that_failed_is_unknown_and_blocks_what_rests_on_it"
AGAIN = "7_users_that_cannot_be_read_again_end_the_operation"
STAYS = "7_what_is_busy_kept_or_unreadable_stays_owned"
FOREIGNER = "12_one_who_cannot_be_kept_out_is_seen_before_anything_changes"
TAKEN = "18_what_another_allocator_owns_or_takes_is_left_alone"
IDEMPOTENT = "22_a_release_is_idempotent_over_every_mishap"

CHECK = "            self._journal.check()\n"
READ_HOST = "            host = self._session.host(name)\n"

DEFECTS: dict[str, Defect] = {
    "a layout is only judged by the authority": defect(
        "ALLOC-1",
        BEYOND,
        (BACKEND, "model is None or not is_legal(model, layout)", "model is None"),
    ),
    "a label is taken for a size": defect(
        "ALLOC-1",
        "1_a_label_is_no_size",
        (PLANNING, "        memory_bytes=max((figure", "        memory_bytes=9 * max((figure"),
        (PLANNING, "if figure is not None), default=0),", "if figure is not None), default=0) // 10,"),
    ),
    "slots are counted and not placed": defect(
        "ALLOC-2",
        STARTS,
        (
            BACKEND,
            "not is_legal(model, layout)",
            "8 < sum(p.width for one in layout if (p := model.profile(one[0])))",
        ),
    ),
    "ownership is written over what somebody wrote meanwhile": defect(
        "ALLOC-4",
        RACE,
        (
            OPERATION,
            "replace(changed, version=host.version)",
            "replace(changed, version=now.version if (now := self._session.host(name)) else 0)",
        ),
    ),
    "the loser removes every hold": defect(
        "ALLOC-4",
        RACE,
        (HOLDING, "if hold.claim != record.claim_id or hold.epoch > record.epoch", "if False"),
    ),
    "who was overtaken is not told": defect("ALLOC-4", OVERTAKEN, (OPERATION, CHECK, "")),
    "the record is checked before the host is read": defect(
        "ALLOC-4", OVERTAKEN, (OPERATION, READ_HOST + CHECK, CHECK + READ_HOST)
    ),
    "a host of which nothing is held is not fenced": defect(
        "ALLOC-4", OVERTAKEN, (OPERATION, "(host.owner or not always)", "True")
    ),
    "the inventory may have moved": defect(
        "ALLOC-4",
        "4_where_the_inventory_moved_nothing_is_written",
        (BACKEND, "if seen.value.generation != plan.snapshot_generation:", "if not plan:"),
    ),
    "originals are not kept": defect(
        "ALLOC-6", ENDS, (OPERATION, "originals=self._layouts_now()", "originals={}")
    ),
    "originals are taken again after a restart": defect(
        "ALLOC-6", ENDS, (OPERATION, "if record.phase is Phase.OWNING:", "if record.phase:")
    ),
    "ownership comes before its record": defect(
        "ALLOC-6",
        ENDS,
        (
            BACKEND,
            "        return Journal.begin(self._session, self._record(plan, claim_id))\n",
            "        record = self._record(plan, claim_id)\n"
            "        for name in record.hosts():\n"
            "            from videoflow.backends.memory.allocation._holding import owned\n"
            "            found = self._session.host(name)\n"
            '            self._session.replace_host(owned(found, record), "own")\n'
            "        return Journal.begin(self._session, record)\n",
        ),
    ),
    "what is not restored is forgotten": defect(
        "ALLOC-6",
        RESTORE,
        (RECORDED, "if remaining := steps.give_back():", "if (remaining := steps.give_back()) and 0:"),
    ),
    "ownership is given up before geometry is restored": defect(
        "ALLOC-6", RESTORE, (OPERATION, "            return tuple(remaining)\n", "            pass\n")
    ),
    "a list of hosts that was cut short is taken for all": defect(
        "ALLOC-7", READ, (SEEING, "if not hosts.whole:", "if False:")
    ),
    "unread users are no users": defect(
        "ALLOC-7", READ, (SEEING, "Completeness.COMPLETE if read else Completeness.PARTIAL", '"complete"')
    ),
    "users that cannot be read again are none": defect(
        "ALLOC-7 ALLOC-12",
        AGAIN,
        (
            RECORDED,
            '        raise Aborted(f"occupancy cannot be read again: {error}") from error\n',
            "        return\n",
        ),
    ),
    "a cut list of users is taken for all of them": defect(
        "ALLOC-7",
        STAYS,
        (OPERATION, "        if not page.whole:\n", "        if False:\n"),
    ),
    "a kept workload is no reason": defect(
        "ALLOC-7", STAYS, (RECORDED, "            if keep_workloads:\n", "            if False:\n")
    ),
    "kind is taken from the first host": defect(
        "ALLOC-8",
        "8_capacity_is_that_of_the_hosts_that_were_classified",
        (
            PLANNING,
            'sharing = snapshot.sharing.get(node, "unknown")',
            'sharing = next(iter(snapshot.sharing.values()), "unknown")',
        ),
    ),
    "nobody is told why a host was left out": defect(
        "ALLOC-8",
        "8_capacity_is_that_of_the_hosts_that_were_classified",
        (PLANNING, "if found is not None and not found.assignments and problem.demands:", "if not problem:"),
    ),
    "sharers by MPS have devices of their own": defect(
        "ALLOC-9",
        "9_only_physical_evidence_gives_whole_devices",
        (
            PLANNING,
            "        sharing=sharing,\n",
            '        sharing="physical" if sharing == "mps" else sharing,\n',
        ),
    ),
    "a plan is remembered": defect(
        "ALLOC-11",
        "11_a_plan_is_a_value_and_nothing_leaks_into_the_next",
        (BACKEND, "        return plan_for(", '        return vars(self).setdefault("kept", plan_for('),
        (BACKEND, "self._managed)\n\n    def bindings", "self._managed))\n\n    def bindings"),
    ),
    "nobody looks again": defect("ALLOC-12", FOREIGNER, (RECORDED, "                _look(steps)\n", "")),
    "who uses it is read before it is owned": defect(
        "ALLOC-12",
        FOREIGNER,
        (
            RECORDED,
            "                steps.own()\n                _look(steps)\n",
            "                _look(steps)\n                steps.own()\n",
        ),
    ),
    "fewer will do": defect(
        "ALLOC-14",
        "14_nothing_is_planned_short",
        (PLANNING, "        count=request.device_count,\n", "        count=min(request.device_count, 2),\n"),
    ),
    "a host that cannot be read has no devices": defect(
        "ALLOC-14 ALLOC-7",
        "14_a_host_that_cannot_be_read_is_not_one_without_devices",
        (
            SEEING,
            '        return unknown(error.reason, session.now(), "the hosts cannot be listed")\n',
            "        hosts = Page((), 0)\n",
        ),
    ),
    "a slice is named by its card": defect(
        "ALLOC-15",
        "15_a_mask_shows_exactly_the_devices_of_the_grant",
        (BACKEND, "device.mig_uuid or device.uuid or", "device.uuid or device.mig_uuid or"),
    ),
    "prepared slices are not seen": defect(
        "ALLOC-17",
        "17_slices_that_are_there_are_used_as_they_are",
        (PLANNING, "card, slices = devices[0], devices[1:]", "card, slices = devices[0], devices[:0]"),
    ),
    "another allocator's host is free": defect(
        "ALLOC-18", TAKEN, (PLANNING, 'f"owned by {foreign[0]}" if foreign else ""', '""')
    ),
    "a card that went to another is restored": defect(
        "ALLOC-18",
        TAKEN,
        (OPERATION, "                if card in held and asked_by", "                if asked_by"),
    ),
    "a lost claim is ready": defect(
        "ALLOC-18", TAKEN, (SEEING, "if not holds_all(host, record)]", "if host.version < 0]")
    ),
    "who has a card is not asked": defect(
        "ALLOC-18",
        "18_a_card_and_a_slice_of_it_never_have_two_owners",
        (PLANNING, "        users=users,\n", "        users=0,\n"),
    ),
    "a card and its slices are not related": defect(
        "ALLOC-18",
        "18_of_a_card_and_its_slice_one_is_given",
        (HOLDING, "for other in related for hold", "for other in (key,) for hold"),
    ),
    "any layout that was ever made is evidence": defect(
        "ALLOC-21",
        "21_allocated_prepared_and_ready_are_three_states",
        (HOLDING, "seen != entry or card.layout != layout", "not seen"),
    ),
    "what is made can be used": defect(
        "ALLOC-21",
        "21_allocated_prepared_and_ready_are_three_states",
        (SEEING, "        for advertised in (False, True)\n", "        for advertised in (False, False)\n"),
    ),
    "a claim that is gone is stale": defect(
        "ALLOC-22",
        IDEMPOTENT,
        (
            RECORDED,
            'ReleaseObservation(claim_id, ReleaseStatus.RELEASED, reason="no such',
            'ReleaseObservation(claim_id, ReleaseStatus.STALE, reason="no such',
        ),
    ),
    "the record goes before the devices": defect(
        "ALLOC-22",
        IDEMPOTENT,
        (
            RECORDED,
            "            if remaining := steps.give_back():\n",
            "            journal.delete()\n"
            "            journal = type(journal).begin(self._session, journal.record)\n"
            "            steps = self._steps(journal)\n"
            "            if remaining := steps.give_back():\n",
        ),
    ),
    "a record whose answer was lost is taken for written": defect(
        "ALLOC-22",
        IDEMPOTENT,
        (
            RECORDS,
            "            except (Conflict, Unanswered) as error:\n",
            "            except Unanswered:\n                return\n            except Conflict as error:\n",
        ),
    ),
    "ownership whose answer was lost is taken for written": defect(
        "ALLOC-6",
        ENDS,
        (
            OPERATION,
            "                silent = error\n            else:\n",
            "                return\n            else:\n",
        ),
    ),
    "the generation of a release is not looked at": defect(
        "ALLOC-22 ALLOC-7",
        STAYS,
        (
            RECORDED,
            "                return ReleaseObservation(claim_id, ReleaseStatus.STALE, reason=fenced)\n",
            "                pass\n",
        ),
    ),
    "the generation of a reconciliation is not looked at": defect(
        "ALLOC-22",
        "22_reconciling_is_fenced_by_generation",
        (RECORDED, "evidence=(EVIDENCE_STALE, fenced, *now.evidence)", "evidence=now.evidence or (fenced,)"),
    ),
    "what is not provided is tried": defect(
        "ALLOC-23",
        "23_what_is_not_claimed_is_refused_by_name",
        (PLANNING, "reasons = allocation_rejections(requests, capabilities)", "reasons = list[str]()"),
    ),
    "a core brings its gates": defect(
        "ALLOC-24",
        "24_a_core_that_is_stable_implies_no_gate",
        (BACKEND, "        if MANAGER_FACT in environment:\n", '        if "memory" in environment:\n'),
        (BACKEND, "environment[MANAGER_FACT]", 'environment["memory"]'),
    ),
    "sharers count half": defect(
        "ALLOC-25",
        "25_sharers_never_have_more_than_the_device",
        (PLANNING, "_terms(request).size_bytes or 0", "(_terms(request).size_bytes or 0) // 2"),
    ),
    "sharers do not count each other": defect(
        "ALLOC-25",
        "25_sharers_who_come_at_once_never_have_more_than_the_device",
        (
            HOLDING,
            "return memory - HEADROOM_BYTES - used - sum(hold.size_bytes or 0 for hold in holds)",
            "return memory - HEADROOM_BYTES - used - max(hold.size_bytes or 0 for hold in holds)",
        ),
    ),
    "accounting is called exclusive": defect(
        "ALLOC-26",
        "26_accounting_is_never_taken_for_isolation",
        (SEEING, "    alone = all(", "    alone = bool(names) or all("),
    ),
    "a limit that nobody enforces is taken on": defect(
        "ALLOC-26",
        "26_accounting_is_never_taken_for_isolation",
        (
            PLANNING,
            "            if request.hard_memory_limit_bytes is not None:\n",
            "            if False:\n",
        ),
    ),
    "a card is cut around who uses it": defect(
        "ALLOC-28",
        "28_a_card_with_slices_in_use_is_not_cut",
        (PLANNING, "not users and not any(busy)", "not users"),
    ),
    "every host is ours to cut": defect(
        "ALLOC-28",
        "28_a_card_with_slices_in_use_is_not_cut",
        (PLANNING, "devices, node in managed) for", "devices, True) for"),
    ),
    "desired is observed": defect(
        "ALLOC-30",
        "30_desired_admitted_and_ready_are_three_numbers",
        (
            SEEING,
            "        observed_generation=None,\n",
            "        observed_generation=str(record.generation),\n",
        ),
    ),
    "a constraint that nobody can check is dropped": defect(
        "ALLOC-31",
        "31_hard_constraints_are_kept_or_refused_and_soft_ones_stay_soft",
        (
            PLANNING,
            "            if rule.hard and (rule.key",
            "            if rule.key and not rule.key and (rule.key",
        ),
    ),
    "a preference is a condition": defect(
        "ALLOC-31",
        "31_hard_constraints_are_kept_or_refused_and_soft_ones_stay_soft",
        (
            TERMS,
            "Operator(constraint.operator), constraint.values, constraint.hard)",
            "Operator(constraint.operator), constraint.values)",
        ),
    ),
    "defaults are not said": defect(
        "ALLOC-34",
        "34_a_default_is_said_to_be_one",
        (TERMS, "        if provenance is not Provenance.EXPLICIT\n", "        if not provenance\n"),
    ),
}
