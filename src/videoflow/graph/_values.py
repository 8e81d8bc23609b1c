"""The small values that a node's author writes: items, outputs, the skip, and groups of settings.

Used in nodes and as options. They refuse nothing themselves: options are checked where a node takes them,
items and outputs where a node hands them over.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, Literal


class Skip(Enum):
    """Says "no output for this input"; its one member is `videoflow.SKIP`."""

    SKIP = "skip"

    def __repr__(self) -> str:
        return "SKIP"


SKIP = Skip.SKIP


@dataclass(frozen=True, slots=True)
class Item:
    """What a producer yields: one position of its source, with a value for each port that has one.

    Attributes:
        value: For the first port, or `SKIP`.
        offset: The producer's own position, a strictly increasing integer; after a restart `produce` is
            called with the last committed offset + 1.
        time_seconds: Event time, or None where the source has no clock of its own.
        key: Partition key that travels with everything derived from this item.
        ports: Values of other ports; a port that is not named has no output here.
    """

    value: Any
    _: KW_ONLY
    offset: int
    time_seconds: float | None = None
    key: str | None = None
    ports: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Out:
    """What a processor returns or yields to choose the port, or to set a key.

    Attributes:
        value: The output.
        port: Where it goes.
        key: Partition key for what derives from it, in place of the inherited one.
    """

    value: Any
    port: str = "out"
    _: KW_ONLY
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """How inputs are grouped for `process_batch`.

    Attributes:
        max_items: The most inputs in one call, at least 1.
        max_wait_seconds: How long the first input waits for others at most; 0: for those that are there.
        group_by: `shape` groups only inputs whose arrays, and pictures of frames, have one shape and type;
            None groups any.
    """

    max_items: int = 8
    max_wait_seconds: float = 0.02
    group_by: Literal["shape"] | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """How a replica uses its accelerators.

    Attributes:
        sharing: `exclusive` (nobody else is on the device; the default), `isolated_mig` (a MIG slice),
            `cooperative` (with others, admitted by the peaks that all of them declare), or `accounting_only`
            (with others, counted and not limited).
        peak_memory_bytes: The most memory of each device that is in use at once.
        features: What the devices must have beyond that: `peer-access` between several; `mps`,
            `dynamic-mig`, `consumable-capacity`.
        constraints: Conditions on each device, such as `product=NVIDIA L4`, `memory_bytes>=40000000000`,
            `compute_capability>=90`, `mig_profile=1g.10gb`; one that begins with `prefer ` is a preference.
    """

    sharing: str | None = None
    peak_memory_bytes: int | None = None
    features: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resources:
    """What one replica of a node needs.

    Attributes:
        cpus: Processor cores, may be a fraction.
        memory_bytes: Memory, or None where it does not matter.
        gpus: Accelerators.
        gpu_memory_bytes: Least usable memory of each.
        gpu: How they are used; None: each is the replica's own.
    """

    cpus: float = 1.0
    memory_bytes: int | None = None
    gpus: int = 0
    gpu_memory_bytes: int | None = None
    gpu: Gpu | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTime:
    """A join by event time; named for later, refused by the compiler now.

    Attributes:
        tolerance_seconds: How far apart members of a group may be.
        lateness_seconds: How long a group waits for late members.
        quorum: How many parents are enough.
    """

    tolerance_seconds: float = 0.02
    lateness_seconds: float = 0.5
    quorum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """A window over the last items or seconds; named for later, refused by the compiler now."""

    items: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tumbling:
    """Windows that follow each other; named for later, refused by the compiler now."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Windows that end with a gap; named for later, refused by the compiler now."""

    gap_seconds: float
