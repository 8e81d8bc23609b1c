"""The properties that one machine is held to, each with its tests and the defects by which these are tried.

Used by the page of properties and its test. Laws of the contracts name their properties themselves; here
stands what else there is.
"""

from dataclasses import dataclass

CORE, PARTITIONS = "tests/worker/test_core.py::", "tests/worker/test_partitions.py::"
SINKS, RULES = "tests/worker/test_fused_sinks.py::", "tests/promises/test_rules.py::"
UNREAD, TRAFFIC = "tests/worker/test_undecodable.py::", "tests/worker/test_payload_traffic.py::"
LOCAL, THREADS = "tests/engines/test_local.py::", "tests/engines/test_threads.py::"
WATCHING, LEDGER = "tests/engines/test_watching_over.py::", "tests/promises/test_planted_ledger.py::"
REPLAY, GATHERED = "tests/state/test_replay.py::", "tests/state/test_replay_gathered.py::"
RESUME, KEYS = "tests/state/test_resume.py::", "tests/state/test_effect_keys.py::"
SIMULATED_COSTS = "tests/simulation/test_fused_by_cost.py::"
FUSED, CHAINS = "tests/engines/test_measured_fusing.py::", "tests/planner/test_fusing.py::"
TASKS, REQUIRING = "tests/planner/test_tasks.py::", "tests/planner/test_requiring.py::"
REFUSALS, AUDIT = "tests/planner/test_refusals.py::", "tests/planner/test_audit.py::"
LETTERS, PASSING = "tests/cli/test_dead_letters.py::", "tests/adapters/test_shm_passing_on.py::"
BATCHES = "tests/worker/test_batching.py::"
PROCESSES, SIMULATION = "tests/adapters/test_shm_processes.py::", "tests/simulation/test_simulation.py::"
CRASHES = CORE + "test_whatever_dies_nothing_is_lost_or_said_twice"
RANDOM = SIMULATION + "test_random_graphs_keep_every_promise"


@dataclass(frozen=True)
class Property:
    """What is promised, and what shows that it is kept, beside the laws.

    Attributes:
        says: The promise, as far as one machine is concerned.
        tests: Files and names.
        defects: Names of planted defects that these tests notice.
        not_here: Why there is nothing of it on one machine; then there are neither tests nor defects.
    """

    says: str
    tests: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    not_here: str = ""


_SERVERS = "there is no server whose loss could be survived"
_SCALER = "nothing scales on one machine: replicas are those of the plan for as long as the run lasts"

MESSAGING = {
    "M1": Property(
        "What a plan asks and the backends do not give is refused before anything is made.",
        (REFUSALS + "test_what_is_asked_in_vain_is_refused_before_anything_starts",),
        ("a store that evicts is taken", "planning looks at the disk"),
    ),
    "M2": Property("A live reader beside it costs a lossless one nothing."),
    "M3": Property("A live edge keeps the newest of each key, within its bounds, and counts the rest."),
    "M4": Property(
        "Each reader is given each item once, however many replicas share it and whichever dies.",
        (CRASHES, RANDOM),
        ("a repeated statement is not recognised", "a dead owner's leases are not returned"),
    ),
    "M5": Property(
        "A run that could not be set up has not begun.", (AUDIT + "test_a_refused_run_has_made_nothing",)
    ),
    "M6": Property("What is there already is read back and compared, never trusted for its name."),
    "M7": Property("What was published while nobody read, or was held by the dead, is given out."),
    "M9": Property(
        "An input is put aside once, also where the worker dies or the store is silent in between.",
        (CORE + "test_what_was_put_aside_is_settled_as_that_whatever_dies",),
        ("a dead letter makes no skip", "attempts of a suspect are not recorded"),
    ),
    "M10": Property(
        "Bytes that nobody can decode are put aside as they came; a store that is silent is waited for.",
        (
            UNREAD + "test_what_cannot_be_decoded_is_put_aside_once_and_the_rest_passes",
            UNREAD + "test_a_hiccup_of_the_store_is_waited_for_however_long_it_lasts",
        ),
        ("what cannot be decoded is not kept", "a hiccup of the store passes for lost bytes"),
    ),
    "M12": Property("Empty, unknown, and held by somebody are three answers."),
    "M13": Property("What was given up at its deadline is never sent afterwards."),
    "M14": Property("A lost answer is no refusal, and a repetition is recognised."),
    "M15": Property(
        "What a live edge lost is counted as lost.",
        (LEDGER + "test_a_drop_that_nobody_counts_is_noticed",),
        ("what was dropped counts as settled by its reader",),
    ),
    "M17": Property("As many inputs are in work as there are replicas, and prefetch has its bound."),
    "M19": Property("Different names are different channels, runs and records."),
    "M22": Property("Accepted work outlives servers.", not_here=_SERVERS),
    "M23": Property("Without a majority nothing is called durable.", not_here=_SERVERS),
    "M26": Property("What a channel or a task keeps does not grow with the run, and goes with it."),
}

