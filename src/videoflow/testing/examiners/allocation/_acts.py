"""What the laws have in common: cards and hosts to furnish, requests to make, a claim from end to end."""

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from videoflow.backends.allocation import (
    ClaimObservation,
    ClaimStatus,
    FeasiblePlan,
    Infeasible,
    InventorySnapshot,
    ReleaseObservation,
    ReleaseStatus,
    Sharing,
    WorkloadRequest,
)
from videoflow.backends.outcomes import Known, Observation, UnknownReason
from videoflow.testing.examiners.allocation._subject import (
    Ability,
    AllocationSubject,
    FixtureCard,
    FixtureHost,
    Layout,
)

GIB: Final = 1 << 30
H100: Final = "NVIDIA H100 80GB HBM3"
H100_BYTES: Final = 81559 << 20
A100: Final = "NVIDIA A100-SXM4-40GB"
A100_BYTES: Final = 40960 << 20
NEEDS: Final = "__abilities__"
FAILURES: Final = (
    UnknownReason.TIMEOUT,
    UnknownReason.AUTH,
    UnknownReason.UNREACHABLE,
    UnknownReason.MALFORMED,
)
DONE_FOR: Final = (ClaimStatus.FAILED, ClaimStatus.PENDING)
E = TypeVar("E")
T = TypeVar("T")


def needs(
    *abilities: Ability,
) -> Callable[[Callable[[E, AllocationSubject], None]], Callable[[E, AllocationSubject], None]]:
    """Tries a test only on subjects that can set it up; the matrix tells which cannot, and why."""

    def tie(test: Callable[[E, AllocationSubject], None]) -> Callable[[E, AllocationSubject], None]:
        @functools.wraps(test)
        def tried(examiner: E, subject: AllocationSubject) -> None:
            if subject.can(*abilities):
                test(examiner, subject)

        setattr(tried, NEEDS, abilities)
        return tried

    return tie


# Fixtures and requests ----------------------------------------------------------------------------


def card(number: int, product: str = H100, slices: Layout = ()) -> FixtureCard:
    """A card of which everything is known."""
    return FixtureCard(f"GPU-{number:04d}", product, H100_BYTES if product == H100 else A100_BYTES, slices)


def host(*cards: FixtureCard, name: str = "a", **more: Any) -> FixtureHost:
    """A host."""
    return FixtureHost(name, cards, **more)


def whole(name: str = "w/0", count: int = 1, **more: Any) -> WorkloadRequest:
    """Devices of its own."""
    return WorkloadRequest("flow", "run", name, device_count=count, **more)


def piece(name: str = "w/0", gib: float = 9.0, count: int = 1, **more: Any) -> WorkloadRequest:
    """Slices with so much usable memory."""
    return WorkloadRequest(
        "flow",
        "run",
        name,
        device_count=count,
        sharing=Sharing.ISOLATED_MIG,
        minimum_usable_memory_bytes=int(gib * GIB),
        **more,
    )


def share(name: str = "w/0", gib: float = 20.0, **more: Any) -> WorkloadRequest:
    """A part of a device, by declared peak."""
    peak = int(gib * GIB)
    return WorkloadRequest(
        "flow", "run", name, sharing=Sharing.COOPERATIVE, declared_peak_memory_bytes=peak, **more
    )


# Acts ---------------------------------------------------------------------------------------------


def value(observation: Observation[T]) -> T:
    """What must be known."""
    assert isinstance(observation, Known), observation
    return observation.value


def seen(subject: AllocationSubject, process: str = "main") -> InventorySnapshot:
    """The inventory of everything."""
    return value(subject.backend(process).inventory(""))


def planned(subject: AllocationSubject, *requests: WorkloadRequest, process: str = "main") -> FeasiblePlan:
    """A plan that must be feasible."""
    plan = subject.backend(process).plan(requests, seen(subject, process))
    assert isinstance(plan, FeasiblePlan), plan
    return plan


def refused(subject: AllocationSubject, *requests: WorkloadRequest) -> str:
    """The reasons of a plan that must not be; nothing may be written for it."""
    before = subject.writes()
    plan = subject.backend().plan(requests, seen(subject))
    assert isinstance(plan, Infeasible), plan
    assert plan.reasons
    assert subject.writes() == before
    return "\n".join(plan.reasons)


def reserve(
    subject: AllocationSubject, plan: FeasiblePlan, operation: str = "op", process: str = "main"
) -> ClaimObservation:
    """Reserves a plan under the generation that it was made from."""
    return subject.backend(process).reserve(plan, operation, plan.snapshot_generation)


def claimed(
    subject: AllocationSubject, *requests: WorkloadRequest, operation: str = "op", process: str = "main"
) -> ClaimObservation:
    """A claim that must become ready."""
    claim = reserve(subject, planned(subject, *requests, process=process), operation, process)
    claim = value(subject.backend(process).observe(claim.claim_id))
    assert claim.status is ClaimStatus.READY, claim
    assert claim.grant is not None
    return claim


def release(
    subject: AllocationSubject, claim: ClaimObservation, process: str = "main", operation: str = "release"
) -> ReleaseObservation:
    """Releases a claim of the generation that was last seen."""
    return subject.backend(process).release(claim.claim_id, operation, claim.desired_generation)


def recover(subject: AllocationSubject, process: str = "janitor") -> None:
    """A fresh process that knows nothing but the scope finds every claim and releases it."""
    subject.kill(process)
    for claim in value(subject.claims(process)):
        done = release(subject, claim, process)
        assert done.status is ReleaseStatus.RELEASED, done
    subject.kill(process)


def sole(subject: AllocationSubject) -> None:
    """No device that is held for one owner alone has another."""
    owners: dict[str, set[str]] = {}
    for device, owner in (*subject.owned(), *subject.exclusive()):
        owners.setdefault(device, set()).add(owner)
    for device, owner in subject.exclusive():
        assert owners[device] == {owner}, f"{device} is held alone by {owners[device]}"


def nothing_left(subject: AllocationSubject, layouts: object) -> None:
    """No owner, no record, and every card as it was."""
    assert subject.owned() == ()
    assert subject.records() == ()
    assert subject.layouts() == layouts
