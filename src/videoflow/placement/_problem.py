"""What is to be placed, and where: plain values that a backend fills from its inventory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from videoflow.placement._catalogue import CardModel

GIB = 1 << 30


class Kind(StrEnum):
    """What one device of a demand is."""

    WHOLE = "whole"
    SLICE = "slice"
    SHARE = "share"


class Operator(StrEnum):
    """How a rule compares; `GT`, `GE`, `LT` and `LE` read both sides as whole numbers."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    GE = "Ge"
    LT = "Lt"
    LE = "Le"


@dataclass(frozen=True)
class Rule:
    """A condition on a card or its host, by the name of a fact; a soft one is a preference.

    A fact that a card lacks fulfils only `NOT_IN` and `DOES_NOT_EXIST`. A hard rule on a fact that no card
    or host of the whole problem has is one that nobody can check: its demand is refused.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    hard: bool = True


@dataclass(frozen=True)
class Slice:
    """A MIG slice that is on a card now.

    Attributes:
        profile: Its profile.
        start: Its first memory slot.
        busy: Somebody uses it, so that it stays where it is.
        key: Its own id, such as a MIG UUID.
        usable_bytes: As the driver says; None: as the catalogue says.
    """

    profile: str
    start: int
    busy: bool = False
    key: str = ""
    usable_bytes: int | None = None


@dataclass(frozen=True)
class Card:
    """One GPU.

    Attributes:
        key: Its id, unique in the problem.
        memory_bytes: Usable memory of the whole card; None: could not be read.
        model: How it can be cut; None: it cannot.
        managed: Whether its layout may be changed. Where not, only slices that exist can be used.
        partitioned: MIG mode is on, slices or not; a card that has slices is so anyway.
        slices: What it is cut into now.
        users: Workloads on the whole card now, anybody's.
        locked: One of them has it for itself.
        free_bytes: Memory free for sharers before headroom; None: could not be read, so nobody shares it.
        sharers_left: How many more may share it; None: no limit but memory.
        facts: What rules may ask, by name.
    """

    key: str
    memory_bytes: int | None = None
    model: CardModel | None = None
    managed: bool = False
    partitioned: bool = False
    slices: tuple[Slice, ...] = ()
    users: int = 0
    locked: bool = False
    free_bytes: int | None = None
    sharers_left: int | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """How near two cards of one host are.

    Attributes:
        first: Key of a card.
        second: Key of another.
        distance: 0 is the best; what is known of no pair counts as `UNKNOWN_DISTANCE`.
        peer: Peer access between them was verified.
    """

    first: str
    second: str
    distance: int
    peer: bool = False


UNKNOWN_DISTANCE = 100


@dataclass(frozen=True)
class Host:
    """A host with its cards.

    Attributes:
        name: Unique in the problem.
        cards: Its cards.
        sharing: `physical`, `mig`, `time-sliced`, `mps` or `unknown`; whole cards are given only on a
            physical host, slices on a physical or MIG host, shares on a physical, time-sliced or MPS host.
        links: Between its cards.
        free_millicores: Free CPU; None: not known, so nothing that asks for CPU fits.
        free_memory_bytes: Free memory of the host; None: not known.
        excluded: Why nothing may be placed here; empty: it may.
        facts: What rules may ask, for each of its cards.
    """

    name: str
    cards: tuple[Card, ...]
    sharing: str = "physical"
    links: tuple[Link, ...] = ()
    free_millicores: int | None = None
    free_memory_bytes: int | None = None
    excluded: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Demand:
    """What one workload needs, all of it on one host.

    Attributes:
        key: Unique in the problem.
        kind: Whole cards, slices, or shares of cards.
        count: How many; whole cards and shares are of different cards.
        memory_bytes: Usable memory that each device has at least.
        peak_bytes: What a sharer uses at most on each card; only for shares.
        profiles: MIG profiles that will do, by name; empty: any with enough memory.
        peer: Its cards must have verified peer access to each other.
        rules: Conditions on each card.
        alike: Facts that its cards all have with one value.
        apart: Facts that its cards all have, each with a value of its own.
        millicores: CPU of the host.
        host_memory_bytes: Memory of the host.
    """

    key: str
    kind: Kind = Kind.WHOLE
    count: int = 1
    memory_bytes: int = 0
    peak_bytes: int = 0
    profiles: tuple[str, ...] = ()
    peer: bool = False
    rules: tuple[Rule, ...] = ()
    alike: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    millicores: int = 0
    host_memory_bytes: int = 0


@dataclass(frozen=True)
class Problem:
    """Demands and hosts.

    Attributes:
        hosts: Where.
        demands: What.
        headroom_bytes: Kept free on each shared card.
    """

    hosts: tuple[Host, ...]
    demands: tuple[Demand, ...]
    headroom_bytes: int = GIB