PAYLOADS = {
    "P1": Property("A large array comes out as it went in; one that can never fit is refused first."),
    "P2": Property(
        "A payload that cannot be read now is read later.",
        (UNREAD + "test_a_hiccup_of_the_store_is_waited_for_however_long_it_lasts",),
        ("a hiccup of the store passes for lost bytes",),
    ),
    "P4": Property("Bytes stay for as long as a settlement is in doubt."),
    "P5": Property("A reader lets go once, however often it settles."),
    "P7": Property(
        "Dying between storing and publishing leaves nothing behind, and nothing that was accepted is lost.",
        (RANDOM,),
        ("what is held for the log is not held", "stored outputs of a commit are given back by who dies"),
    ),
    "P9": Property("Retention that nobody can give is refused."),
    "P10": Property("A store that evicts does not certify that it keeps."),
    "P11": Property("What lasts beyond a process is said in the capabilities, and is so."),
    "P12": Property("The bytes of what was dropped come back."),
    "P15": Property(
        "Dead letters are listed and read without the payload store.",
        (LETTERS + "test_list_shows_the_newest_run_by_default", LETTERS + "test_show_tells_all_about_one"),
    ),
    "P16": Property(
        "A replay runs the node of the named letters and what is below it, with state and ids of its own.",
        (
            REPLAY + "test_the_node_and_what_is_below_it_run_and_nothing_else",
            REPLAY + "test_one_letter_from_the_command_line_with_a_folder_for_what_is_relative",
            GATHERED + "test_elements_without_a_letter_are_missing",
            GATHERED + "test_what_ran_in_a_group_is_replayed_without_it_and_with_state_of_its_own",
        ),
        (
            "a replay takes letters that nobody named",
            "a letter stands for all elements",
            "a replay keeps groups that are not whole",
            "what is missing passes for a value",
            "a replay writes over what is there",
        ),
    ),
    "P17": Property(
        "A frame that five stages pass on is stored once.",
        (
            TRAFFIC + "test_an_unchanged_frame_is_stored_once_through_five_stages",
            PASSING + "test_what_is_passed_on_stays_until_the_last_reader_is_done",
        ),
        ("each stage stores a frame anew",),
    ),
    "P19": Property(
        "A slow store keeps neither heartbeats nor orders from being heard.",
        (
            TRAFFIC + "test_heartbeats_and_orders_pass_while_a_payload_is_read_slowly",
            UNREAD + "test_a_worker_that_waits_for_bytes_can_be_ended",
        ),
        ("a slow read keeps figures from being told",),
    ),
    "P21": Property("A worker that was replaced lets go of nothing; its successor has its claims."),
    "P22": Property(
        "How often bytes are copied is reported.",
        not_here="readers of one machine share one copy; it is reported where payloads travel between hosts",
    ),
}

