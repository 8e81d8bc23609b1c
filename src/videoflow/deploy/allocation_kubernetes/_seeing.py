"""A claim as it is on its hosts. Nothing here writes or guesses."""

import json
from collections.abc import Iterable
from dataclasses import replace

from videoflow.adapters.kubernetes import Object
from videoflow.backends.allocation import (
    EVIDENCE_LOST,
    ClaimObservation,
    ClaimStatus,
    DeliveredGrant,
    DeviceIdentity,
    WorkloadBindings,
)
from videoflow.backends.allocation.lifecycle import Phase
from videoflow.deploy.allocation_kubernetes._geometry import advertises, entry_of
from videoflow.deploy.allocation_kubernetes._hosts import labels_of, owner_of
from videoflow.deploy.allocation_kubernetes._inventory import read_ledger
from videoflow.deploy.allocation_kubernetes._ledger import holds_all
from videoflow.deploy.allocation_kubernetes._records import ClaimRecord, Terms
from videoflow.deploy.allocation_kubernetes._session import Session
from videoflow.deploy.allocation_kubernetes._settings import (
    CLAIM,
    GPU,
    MIG_CONFIG,
    MIG_STATE,
    TAINT,
    WORKLOAD,
)
from videoflow.environment import GRANT_VARIABLE
from videoflow.ids import hash_id

POLICY = "kubernetes"
# What a process of a device that MPS shares may allocate; the control daemon reads it.
MPS_LIMIT_VARIABLE = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


def observed(session: Session, record: ClaimRecord) -> ClaimObservation:
    """Returns a claim as it is on its hosts now; raises Unanswered."""
    if record.phase in (Phase.FAILED, Phase.ABORTING):
        return _said(record, ClaimStatus.FAILED, record.evidence)
    if record.phase is Phase.RELEASING:
        return _said(record, ClaimStatus.RELEASING, ("it is being released",))
    nodes = {name: session.node(name) for name in record.hosts()}
    drivers = session.drivers()
    lost = [
        name for name, node in nodes.items() if name in drivers or not _is_held(session, record, name, node)
    ]
    if record.phase is Phase.OWNING or (record.phase is Phase.CHANGING and lost):
        return _said(record, ClaimStatus.PENDING, ("its devices are being taken",))
    if lost:
        return _said(record, ClaimStatus.FAILED, (EVIDENCE_LOST, f"replaced on {', '.join(lost)}"))
    grant = grant_of(record, record.assignments)
    evidence = tuple(f"{name} is owned under {record.stamp}" for name in nodes)
    states = [_state(record, name, nodes[name]) for name in record.geometry]
    if record.phase is Phase.CHANGING or any(state is not None and state != "success" for state in states):
        told = [f"the MIG manager says {state or 'nothing yet'}" for state in states if state != "success"]
        return _said(record, ClaimStatus.ALLOCATED, (*evidence, *told), grant)
    short = [name for name in record.geometry if not _advertised(record, name, nodes[name])]
    if short:
        told = [f"what {name} advertises is not yet what was asked for" for name in short]
        return _said(record, ClaimStatus.PREPARED, (*evidence, "its slices are made", *told), grant)
    ready = _said(record, ClaimStatus.READY, (*evidence, "its devices can be used"), grant)
    return replace(ready, observed_generation=ready.desired_generation)


def grant_of(record: ClaimRecord, workloads: Iterable[str]) -> DeliveredGrant:
    """Returns what workloads of a claim have, slices that were made for it by their seats."""
    names = sorted(workloads)
    found = seated(record)
    devices = tuple(device for name in names for device in found[name])
    alone = not any(record.terms.get(name, Terms()).shared for name in names)
    return DeliveredGrant(",".join(names), devices, alone, len(devices), POLICY)


def seated(record: ClaimRecord) -> dict[str, tuple[DeviceIdentity, ...]]:
    """Returns the devices of each workload; a slice to be made has the seat that it is going to have."""
    numbers: dict[tuple[str, int | None, str], int] = {}
    found = {}
    for workload in sorted(record.assignments):
        devices = []
        for device in record.assignments[workload]:
            if device.mig_profile is not None and device.mig_uuid is None:
                kind = (device.node, device.ordinal, device.mig_profile)
                number = numbers[kind] = numbers.get(kind, -1) + 1
                name = f"{device.node}/{device.ordinal}/{device.mig_profile}/{number}"
                device = replace(device, mig_uuid=name)
            devices.append(device)
        found[workload] = tuple(devices)
    return found


def bindings_of(record: ClaimRecord, workload: str) -> WorkloadBindings:
    """Returns what a pod needs to get the devices of a workload, and to be known as its pod."""
    grant = grant_of(record, [workload])
    (host,) = {device.node for device in grant.devices}
    env = {GRANT_VARIABLE: json.dumps(grant.to_dict())}
    limit = record.terms.get(workload, Terms()).limit_bytes
    if limit is not None:
        env[MPS_LIMIT_VARIABLE] = f"0={limit // (1 << 20)}M"
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [host]}]}
            ]
        }
    }
    tolerations = [
        {"key": TAINT, "operator": "Exists", "effect": "NoSchedule"},
        {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
    ]
    limits = {resource: str(count) for resource, count in sorted(record.resources[workload].items())}
    return WorkloadBindings(
        env=env,
        pod_fragment={
            # A label holds fewer characters than a workload's name may have.
            "metadata": {"labels": {CLAIM: record.claim_id, WORKLOAD: hash_id(workload)}},
            "spec": {"affinity": {"nodeAffinity": affinity}, "tolerations": tolerations},
        },
        container_fragment={
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "resources": {"limits": limits},
        },
        node_constraints={"nodeAffinity": affinity, "tolerations": tolerations},
    )


def _is_held(session: Session, record: ClaimRecord, name: str, node: Object | None) -> bool:
    if node is None:
        return False
    owner = owner_of(node)
    if name in record.geometry and owner != record.stamp:
        return False
    if owner and not owner.startswith("claim-"):
        return False
    return holds_all(read_ledger(session, name)[1], record)


def _state(record: ClaimRecord, name: str, node: Object | None) -> str | None:
    if node is None or labels_of(node).get(MIG_CONFIG) != entry_of(record, name):
        return ""
    return labels_of(node).get(MIG_STATE, "")


def _advertised(record: ClaimRecord, name: str, node: Object | None) -> bool:
    return node is not None and advertises(node, record.geometry[name])


def _said(
    record: ClaimRecord, status: ClaimStatus, evidence: tuple[str, ...], grant: DeliveredGrant | None = None
) -> ClaimObservation:
    return ClaimObservation(
        claim_id=record.claim_id,
        owner=f"videoflow/{record.stamp}",
        desired_generation=str(record.generation),
        observed_generation=None,
        status=status,
        grant=grant,
        evidence=evidence,
    )
