"""What a solver answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from videoflow.placement._bounds import Aim
from videoflow.placement._problem import Slice


class Label(StrEnum):
    """How much an answer proves.

    `OPTIMAL`: no answer has a better aim. `FEASIBLE`: as many demands as can be are admitted, and `gap` says
    in which later component a better answer could not be excluded. `UNPROVEN`: more demands might fit, and
    `proofs` show how many cannot.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    UNPROVEN = "unproven"


class Proof(StrEnum):
    """What a certificate rests on."""

    ALONE = "alone"
    CAPACITY = "capacity"
    WEIGHTS = "weights"
    PATTERNS = "patterns"
    EXHAUSTED = "exhausted"
    STANDING = "standing"


class Measure(StrEnum):
    """What a capacity certificate counts; of `PARTS` each card has 2 ** 20, however it is used."""

    CARDS = "cards"
    SLOTS = "slots"
    BYTES = "bytes"
    PARTS = "parts"


@dataclass(frozen=True)
class Certificate:
    """Why some demands do not fit together; `placement.check` looks it over without the solver.

    Attributes:
        proof: `ALONE`: the one demand of the core fits on no host, though all are as they were found.
            `CAPACITY`: the core needs more of a measure than all hosts have. `WEIGHTS`: the weights of the
            core are more than all cards can hold, however they are filled. `PATTERNS`: for each host, the
            largest mixes of the core's groups that it can hold, of which no choice covers the core.
            `EXHAUSTED`: the search ended without a place; only another search can confirm it.
            `STANDING`: less than all these: the one demand of the core fits on no host as long as the others
            stay where the answer places them. Only unproven refusals have it.
        core: Keys of demands that do not fit together.
        measure: Of a capacity certificate.
        needed: What the core takes of it at least, or the sum of its weights.
        room: Host → what it has of it at most.
        groups: Of a pattern certificate: the core, sorted into groups of equal demands.
        patterns: Host → mixes, each the number of demands of each group.
        weights: Demand of the core → weight of each of its devices.
        fewest: So many of the core are refused at least; `needed` is what the others need, when the largest
            are those.
    """

    proof: Proof
    core: tuple[str, ...]
    measure: Measure | None = None
    needed: int = 0
    room: tuple[tuple[str, int], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = ()
    weights: tuple[tuple[str, int], ...] = ()
    fewest: int = 1


@dataclass(frozen=True)
class Relaxation:
    """One change of one demand with which it would be admitted, beside all that are admitted.

    Attributes:
        field: Which field of the demand.
        asked: Its value now.
        fits: The value nearest to it that fits.
    """

    field: str
    asked: str
    fits: str


@dataclass(frozen=True)
class Device:
    """One device of an assignment.

    Attributes:
        card: Key of the card.
        profile: Of a slice, else None.
        start: Its first memory slot, else None.
        slice_key: Key of the existing slice that is used; empty where one is made, or none is needed.
    """

    card: str
    profile: str | None = None
    start: int | None = None
    slice_key: str = ""


@dataclass(frozen=True)
class Assignment:
    """Where a demand goes."""

    host: str
    devices: tuple[Device, ...]


@dataclass(frozen=True)
class Refusal:
    """Why a demand is not admitted.

    Attributes:
        demand: Its key.
        certificate: Why it does not fit beside those that are.
        relaxations: What would fit.
        unchecked: The fact that nobody can check, where that is the reason; else empty.
    """

    demand: str
    certificate: Certificate
    relaxations: tuple[Relaxation, ...] = ()
    unchecked: str = ""

    @property
    def proven(self) -> bool:
        """Whether it cannot be admitted beside the others, even if all of them are moved."""
        return self.certificate.proof is not Proof.STANDING


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        label: How much it proves.
        assignments: Demand → where it goes.
        refusals: The demands that go nowhere.
        layouts: Card → all its slices afterwards; only cards whose layout changes.
        aim: What was reached.
        bound: What no answer can beat.
        nodes: How many nodes the search looked at.
        proofs: Of parts of the demands that have nothing in common, so many of each are refused at least.
            Where an answer is unproven they add up to the bound or more.
    """

    label: Label
    assignments: Mapping[str, Assignment]
    refusals: tuple[Refusal, ...]
    layouts: Mapping[str, tuple[Slice, ...]]
    aim: Aim
    bound: Aim
    nodes: int
    proofs: tuple[Certificate, ...] = ()

    @property
    def gap(self) -> tuple[str, int, int] | None:
        """The first component that a better answer might improve: its name, what was reached, the bound."""
        if self.label is Label.OPTIMAL:
            return None
        return next(
            (name, reached, least)
            for name, reached, least in zip(Aim._fields, self.aim, self.bound, strict=True)
            if reached != least
        )