RUNTIME_TO_15 = {
    "R1": Property(
        "The death of a worker that holds a part of a join closes nothing.",
        (CRASHES, RANDOM),
        ("a join does not wait for all", "a restarted reader begins at the first position again"),
    ),
    "R3": Property(
        "State and outputs are of one commit, at whichever point a worker dies.",
        (RANDOM, SINKS + "test_what_a_node_keeps_is_never_ahead_of_what_the_sink_below_it_made_durable"),
        ("the outbox is not committed", "state is committed ahead of its sink"),
    ),
    "R4": Property(
        "A result that chance made is published as it was committed, or recorded.",
        (
            RULES + "test_what_is_published_is_what_was_committed_however_often_it_was_worked_out",
            PARTITIONS + "test_what_replicas_answer_by_chance_is_said_once",
        ),
        ("it publishes before it commits", "a recorded answer loses what happened inside"),
    ),
    "R6": Property(
        "What a branch did not say is a skip or None, as the node wants, and is named where it never comes.",
        (
            CORE + "test_a_skipped_branch_skips_the_group_or_is_none",
            LEDGER + "test_a_lost_item_is_missed_by_who_waits_for_it",
        ),
        ("a join ignores a skip", "lost"),
    ),
    "R7": Property(
        "A task ends when each writer has said its last, and not before.",
        (CORE + "test_outputs_of_a_stateful_task_are_committed_before_they_are_published", RANDOM),
        ("it ends before its last words", "the terminator comes before the last publication"),
    ),
    "R9": Property("What could not be read ends nothing, and makes no run complete."),
    "R10": Property(
        "An abort stays one, whatever dies and whoever asks for what.",
        (CORE + "test_a_fatal_node_aborts_what_waits_for_it_and_the_rest_drains", RANDOM),
        ("an abort ends like an end", "it ends after an abort as if nothing had happened"),
    ),
    "R11": Property(
        "A call that hangs is found, although the worker is heard of.",
        (
            WATCHING + "test_a_call_that_hangs_is_named_although_the_others_go_on",
            LOCAL + "test_a_call_beyond_its_timeout_is_ended_and_put_aside",
        ),
        ("a call may hang for a minute more",),
    ),
    "R12": Property(
        "Warming up, a long call and a quiet source are no stalls.",
        (
            WATCHING + "test_warming_up_a_long_call_and_a_quiet_source_are_no_stalls",
            LOCAL + "test_warming_up_is_no_stall",
        ),
        ("a long call is a stall", "warming up is a stall"),
    ),
    "R13": Property(
        "What is published again after a silence is the same publication.",
        (RANDOM,),
        ("a publication in doubt counts as accepted",),
    ),
    "R15": Property(
        "A source that goes on gives an item the number that it had, and leaves none out.",
        (CRASHES, RANDOM),
        ("a source commits before it publishes", "the end of a source's epoch is not said"),
    ),
}

