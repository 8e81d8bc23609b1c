"""One defect or more for each property that the allocator of one host is held to."""

from tests.allocation.planted import TERMS, Defect, defect

PACKAGE = "videoflow.deploy.allocation_local"
BACKEND, BINDINGS, CLAIMS, INVENTORY = "_backend.py", "_bindings.py", "_claims.py", "_inventory.py"
LEDGER, PLANNING = "_ledger.py", "_planning.py"

WITHOUT_VERSION = (
    LEDGER,
    "return Change(key, value, book.versions.get(key, ABSENT))",
    "return Change(key, value, None)",
)

DEFECTS: dict[str, Defect] = {
    "whoever asks for a slice gets a card": defect(
        "ALLOC-1",
        "1_a_layout_beyond_the_card_is_refused_with_nothing_written",
        (TERMS, "Sharing.ISOLATED_MIG: Kind.SLICE", "Sharing.ISOLATED_MIG: Kind.WHOLE"),
    ),
    "a small slice will do where a card would have to be cut anew": defect(
        "ALLOC-28",
        "28_a_card_with_slices_in_use_is_not_cut",
        (PLANNING, "usable_bytes=device.memory_bytes or 0", "usable_bytes=1 << 40"),
    ),
    "shares are written over what somebody wrote meanwhile": defect(
        "ALLOC-4", "4_of_two_who_read_the_same_one_is_the_owner", WITHOUT_VERSION
    ),
    "who wakes late writes all the same": defect(
        "ALLOC-4", "4_a_late_rollback_unseats_nobody", WITHOUT_VERSION
    ),
    "a plan of an inventory that moved is carried out": defect(
        "ALLOC-4",
        "4_where_the_inventory_moved_nothing_is_written",
        (BACKEND, "or snapshot.value.generation != expected_generation", "or False"),
    ),
    "an answer that was lost is taken for a refusal": defect(
        "ALLOC-6",
        "6_wherever_a_reservation_ends_the_next_process_finds_it",
        (BACKEND, "_ATTEMPTS = 5", "_ATTEMPTS = 1"),
    ),
    "what could not be read admits": defect(
        "ALLOC-7",
        "7_a_read_that_failed_is_unknown_and_blocks_what_rests_on_it",
        (INVENTORY, "Completeness.PARTIAL if problems", "Completeness.COMPLETE if problems"),
    ),
    "users that cannot be read again are none": defect(
        "ALLOC-7",
        "7_users_that_cannot_be_read_again_end_the_operation",
        (BACKEND, "        if device.problems:\n", "        if False:\n"),
    ),
    "busy devices are given back": defect(
        "ALLOC-7", "7_what_is_busy_kept_or_unreadable_stays_owned", (BACKEND, "if busy.value:", "if False:")
    ),
    "an MPS server is no sharing": defect(
        "ALLOC-9",
        "9_only_physical_evidence_gives_whole_devices",
        (INVENTORY, "_WORST_FIRST = (HostSharing.MPS, ", "_WORST_FIRST = ("),
    ),
    "missing evidence counts as whole": defect(
        "ALLOC-9",
        "9_only_physical_evidence_gives_whole_devices",
        (INVENTORY, "HostSharing.TIME_SLICED, HostSharing.UNKNOWN)", "HostSharing.TIME_SLICED)"),
    ),
    "an answer of the solver is kept for the next plan": defect(
        "ALLOC-11",
        "11_a_plan_is_a_value_and_nothing_leaks_into_the_next",
        (PLANNING, "answer = solve(problem)", "answer = _KEPT.setdefault(problem.demands, solve(problem))"),
        (PLANNING, '_PROFILE = "mig_profile"', '_PROFILE = "mig_profile"\n_KEPT = {}'),
    ),
    "nobody looks for strangers after the claim": defect(
        "ALLOC-12",
        "12_one_who_cannot_be_kept_out_is_seen_before_anything_changes",
        (BACKEND, "if strangers or (", "if False and ("),
    ),
    "a driver that does not answer has no devices": defect(
        "ALLOC-14",
        "14_a_host_that_cannot_be_read_is_not_one_without_devices",
        (
            BACKEND,
            "if isinstance(host, Unknown):\n            return host\n",
            "if isinstance(host, Unknown):\n            return known(Seen(HostReading(()), book, 0), 0)\n",
        ),
    ),
    "some of the requests are enough": defect(
        "ALLOC-14",
        "14_nothing_is_planned_short",
        (PLANNING, "if answer.refusals:", "if answer.refusals and not answer.assignments:"),
    ),
    "a mask names devices by what several begin with": defect(
        "ALLOC-15",
        "15_a_mask_shows_exactly_the_devices_of_the_grant",
        (BINDINGS, "[str(found) for found in ids]", "[str(found)[:5] for found in ids]"),
    ),
    "slices that are there are left alone": defect(
        "ALLOC-17",
        "17_slices_that_are_there_are_used_as_they_are",
        (PLANNING, "busy=users > 0", "busy=True"),
    ),
    "what is held is free for the next": defect(
        "ALLOC-18",
        "18_a_card_and_a_slice_of_it_never_have_two_owners",
        (PLANNING, "users=users,", "users=0,"),
        (PLANNING, "locked=any(share.exclusive for share in snapshot.shares.get(key, ()))", "locked=False"),
    ),
    "the same operation claims anew": defect(
        "ALLOC-22",
        "22_the_same_operation_is_done_once_by_any_process",
        (BACKEND, "            if standing is not None:\n", "            if False:\n"),
    ),
    "a second release is no release": defect(
        "ALLOC-22",
        "22_a_release_is_idempotent_over_every_mishap",
        (
            BACKEND,
            "return ReleaseObservation(claim_id, ReleaseStatus.RELEASED)\n            if claim.generation",
            "return ReleaseObservation(claim_id, ReleaseStatus.STALE)\n            if claim.generation",
        ),
    ),
    "a ledger that cannot be read holds nothing": defect(
        "ALLOC-22",
        "22_a_claim_that_nobody_knows_is_released_after_a_look",
        (
            BACKEND,
            'claim_id, ReleaseStatus.PENDING_RECOVERY, reason=f"the ledger: {book.detail}"',
            'claim_id, ReleaseStatus.RELEASED, reason=f"the ledger: {book.detail}"',
        ),
    ),
    "an older generation reconciles": defect(
        "ALLOC-22",
        "22_reconciling_is_fenced_by_generation",
        (
            BACKEND,
            "if claim.generation != expected_generation:\n            return observation",
            "if False:\n            return observation",
        ),
    ),
    "what nobody provides is passed over": defect(
        "ALLOC-23",
        "23_what_is_not_claimed_is_refused_by_name",
        (
            PLANNING,
            "refused = allocation_rejections(requests, capabilities_of(settings.policy))",
            "refused = list[str]()",
        ),
    ),
    "peaks of other claims are forgotten": defect(
        "ALLOC-25",
        "25_sharers_never_have_more_than_the_device",
        (CLAIMS, "promised = peak(request) if strict and not exclusive else 0", "promised = 0"),
    ),
    "a sharer is told that it is alone": defect(
        "ALLOC-26",
        "26_accounting_is_never_taken_for_isolation",
        (BINDINGS, " and modes <= {Sharing.EXCLUSIVE, Sharing.ISOLATED_MIG}", ""),
    ),
    "ready is without evidence": defect(
        "ALLOC-30",
        "30_desired_admitted_and_ready_are_three_numbers",
        (CLAIMS, "observed_generation=claim.generation if ready else None", "observed_generation=None"),
    ),
    "hard constraints are wishes": defect(
        "ALLOC-31",
        "31_hard_constraints_are_kept_or_refused_and_soft_ones_stay_soft",
        (PLANNING, "constraint.values, constraint.hard)", "constraint.values, False)"),
    ),
    "defaults pass for what was asked": defect(
        "ALLOC-34", "34_a_default_is_said_to_be_one", (PLANNING, "*_defaults(requests), ", "")
    ),
}
