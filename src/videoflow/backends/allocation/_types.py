"""What is asked, seen, planned, claimed and given.

Memory is bytes, in four meanings that no code may exchange: the usable minimum a device must have, what is
reserved in the accounts, the limit beyond which a workload is stopped, and the peak that it declares.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from videoflow.backends.allocation._constants import (
    ClaimStatus,
    Completeness,
    Discovery,
    Elasticity,
    Feature,
    Provenance,
    ReleaseStatus,
    Sharing,
)
from videoflow.errors import ContractBroken


@dataclass(frozen=True)
class DeviceIdentity:
    """One device, or one MIG slice of one.

    Host ordinal, GPU UUID and MIG UUID are three id spaces and not interchangeable; each may be None. In
    the assignments of a plan a slice that is still to be made has a profile and no MIG UUID.

    Attributes:
        node: The host.
        ordinal: Number on the host.
        uuid: UUID of the whole GPU.
        mig_uuid: UUID of the slice.
        product: Name as the driver spells it.
        memory_bytes: Usable memory, or None where it could not be read.
        mig_profile: Such as `1g.10gb`, whose figure is a label and no size.
    """

    node: str
    ordinal: int | None
    uuid: str | None
    mig_uuid: str | None
    product: str
    memory_bytes: int | None
    mig_profile: str | None = None


def device_key(device: DeviceIdentity) -> str:
    """Returns what occupancy calls a device: MIG UUID, else GPU UUID, else `host#ordinal`.

    Raises:
        ContractBroken: It has none of the three.
    """
    if device.mig_uuid is not None:
        return device.mig_uuid
    if device.uuid is not None and device.mig_profile is None:
        return device.uuid
    if device.ordinal is None or device.mig_profile is not None:
        raise ContractBroken(f"a device of {device.node} has no id by which it could be told from another")
    return f"{device.node}#{device.ordinal}"


def memory_key(device: DeviceIdentity) -> str:
    """Returns the key under which occupancy keeps the bytes in use on a device, whoever uses them."""
    return f"{device_key(device)}:bytes"


@dataclass(frozen=True)
class InventorySnapshot:
    """What was seen, at one moment; a snapshot is no reservation.

    Attributes:
        devices: All devices of the scope.
        occupancy: Device key → units in use: under `device_key` the workloads that hold the device, under
            `memory_key` the bytes in use on it. Empty where it could not be read, and the snapshot is then
            partial; in a complete one a key that is absent is 0.
        sharing: Host → `physical`, `mig`, `time-sliced`, `mps` or `unknown` (`HostSharing`).
        owners: Host → ownership stamp; a host without an owner is absent.
        completeness: Whether every listing was read.
        observed_at: Monotonic seconds.
        generation: Of the inventory, against which a reservation is checked.
    """

    devices: tuple[DeviceIdentity, ...]
    occupancy: Mapping[str, int]
    sharing: Mapping[str, str]
    owners: Mapping[str, str]
    completeness: Completeness
    observed_at: float
    generation: str


@dataclass(frozen=True)
class Constraint:
    """A condition on devices or hosts; a soft one is a preference."""

    key: str
    operator: str
    values: tuple[str, ...]
    hard: bool = True


@dataclass(frozen=True)
class WorkloadRequest:
    """What one workload asks for; memory in four meanings, None where nobody said.

    Attributes:
        flow_id: Of which flow.
        run_id: Of which run.
        workload_id: The task replica.
        device_count: How many devices.
        sharing: How they may be shared.
        minimum_usable_memory_bytes: Per device, at least; never compared with a profile's label.
        reserved_memory_bytes: Per device, kept for it in the accounts; no isolation.
        hard_memory_limit_bytes: Per device, beyond which it is to be stopped.
        declared_peak_memory_bytes: Per device, what it says that it uses at most; admits a sharer.
        features: Beyond a device.
        constraints: On devices and hosts.
        elasticity: Whether the count may change.
        host_cpu: Cores of the host.
        host_memory: Bytes of the host.
        provenance: Field name → where its value comes from.
    """

    flow_id: str
    run_id: str
    workload_id: str
    device_count: int = 1
    sharing: Sharing = Sharing.EXCLUSIVE
    minimum_usable_memory_bytes: int | None = None
    reserved_memory_bytes: int | None = None
    hard_memory_limit_bytes: int | None = None
    declared_peak_memory_bytes: int | None = None
    features: tuple[Feature, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    elasticity: Elasticity = Elasticity.FIXED
    host_cpu: float | None = None
    host_memory: int | None = None
    provenance: Mapping[str, Provenance] = field(default_factory=dict)


@dataclass(frozen=True)
class FeasiblePlan:
    """An assignment that fits the snapshot it was made from.

    Attributes:
        assignments: Workload → devices.
        geometry: Host → MIG layout to be made.
        snapshot_generation: Of the inventory.
        plan_id: Its name.
        notes: Such as why a host was left out.
    """

    assignments: Mapping[str, tuple[DeviceIdentity, ...]]
    geometry: Mapping[str, tuple[str, ...]]
    snapshot_generation: str
    plan_id: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Infeasible:
    """Why nothing fits."""

    reasons: tuple[str, ...]


PlanOutcome = FeasiblePlan | Infeasible


@dataclass(frozen=True)
class DeliveredGrant:
    """What a workload was given, as it is told in its environment.

    Attributes:
        workload_id: The task replica.
        devices: Its devices.
        exclusive: Whether nobody else uses them.
        requested: How many were asked for.
        policy: By which it was granted.
        host: `observed`; or `unobserved`: discovery failed and the launcher went on, so that no devices
            then means "could not tell", never "no GPU".
    """

    workload_id: str
    devices: tuple[DeviceIdentity, ...]
    exclusive: bool
    requested: int
    policy: str
    host: str = Discovery.OBSERVED

    def to_dict(self) -> dict[str, Any]:
        """Returns it in plain values, for JSON."""
        devices = [asdict(device) for device in self.devices]
        return {**asdict(self), "devices": devices, "host": str(self.host)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Returns the grant that `to_dict` wrote.

        Raises:
            ContractBroken: A field is missing, unknown, or says what no grant says.
        """
        try:
            devices = tuple(DeviceIdentity(**device) for device in values["devices"])
            grant = cls(**{**values, "devices": devices})
            Discovery(grant.host)
        except (KeyError, TypeError, ValueError) as error:
            raise ContractBroken("a grant that cannot be read", cause=str(error)) from error
        return grant