RUNTIME_FROM_17 = {
    "R17": Property(
        "Effects happen once only where what they reach recognises a key.",
        (
            REQUIRING + "test_effects_once_in_the_whole_flow_ask_every_sink_even_one_that_no_channel_reaches",
            KEYS + "test_a_key_is_that_of_the_input_at_every_attempt_and_of_no_other",
        ),
        ("any key makes effects happen once", "a key is that of the attempt"),
    ),
    "R18": Property(
        "What needs one owner is refused with several that compete.",
        (TASKS + "test_replicas_that_cannot_compete_are_refused_with_the_reason",),
        ("replicas of a node with state compete",),
    ),
    "R19": Property(
        "How an input is partitioned stays for the run, and for one that goes on with it.",
        (RESUME + "test_what_cannot_be_resumed_is_refused_by_name",),
        ("another flow is taken for the same",),
    ),
    "R21": Property(
        "Ordered readers are given the order of the source, under delay and repetition.",
        (CORE + "test_a_fan_out_keeps_its_order_below_replicas", RANDOM),
        ("an ordered reader takes what comes",),
    ),
    "R22": Property(
        "Restored state and the place where reading goes on are of one commit.",
        (
            RANDOM,
            SINKS + "test_what_a_node_keeps_is_never_ahead_of_what_the_sink_below_it_made_durable",
            "tests/worker/test_marked_sinks.py::test_no_marker_is_lost",
        ),
        (
            "a commit covers what was not worked on",
            "state is committed ahead of its sink",
            "a marker is settled with what came before it",
        ),
    ),
    "R23": Property(
        "Only the newest owner commits and publishes.",
        (RANDOM,),
        (
            "a commit of an older epoch is taken",
            "a publication of an older epoch is taken, and sets the epoch back",
        ),
    ),
    "R24": Property("Credit is each subscription's own, and none of its replicas is starved."),
    "R26": Property(
        "That a live reader is behind is seen in what it lost, though little waits for it.",
        (LEDGER + "test_a_drop_that_nobody_counts_is_noticed",),
        ("an evicted item leaves no tombstone",),
    ),
    "R27": Property("A scaler acts on what exists.", not_here=_SCALER),
    "R28": Property("Desired, granted and ready are three numbers.", not_here=_SCALER),
    "R29": Property("A rollout at full capacity has a plan.", not_here=_SCALER),
    "R31": Property(
        "Processors and memory that nodes ask for are there, or the run is refused.",
        (
            REQUIRING + "test_a_replica_that_no_host_can_hold_is_refused_and_shared_processors_are_a_note",
            REQUIRING + "test_memory_that_nodes_ask_for_is_counted_beside_the_buffers",
        ),
        ("a host has any number of processors", "the memory of one replica is that of all"),
    ),
    "R33": Property(
        "Assets are checked where they arrive.",
        not_here="nothing is moved: workers read the files of this machine",
    ),
    "R35": Property(
        "A fused group gives the results of the nodes alone.",
        (
            CORE + "test_fused_and_unfused_make_the_same_publications",
            SINKS + "test_what_is_flushed_into_a_sink_of_the_same_task_is_made_durable",
            TASKS + "test_a_sink_with_checkpoints_is_fused_where_it_speaks_for_the_whole_task",
            FUSED + "test_a_flow_that_is_fused_by_measurement_says_the_same_under_the_same_ids",
            SIMULATED_COSTS + "test_what_is_fused_by_cost_is_called_with_the_same_under_the_same_ids",
            CHAINS + "test_what_is_separated_stays_apart_however_cheap",
        ),
        (
            "a live edge is fused",
            "what its author never wants fused is fused",
            "what is flushed into a sink stays undone",
            "a source keeps its sink from saying what is durable",
            "lost between two nodes of a task",
        ),
    ),
    "R36": Property(
        "Batches form by shape, wait no longer than they may, starve nobody, and one bad item fails alone.",
        (
            BATCHES + "test_what_is_said_of_an_input_is_what_is_said_of_it_alone",
            BATCHES + "test_a_batch_that_raises_takes_nobody_along",
            BATCHES + "test_deaths_change_nothing_and_a_suspect_is_called_alone",
            BATCHES + "test_the_oldest_goes_first_whatever_its_shape",
            BATCHES + "test_nobody_waits_longer_than_it_may",
            BATCHES + "test_nobody_waits_for_more_when_no_more_can_come",
        ),
        (
            "a batch waits for more when no more can come",
            "a bad one takes its batch along",
            "the most frequent shape goes first",
            "a batch goes with inputs of any shape",
            "results are mixed up",
            "a suspect is called with others",
            "the newest says how long a batch waits",
        ),
    ),
    "R45": Property(
        "A quantile is measured.",
        ("tests/worker/test_figures.py::test_quantiles_are_those_of_the_calls_and_not_of_their_mean",),
        ("a quantile is made of the mean",),
    ),
    "R46": Property("Demand looks at all parents.", not_here=_SCALER),
}

PROPERTIES: dict[str, Property] = {**MESSAGING, **PAYLOADS, **RUNTIME_TO_15, **RUNTIME_FROM_17}
