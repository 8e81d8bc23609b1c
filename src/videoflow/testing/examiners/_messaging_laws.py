"""The laws of messaging, as `videoflow.backends.messaging` states them."""

from typing import Final

from videoflow.testing.examiners._law import Law

# Making and removing ------------------------------------------------------------------------------

READ_BACK: Final = Law(
    "messaging.read-back",
    "Ensuring reads back: the same again changes nothing, a difference is made or refused field by field.",
    "compare every field of what stands with what was asked for; never take 'exists' on trust",
    ("M6", "R19"),
)
UNCLAIMED: Final = Law(
    "messaging.unclaimed",
    "What the capabilities do not claim is refused by name, and nothing is made.",
    "raise IncompatibleProfile with one Miss for each guarantee before anything is created",
    ("M1", "M5"),
)
NOT_EMPTY: Final = Law(
    "messaging.not-empty",
    "What nobody made is Unknown or an UnknownName, never empty, zero or done.",
    "return unknown(...) from observations and raise UnknownName from calls on names that were not made",
    ("M12", "R9"),
)
OWNED: Final = Law(
    "messaging.owned",
    "Closing removes exactly what carries the labels, and says what it removed and what remains.",
    "match each label for equality, never by prefix; take inventory after removing",
    ("M19", "M26"),
)
KEPT_FOR_ALL: Final = Law(
    "messaging.kept-for-all",
    "An accepted item is kept for each listed reader until that reader settles it, there or not yet.",
    "keep one settlement per reader and item, and remove an item only when the last one is there",
    ("M2", "M4", "M5", "M7"),
)

# Publishing ---------------------------------------------------------------------------------------

TRUE_OUTCOME: Final = Law(
    "messaging.true-outcome",
    "Accepted means stored, in order and unchanged; anything else leaves the channel as it was.",
    "say Accepted only after the store has it; give sequences in the order of the call",
    ("M13", "M14", "R13"),
)
ROOM: Final = Law(
    "messaging.room",
    "A full channel blocks and then is Rejected(full); room is counted in items and bytes, per partition.",
    "count what some reliable reader has not settled; never drop a reliable item for room",
    ("M2", "R26"),
)
DEADLINE: Final = Law(
    "messaging.deadline",
    "Nothing is sent later than its deadline; what was given up, and what waited behind it, is never sent.",
    "take what is past its deadline out of the queue with all that stands behind it",
    ("M13",),
)
WHOLE: Final = Law(
    "messaging.whole",
    "Where atomic_append is claimed, the envelopes of one statement are accepted all or none.",
    "reserve room for all envelopes of a statement, in all partitions, before the first is appended",
    (),
)
NO_ROOM_NEEDED: Final = Law(
    "messaging.no-room-needed",
    "Skips, notices and terminators take neither room nor credit, and never wait for either.",
    "count data envelopes only; append the rest whatever is full",
    (),
)
FIRST_WINS: Final = Law(
    "messaging.first-wins",
    "A statement for a trace that was announced is a duplicate, whoever says it and however long ago.",
    "ask the announced coverage before anything else; do not keep a list or a window of ids",
    ("M4", "M14", "R13", "R15"),
)
WRITERS_FENCED: Final = Law(
    "messaging.writers-fenced",
    "What an older epoch of a writer slot says is Rejected(stale).",
    "keep the greatest epoch of each slot and refuse lesser ones, terminators included",
    ("R23",),
)
ENDS: Final = Law(
    "messaging.ends",
    "The first terminator of a slot lies above all it said, stands, and ends what it may say; others go on.",
    "stamp the end with the next sequence, keep the first kind, test for duplicates before Rejected(sealed)",
    ("R7", "R10"),
)

# Reading ------------------------------------------------------------------------------------------

