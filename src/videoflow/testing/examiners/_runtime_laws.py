"""The laws of the runtime store and of the flow runtime, as `videoflow.backends.runtime` states them."""

from typing import Final

from videoflow.testing.examiners._law import Law

# The store ----------------------------------------------------------------------------------------

READS: Final = Law(
    "store.reads",
    "What is committed is read byte for byte, by key or by exact prefix, in ascending order.",
    "compare keys as text, without patterns or case folding; tell an empty value from an absent key",
    ("M12",),
)
ALL_OR_NONE: Final = Law(
    "store.all-or-none",
    "A commit applies all its changes or none; an expected version that is not there is a CONFLICT.",
    "check every expected version before the first change, under one lock or in one transaction",
    ("R3", "R22"),
)
VERSIONS: Final = Law(
    "store.versions",
    "A version is minted by each change and never used again, though the key was deleted in between.",
    "draw versions from one counter that outlives the keys",
    ("R23",),
)
ONE_WINS: Final = Law(
    "store.one-wins",
    "Of several commits that expect one version one wins; who reads sees all of a commit or nothing.",
    "make check and change one step for threads and, where shared is claimed, for processes",
    ("R10", "R23"),
)
LOGS: Final = Law(
    "store.logs",
    "A log is read in the order of its appends, numbered densely from 1, each log by itself.",
    "number under the same lock as the append",
    (),
)
KEEPS: Final = Law(
    "store.keeps",
    "What was committed stays as it was, as far as the capabilities claim, and lies in the store itself.",
    "copy what comes in and goes out; write before saying COMMITTED; claim only what a second process sees",
    ("P11", "R10"),
)
REFUSES: Final = Law(
    "store.refuses",
    "A commit that changes one key twice is refused as a broken contract, and nothing of it is applied.",
    "raise ContractBroken before the first change",
    (),
)

# The flow runtime ---------------------------------------------------------------------------------

EPOCHS: Final = Law(
    "runtime.epochs",
    "Each acquisition is a new epoch; a commit under an older one is STALE and changes nothing.",
    "compare the stored epoch in the same commit that applies the changes",
    ("R18", "R23"),
)
ONE_PREFIX: Final = Law(
    "runtime.one-prefix",
    "State, cursor, outbox, source position and mark are of one commit: all of it is found, or none.",
    "put everything of a task's commit into one commit of the store",
    ("R3", "R4", "R22", "R15"),
)
NUMBERED: Final = Law(
    "runtime.numbered",
    "A commit sent again under its number is COMMITTED and applied once; a gap is refused.",
    "keep the number with the state, and compare before applying",
    ("R3", "R13"),
)
APART: Final = Law(
    "runtime.apart",
    "Runs, tasks, partitions and nodes with different names never see each other's records.",
    "separate the parts of a key so that no name can run into the next",
    ("M19",),
)
ATTEMPTS: Final = Law(
    "runtime.attempts",
    "An input's attempts are the incarnations whose last record names it, each once.",
    "withdraw the incarnation's previous record in the commit that writes the next",
    ("M9",),
)
RISES: Final = Law(
    "runtime.rises",
    "The desired state only rises, whoever raises it and in whatever order.",
    "raise it by compare-and-swap, and return what stands",
    ("R10", "V28"),
)
ONCE: Final = Law(
    "runtime.once",
    "The first failure, a dead letter and the end are recorded once; what is said to stand is recorded.",
    "expect ABSENT, read back what stands, and send again where the answer was lost",
    ("M9", "M10", "P15", "R7"),
)
NOT_KNOWN: Final = Law(
    "runtime.not-known",
    "What could not be read or may not be written raises UnobservableState; it is never taken for absent.",
    "raise where an observation is Unknown",
    ("R9", "M12"),
)
SMALL: Final = Law(
    "runtime.small",
    "The number of records of a task does not grow with the number of its commits.",
    "overwrite the record of a task; prune what it does not need",
    ("M26",),
)
