"""The interface of an allocation backend."""

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
    """Plans, reserves, observes and releases accelerators under one authority."""

    @abstractmethod
    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        """Returns what this backend guarantees, given probed facts such as versions."""

    @abstractmethod
    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        """Returns the devices of a scope; Unknown when the primary listing failed, never idle by default."""

    @abstractmethod
    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        """Assigns devices, purely; a partial snapshot, or a condition nobody can check, is Infeasible."""

    @abstractmethod
    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        """Claims what a plan assigns, once per operation id, by compare-and-swap.

        When the inventory moved on, the claim is `failed` with the evidence `conflict`, and nothing was
        written.
        """

    @abstractmethod
    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Returns what the launcher adds to a workload of a claim."""

    @abstractmethod
    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        """Returns the state of a claim; `ready` only on evidence of this very operation."""

    @abstractmethod
    def reconcile(
        self, claim_id: str, desired: Sequence[WorkloadRequest], expected_generation: str
    ) -> ClaimObservation:
        """Changes a claim towards what is desired; an older generation changes nothing."""

    @abstractmethod
    def release(
        self, claim_id: str, operation_id: str, expected_generation: str, keep_workloads: bool = False
    ) -> ReleaseObservation:
        """Gives a claim back, idempotently; what is busy, kept or unreadable stays owned."""