ONE_HOLDER: Final = Law(
    "messaging.one-holder",
    "Replicas of one subscription never hold a lease on the same message at once.",
    "record the lease in the same step that hands the message out",
    ("M4",),
)
CREDIT: Final = Law(
    "messaging.credit",
    "What is leased stays within the credit, in items and bytes; one over-size item may pass alone.",
    "count leased data items and their size_bytes per subscription, and stop before one would exceed it",
    ("M17", "R24"),
)
SPREAD: Final = Law(
    "messaging.spread",
    "Where gated_dispatch is claimed, no item is dispatched a spread or more beyond the oldest unsettled.",
    "number dispatches and hold back those that lie W or more above the oldest that is not settled",
    ("R24",),
)
COMES_BACK: Final = Law(
    "messaging.comes-back",
    "What a dead holder held comes back at once, before what nobody had, with a greater transport count.",
    "on release_owner return its leases to the front in order, and add one to their count",
    ("M4", "M7", "R1"),
)
UNCHARGED: Final = Law(
    "messaging.uncharged",
    "What is handed back comes back uncharged; handing back what is not yours any more does nothing.",
    "keep the transport count, and judge the generation of the token first",
    (),
)
STALE_TOKENS: Final = Law(
    "messaging.stale-tokens",
    "A superseded token is SettleStale, with the live count and generation, and changes nothing.",
    "compare the generation of the token with that of the lease before anything is settled",
    ("M4", "P21"),
)
SETTLED_ONCE: Final = Law(
    "messaging.settled-once",
    "Settling again is confirmed with the same receipt, and is once.",
    "make the receipt from the message and not from the call; keep what is settled until it is pruned",
    ("M14",),
)
SETTLED_WHOLE: Final = Law(
    "messaging.settled-whole",
    "Where atomic_settle is claimed, the tokens of one call are settled all or none.",
    "judge all tokens before the first is settled; beside a stale one the live ones are SettleUnknown",
    (),
)
RETRY: Final = Law(
    "messaging.retry",
    "Retry brings an item back after its delay, uncharged; a Terminal names a record; a wrong use raises.",
    "keep the delayed item leased to nobody; refuse Retry on exclusive subscriptions and an empty record",
    ("M9",),
)
WAKES: Final = Law(
    "messaging.wakes",
    "Who waits is woken by what it waits for, by a status that moved on and by interrupt; calls never poll.",
    "make the waitable ready from the other side of the event, and wait in Clock.wait only",
    (),
)
ORDERED: Final = Law(
    "messaging.ordered",
    "An exclusive reader gets what is unsettled after its position, in order, what it holds included.",
    "answer from the log by position, so that a lost answer can be asked for again at no cost",
    ("R21",),
)
OWNERS_FENCED: Final = Law(
    "messaging.owners-fenced",
    "One epoch owns a partition; an older one cannot acquire, receive or settle.",
    "compare the epoch on each call, and give what the old owner held to the new one, charged",
    ("R23", "P21"),
)
FLOORS: Final = Law(
    "messaging.floors",
    "Acquisition returns the settled floors and what the reader settled, and delivery starts above.",
    "compute the floor per slot from settlements; a tombstone that waits is not settled by the reader",
    ("R22",),
)

# What becomes of items ----------------------------------------------------------------------------

NEWEST: Final = Law(
    "messaging.newest",
    "A live reader keeps the newest of each key up to its capacity; older ones are evicted within their key.",
    "evict only waiting items of the same key, oldest first, and never what is leased",
    ("M3", "P12"),
)
TOMBSTONES: Final = Law(
    "messaging.tombstones",
    "What was evicted or expired arrives once, as a skip with its cause and without a body, in its place.",
    "replace the item by its ordinal in a skip; join neighbours of one origin and cause",
    ("M3", "M15"),
)
NEVER_BLOCKS: Final = Law(
    "messaging.never-blocks",
    "A live reader never makes a writer wait, and never takes from a reliable one.",
    "count room over reliable readers only; keep an item for them when a live reader has dropped it",
    ("M2", "V3"),
)
BROADCAST: Final = Law(
    "messaging.broadcast",
    "A subscription with a slot is one replica's own: it is handed every item, and nothing but items.",
    "keep one subscription for each slot; note skips in its ledger as they are appended; leave no tombstone",
    (),
)
UNHINDERED: Final = Law(
    "messaging.broadcast-unhindered",
    "A broadcast never makes its writer wait, whether its reader lives, lags, is dead or was never there.",
    "drop the oldest item that nobody holds, note it in the ledger, and count it in no room",
    ("M2", "V3"),
)
AGE: Final = Law(
    "messaging.age",
    "Nothing older than max_age_seconds is handed out for the first time.",
    "judge the age at the lease, by the clock of the adapter",
    ("M3",),
)
LEDGER: Final = Law(
    "messaging.ledger",
    "Both ends of the ledger say of each trace how it ended, once, in the step in which it did.",
    "close the trace in the coverage together with the append, the eviction or the settlement",
    ("M15", "V13"),
)
BOUNDED: Final = Law(
    "messaging.bounded",
    "What is kept is bounded by what is open, however long the run.",
    "keep intervals instead of ids, and drop what is settled by all",
    ("M26", "V14"),
)
COMPLETION: Final = Law(
    "messaging.completion",
    "Drained: every slot ended and all was handed out; finished: all of it settled; an abort is seen.",
    "judge both from the terminators and the unsettled items, never from silence",
    ("R7", "R9", "R10"),
)

# Payloads -----------------------------------------------------------------------------------------

LOG_HOLDS: Final = Law(
    "messaging.log-holds",
    "The log holds the payloads of an item for each reader until it settled or the item was evicted.",
    "count holds per reader and entry, and let each go in the step that settles or evicts it",
    ("P4", "P5", "P7", "P12"),
)
INTENTS: Final = Law(
    "messaging.intents",
    "The writer's intent keeps an object until its publication is definite in every channel, and then ends.",
    "end intent/<publication_id> at the last Accepted, duplicates included; keep it at Rejected",
    ("P4", "P7"),
)

# Partitions ---------------------------------------------------------------------------------------

ELSEWHERE: Final = Law(
    "messaging.elsewhere",
    "A statement goes to every partition: its data to one, a notice to the others, which announces nothing.",
    "announce from the data and from skips without `elsewhere` only; settle notices as elsewhere",
    (),
)
ONE_WINDOW: Final = Law(
    "messaging.one-window",
    "The spread of a partitioned reader lies over all its partitions, by place in the channel.",
    "compare the place of an item with the least unsettled place of any partition of the same reader",
    ("R24",),
)
