"""What the steps of a claim are called, how far a claim comes, and how a step ends otherwise than asked."""

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from videoflow.backends.allocation import DeviceIdentity, Elasticity, FeasiblePlan, WorkloadRequest
from videoflow.backends.outcomes import UnknownReason
from videoflow.errors import ContractBroken

DIGITS: Final = 20


class Phase(StrEnum):
    """How far a claim has come; what is in the middle can be carried on by any process."""

    OWNING = "owning"
    CHANGING = "changing"
    HELD = "held"
    ABORTING = "aborting"
    FAILED = "failed"
    RELEASING = "releasing"


UNDER_WAY: Final = frozenset({Phase.OWNING, Phase.CHANGING, Phase.ABORTING})


class Unanswered(Exception):
    """The authority did not answer, or not whole: what it holds, or whether it wrote, is unknown."""

    def __init__(self, reason: UnknownReason, said: str) -> None:
        super().__init__(said)
        self.reason = reason


class Superseded(Exception):
    """The record was moved on, or removed, by another process; this one has nothing more to do."""


class NotBegun(Exception):
    """Nothing was written for a plan; `evidence` says why."""

    def __init__(self, *evidence: str) -> None:
        super().__init__(*evidence)
        self.evidence = evidence


class Taken(Exception):
    """Somebody else owns what the claim needs, or it is not there any more."""


class Aborted(Exception):
    """The operation cannot go on, and gives back what it has."""


class Undecided(Exception):
    """The authority has not decided yet; the record says where to carry on."""


class Record(Protocol):
    """A claim as it is written down."""

    @property
    def claim_id(self) -> str:
        """Its id."""
        ...

    @property
    def plan(self) -> str:
        """Digest of the plan; its operation id is good for no other."""
        ...

    @property
    def generation(self) -> int:
        """Of what is desired."""
        ...

    @property
    def epoch(self) -> int:
        """Moved by each process that takes the claim over."""
        ...

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        ...

    @property
    def assignments(self) -> Mapping[str, tuple[DeviceIdentity, ...]]:
        """Workload → its devices."""
        ...

    def hosts(self) -> list[str]:
        """Returns the hosts that it owns something of, in the order in which it takes them."""
        ...


R = TypeVar("R", bound=Record)


class Journal(Protocol[R]):
    """The record of one claim, as this process knows it; every method raises Superseded and Unanswered."""

    record: R

    def move(self, **changes: object) -> None:
        """Writes the record with some changes, over the version that this process knows."""
        ...

    def delete(self) -> None:
        """Removes that version of the record."""
        ...


class Steps(Protocol):
    """What one claim does; each can be done again, by this process or the next.

    Every step raises Superseded where another process took the claim over, and Unanswered where the authority
    is silent: then the record says where to carry on.
    """

    def own(self) -> None:
        """Takes every device; raises Taken."""
        ...

    def look_again(self) -> None:
        """Reads who uses the devices, now that they are owned; raises Aborted, Taken, Undecided."""
        ...

    def change_geometry(self) -> None:
        """Asks for every layout, after what was there before is on record; raises Aborted, Taken."""
        ...

    def give_back(self) -> tuple[str, ...]:
        """Restores geometry, then gives up ownership; returns what is not restored yet."""
        ...

    def users(self) -> tuple[str, ...]:
        """Returns what of the claim is in use."""
        ...


def claim_name(operation_id: str, prefix: str = "claim") -> str:
    """Returns the id of the claim of an operation."""
    return f"{prefix}-{hashlib.sha256(operation_id.encode()).hexdigest()[:DIGITS]}"


def plan_digest(plan: FeasiblePlan) -> str:
    """Returns what tells a plan from every other."""
    told = (plan.plan_id, plan.snapshot_generation, dict(plan.assignments), dict(plan.geometry))
    return hashlib.sha256(repr(told).encode()).hexdigest()


def changed_by(
    assignments: Mapping[str, tuple[DeviceIdentity, ...]], desired: Sequence[WorkloadRequest]
) -> str:
    """Returns what is desired otherwise than a claim has it; empty: nothing."""
    for request in desired:
        held = assignments.get(request.workload_id)
        if held is None:
            return f"{request.workload_id} is not in this claim: reserve it"
        if len(held) != request.device_count:
            if request.elasticity is Elasticity.FIXED:
                raise ContractBroken(f"{request.workload_id} has a fixed number of devices")
            return f"{request.workload_id} has {len(held)} devices, and nothing here changes that"
    gone = set(assignments) - {request.workload_id for request in desired}
    return f"{', '.join(sorted(gone))} would lose what it has" if gone else ""