@dataclass(frozen=True)
class ClaimObservation:
    """What is known of a claim.

    Attributes:
        claim_id: Derived from the operation id, so that the same operation finds the same claim.
        owner: The stamp that it writes on hosts.
        desired_generation: Of the claim, as last asked for; `release` and `reconcile` are fenced by it.
        observed_generation: The generation that the evidence is of, or None while there is none.
        status: How far it has come.
        grant: What it holds, or None.
        evidence: Why the status is what it is; begins with an `EVIDENCE_*` where it did not end as asked.
    """

    claim_id: str
    owner: str
    desired_generation: str
    observed_generation: str | None
    status: ClaimStatus
    grant: DeliveredGrant | None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkloadBindings:
    """What a launcher adds to a workload; plain dicts, since the schemas are others'.

    Attributes:
        env: Environment variables.
        pod_fragment: Merged into a pod.
        container_fragment: Merged into its container.
        claim_manifests: To be created beside it.
        node_constraints: Where it may run.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    pod_fragment: Mapping[str, Any] = field(default_factory=dict)
    container_fragment: Mapping[str, Any] = field(default_factory=dict)
    claim_manifests: tuple[Mapping[str, Any], ...] = ()
    node_constraints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleaseObservation:
    """What a release came to, and what remains."""

    claim_id: str
    status: ReleaseStatus
    remaining: tuple[str, ...] = ()
    reason: str = ""
