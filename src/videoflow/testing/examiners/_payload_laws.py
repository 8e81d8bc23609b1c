"""The laws of the payload store, as `videoflow.backends.payload` states them."""

from typing import Final

from videoflow.testing.examiners._law import Law

INTACT: Final = Law(
    "payload.intact",
    "What was sealed is read byte for byte, read-only, and lies in the store itself.",
    "write before returning the reference; hand out read-only memory",
    ("P1", "P11"),
)
SEALED: Final = Law(
    "payload.sealed",
    "A pending object is seen by nobody until it is sealed, once; an abandoned one leaves nothing.",
    "list and read sealed objects only; make a second seal an UnknownName and a second abandon nothing",
    ("P7",),
)
BACKPRESSURE: Final = Law(
    "payload.backpressure",
    "A full store gives None until the deadline and changes nothing; room comes with the last claim.",
    "return None instead of raising or evicting; wake who waits when an object goes",
    ("P12",),
)
REFUSED: Final = Law(
    "payload.refused",
    "What can never fit, or a retention that nothing gives, is refused before a byte is written.",
    "compare size, horizon, ttl and durability with what the store claims, first of all",
    ("P1", "P9", "P10"),
)
RESERVED: Final = Law(
    "payload.reserved",
    "Reserved space is its owner's alone, and a reservation that does not fit raises MemoryShort.",
    "count what others reserved and do not use as taken",
    (),
)
PINNED: Final = Law(
    "payload.pinned",
    "A read pins the bytes until it is closed or collected, or its owner is dead.",
    "let an object go only when nobody claims, holds or pins it",
    ("P4", "V15"),
)
CLAIMS: Final = Law(
    "payload.claims",
    "A claim is named: made twice it is one, released twice it is gone once, and it keeps the object.",
    "keep claims as a set of names per object, and reclaim at the last one",
    ("P5", "P21"),
)
GENERATIONS: Final = Law(
    "payload.generations",
    "A reference of another generation reads nothing, claims nothing and releases nothing.",
    "compare the generation of the reference with that of the object on every call",
    ("P21",),
)
RECEIPTS: Final = Law(
    "payload.receipts",
    "A reader's claim ends only with the receipt of its settlement; intents, pins and records without.",
    "raise ContractBroken for a reader's claim without a receipt",
    ("P4",),
)
RECONCILED: Final = Law(
    "payload.reconciled",
    "A ledger speaks for its families only: what it names stays, what it leaves out ends, the rest is kept.",
    "leave claims of families that the ledger does not hold, and of other workers, as they are",
    ("P7", "P21"),
)
LOST: Final = Law(
    "payload.lost",
    "A read says bytes, Missing, Corrupt or TransientFailure, never None and never other bytes.",
    "return Missing only for what is gone for good; check the digest that is claimed",
    ("P2", "M10"),
)
KNOWN: Final = Law(
    "payload.known",
    "The inventory and the free space are what is there, or Unknown.",
    "count from the store and not from what this object remembers",
    ("P12", "M12"),
)
