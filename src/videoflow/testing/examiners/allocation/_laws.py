"""The laws of allocation, as `videoflow.backends.allocation` states them."""

from typing import Final

from videoflow.testing.examiners import Law

READS: Final = Law(
    "allocation.reads",
    "What could not be read whole is unknown: never empty, idle, free or done.",
    "return Unknown for the primary listing, a partial snapshot for a secondary; a list may be cut short",
    ("ALLOC-7", "ALLOC-14"),
)
PURE: Final = Law(
    "allocation.pure-plans",
    "A plan is a pure value of requests and snapshot; nothing that was seen or planned before leaks into it.",
    "keep no cache between calls of `plan`, and hand out no object that a later plan is made from",
    ("ALLOC-11",),
)
GEOMETRY: Final = Law(
    "allocation.geometry",
    "Only layouts that a card can have are planned or made, by slots and start positions, judged elsewhere.",
    "check every layout against legal placements before the first write, also that of a plan from outside",
    ("ALLOC-1", "ALLOC-2", "ALLOC-17", "ALLOC-28"),
)
ELIGIBLE: Final = Law(
    "allocation.eligible-hosts",
    "Kind and capacity are taken from the same eligible hosts; only physical evidence gives whole devices.",
    "drop a host once, before anything is counted; treat missing or mixed evidence as unknown",
    ("ALLOC-8", "ALLOC-9"),
)
ALL_OR_NONE: Final = Law(
    "allocation.all-or-none",
    "All that is asked for is planned and granted, or nothing is, and why is said.",
    "never shorten a request; return Infeasible",
    ("ALLOC-14", "ALLOC-30"),
)
REFUSED: Final = Law(
    "allocation.refused-by-name",
    "What is not claimed, not enforceable or not checkable is refused by its name before any write.",
    "begin `plan` with `allocation_rejections`; refuse hard constraints on facts that you do not read",
    ("ALLOC-23", "ALLOC-24", "ALLOC-26", "ALLOC-31"),
)
SAID: Final = Law(
    "allocation.defaults-are-said",
    "A count or a size that nobody gave is marked as a default, with where it comes from.",
    "tell every figure whose provenance is not explicit in the notes of the plan",
    ("ALLOC-34",),
)
POLICY: Final = Law(
    "allocation.policy",
    "What is shared never exceeds the memory of the device less what is kept free.",
    "count declared peaks of all who are on a device, also those of other claims and of foreigners",
    ("ALLOC-25", "ALLOC-26"),
)
ONE_OWNER: Final = Law(
    "allocation.one-owner",
    "A device has one owner and one allocator; whoever was first keeps it, and no late rollback unseats it.",
    "write ownership under the version that you read; undo only what carries your own epoch",
    ("ALLOC-4", "ALLOC-18"),
)
ONCE: Final = Law(
    "allocation.once",
    "An operation is done once per operation id; where the inventory moved, nothing is written.",
    "derive the claim's name from the operation id and look for it first; then compare generations",
    ("ALLOC-4", "ALLOC-22"),
)
LOOKS_AGAIN: Final = Law(
    "allocation.looks-again",
    "Who uses a device is read again after it is owned and before its geometry changes; or it is given back.",
    "own, then list the users, then change; abort when a list is not whole or names somebody",
    ("ALLOC-12", "ALLOC-7"),
)
EVIDENCE: Final = Law(
    "allocation.evidence",
    "Allocated, prepared and ready are told apart, each by evidence of this operation.",
    "ask for geometry under a name of this claim and epoch, and believe only marks that carry it",
    ("ALLOC-21", "ALLOC-30"),
)
DURABLE: Final = Law(
    "allocation.durable",
    "Wherever a process ends, the next one finds its claim by listing and carries on or gives it back.",
    "write the record before the first ownership and remove it after the last; keep the originals in it",
    ("ALLOC-6", "ALLOC-22"),
)
RELEASE: Final = Law(
    "allocation.release",
    "A release is idempotent and fenced; what is busy, kept or unreadable stays owned, as it is.",
    "compare the generation first; read the users; restore geometry; only then give up ownership",
    ("ALLOC-6", "ALLOC-7", "ALLOC-22"),
)
BINDINGS: Final = Law(
    "allocation.bindings",
    "A workload sees exactly the devices of its grant, and none before they are ready.",
    "name devices by one kind of id; refuse bindings of a claim that holds nothing",
    ("ALLOC-15", "ALLOC-20"),
)
