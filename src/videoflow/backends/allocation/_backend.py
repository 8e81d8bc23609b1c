"""The interface of an allocation backend: one authority, eight operations, and what each may not do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from videoflow.backends.allocation._types import (
    ClaimObservation,
    FeasiblePlan,
    InventorySnapshot,
    PlanOutcome,
    ReleaseObservation,
    WorkloadBindings,
    WorkloadRequest,
)
from videoflow.backends.capabilities import AllocationCapabilities
from videoflow.backends.outcomes import Observation


class AcceleratorAllocationBackend(ABC):
    """Plans, reserves, observes and releases accelerators under one authority.

    The order of a launch is `capabilities`, `inventory`, `plan`, `reserve`, `observe` until `ready`,
    `bindings`, and `release` at the end. Only `reserve`, `reconcile` and `release` write. Each write is
    made under a precondition that the authority enforces, and whatever is written carries the operation
    id and the claim's generation, so that a process which knows nothing but the scope finds every claim
    by listing. Time-outs belong to the adapter's own configuration. No operation raises because a device
    is busy, a server is silent or an owner was replaced: those are values.
    """

    @abstractmethod
    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        """Returns what this backend guarantees; writes nothing.

        Args:
            environment: Probed facts by name, such as the versions of the server and of the driver. A
                fact that is missing makes the capability that rests on it absent, never present.
        """

    @abstractmethod
    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        """Returns the devices of a scope and who uses them; writes nothing.

        A primary listing (devices, hosts) that failed, was refused or was cut short is Unknown. A secondary
        one (pods, used memory) that failed leaves the snapshot `partial` and its occupancy empty, and a
        partial snapshot admits nothing. No device is idle because a read of its users failed.

        Args:
            scope: What to list, in the adapter's own words (`""`: all that it may see).
        """

    @abstractmethod
    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        """Returns devices for all requests, or why there are none; pure, and no promise of anything.

        All requests are served or none. A partial snapshot is Infeasible, and so are a hard constraint
        whose key or operator nobody here can check (refused by its name), and two requests of one
        workload id. Each host that could have served and does not is named with the reason, in the notes
        of a plan or the reasons of an Infeasible. The same arguments give an equal plan, `plan_id` included.
        """

    @abstractmethod
    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        """Claims what a plan assigns, all of it or nothing, once per operation id.

        The same operation id again returns the claim as it is now and writes no second one, also from
        another process. Where the inventory is no longer of `expected_generation`, or another claimant was
        first, the result has status `failed`, evidence that begins with `EVIDENCE_CONFLICT` and no grant;
        in the first case nothing was written, in the second only what carries this operation was undone.

        Ownership is written host by host before anything else; occupancy is read again afterwards; where it
        changed or cannot be read, the operation gives back its own ownership and fails with
        `EVIDENCE_ABORTED`. Only then may geometry change. A write whose answer was lost is read back by
        operation id before it is tried again, and is never assumed either way.

        Args:
            plan: Made from a snapshot of `expected_generation`.
            operation_id: Chosen by the caller, kept by it over its own restarts; names the claim.
            expected_generation: The `generation` of that snapshot.

        Raises:
            ContractBroken: The operation id was used with another plan, or the plan is of another generation.
        """

    @abstractmethod
    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Returns what the launcher adds to a workload of a claim that holds devices; writes nothing.

        Raises:
            UnknownName: No such claim, or the claim has no such workload.
            ContractBroken: The claim holds nothing now (pending, failed or releasing).
        """

    @abstractmethod
    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        """Returns the state of a claim; writes nothing.

        `allocated` is a durable owner, `prepared` is devices made, `ready` is evidence of this operation
        and generation that a workload can use them: a state, label or event from before the operation's own
        write is none. A claim whose ownership went to somebody else is `failed` with `EVIDENCE_LOST`. A read
        that failed is Unknown with its reason; a claim that the records, once read, do not hold is Unknown
        `missing`.
        """

    @abstractmethod
    def reconcile(
        self, claim_id: str, desired: Sequence[WorkloadRequest], expected_generation: str
    ) -> ClaimObservation:
        """Changes a claim towards what is desired, or carries on with what was begun and interrupted.

        The fence comes first: where the claim's desired generation is not `expected_generation`, nothing is
        written and the claim is returned as it is, with evidence that begins with `EVIDENCE_STALE`. What is
        desired and does not fit is `failed` with `EVIDENCE_CONFLICT`, and what the claim held it keeps.

        Raises:
            UnknownName: No such claim.
            ContractBroken: A fixed workload is asked to change its number of devices.
        """

    @abstractmethod
    def release(
        self, claim_id: str, operation_id: str, expected_generation: str, keep_workloads: bool = False
    ) -> ReleaseObservation:
        """Gives a claim back; idempotent over crashes, by operation id.

        A claim that nobody knows is `released`, after the durable records were looked at and hold nothing of
        it; records that cannot be read are `pending_recovery`. Another generation than the claim's is
        `stale`, and nothing is touched. Devices that are busy, kept or unreadable make it
        `pending_recovery`: ownership and geometry stay, `remaining` names them, and the same call again
        carries on. Geometry that was changed is restored before ownership is given up.

        Args:
            claim_id: Which.
            operation_id: Of this release.
            expected_generation: The claim's desired generation, as the caller knows it.
            keep_workloads: The workloads run on and keep their devices until a later release without it.
        """
