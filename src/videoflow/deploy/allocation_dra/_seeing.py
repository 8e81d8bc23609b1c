"""A claim as the cluster has it: allocated, prepared and ready are three pieces of evidence."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from videoflow.adapters.kubernetes import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Object
from videoflow.backends.allocation import (
    EVIDENCE_LOST,
    ClaimObservation,
    ClaimStatus,
    DeliveredGrant,
    DeviceIdentity,
    WorkloadBindings,
)
from videoflow.backends.allocation.lifecycle import Phase
from videoflow.deploy.allocation_dra._inventory import results_of, slice_name
from videoflow.deploy.allocation_dra._operation import claim_label
from videoflow.deploy.allocation_dra._pools import HostView, Published, hosts_of, newest
from videoflow.deploy.allocation_dra._records import DraRecord, claim_manifest
from videoflow.deploy.allocation_dra._settings import CLAIM, POD_CLAIM, WORKLOAD, DraSettings
from videoflow.deploy.kubernetes_records import Reads
from videoflow.environment import GRANT_VARIABLE
from videoflow.ids import hash_id

POLICY = "dra"
STARTED, RUNS = "PodReadyToStartContainers", "Ready"
_Devices = dict[str, tuple[DeviceIdentity, ...]]


def observed(
    session: Reads, settings: DraSettings, record: DraRecord, owner: str, *workloads: str
) -> ClaimObservation:
    """Returns a claim as it is in the cluster now; raises Unanswered.

    Args:
        session: The way to the authority.
        settings: Names.
        record: The claim.
        owner: The uid of its record: what an earlier claim of this name left is no evidence.
        *workloads: Whose grant is told; none: everybody's.
    """
    if record.phase in (Phase.FAILED, Phase.ABORTING):
        return _said(record, ClaimStatus.FAILED, record.evidence)
    if record.phase is Phase.RELEASING:
        return _said(record, ClaimStatus.RELEASING, ("it is being released",))
    labels = f"{CLAIM}={record.claim_id}"
    claims = _by_name(session.listed(RESOURCE_CLAIMS, settings.namespace, labels), owner)
    pods = _by_name(session.listed(PODS, settings.namespace, labels), owner)
    allocated = [w for w in record.assignments if results_of(claims.get(record.claim_of(w), {}))]
    if record.phase is Phase.OWNING:
        told = f"{len(allocated)} of {len(record.assignments)} workloads have devices"
        return _said(record, ClaimStatus.PENDING, ("the scheduler has not decided yet", told))
    hosts = _hosts(session, settings)
    lost = [f"{w} has no devices any more" for w in record.assignments if w not in allocated]
    lost += [
        f"{name}: {hosts[name].excluded}" for name in record.hosts() if name in hosts and hosts[name].excluded
    ]
    if lost:
        return _said(record, ClaimStatus.FAILED, (EVIDENCE_LOST, *lost))
    devices = given_to(record, claims, hosts)
    grant = grant_of(record, workloads or record.assignments, devices)
    evidence = tuple(f"{record.claim_of(w)} is allocated" for w in sorted(record.assignments))
    unprepared = [w for w in record.assignments if not _is_prepared(record, w, claims, pods)]
    if unprepared:
        told = f"nothing says yet that the devices of {', '.join(sorted(unprepared))} are prepared"
        return _said(record, ClaimStatus.ALLOCATED, (*evidence, told), grant)
    unready = [w for w in record.assignments if not _is_ready(record, w, claims, pods)]
    if unready:
        told = f"no pod of {', '.join(sorted(unready))} runs yet"
        return _said(record, ClaimStatus.PREPARED, (*evidence, "they are prepared", told), grant)
    ready = _said(record, ClaimStatus.READY, (*evidence, "their holders run with them"), grant)
    return replace(ready, observed_generation=ready.desired_generation)


def given_to(record: DraRecord, claims: Mapping[str, Object], hosts: Mapping[str, HostView]) -> _Devices:
    """Returns the devices of each workload, as they were given out."""
    by_pool = {
        (one.pool, one.name): one
        for host in hosts.values()
        for one in (*host.cards, *host.slices, *host.possible)
    }
    return {
        workload: tuple(
            _identity(by_pool.get((one["pool"], one["device"])), planned)
            for one, planned in zip(
                results_of(claims[record.claim_of(workload)]), record.assignments[workload], strict=False
            )
        )
        for workload in record.assignments
    }


def grant_of(record: DraRecord, workloads: Iterable[str], given: _Devices) -> DeliveredGrant:
    """Returns what workloads of a claim have."""
    names = sorted(workloads)
    devices = tuple(device for name in names for device in given[name])
    requested = sum(len(record.assignments[name]) for name in names)
    alone = all(name in record.alone for name in names)
    return DeliveredGrant(",".join(names), devices, alone, requested, POLICY)


def bindings_of(
    record: DraRecord, workload: str, grant: DeliveredGrant, owner: str, settings: DraSettings
) -> WorkloadBindings:
    """Returns what a pod needs to use the claim of its workload, which is there already."""
    env = {GRANT_VARIABLE: json.dumps(grant.to_dict())}
    claim = {"name": POD_CLAIM, "resourceClaimName": record.claim_of(workload)}
    return WorkloadBindings(
        env=env,
        pod_fragment={
            "metadata": {
                "namespace": settings.namespace,
                "labels": {CLAIM: record.claim_id, WORKLOAD: hash_id(workload)},
            },
            "spec": {"resourceClaims": [claim]},
        },
        container_fragment={
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "resources": {"claims": [{"name": POD_CLAIM}]},
        },
        claim_manifests=(claim_manifest(record, workload, owner, settings),),
        node_constraints={"hosts": sorted({device.node for device in grant.devices})},
    )


def _hosts(session: Reads, settings: DraSettings) -> dict[str, HostView]:
    specs, _ = newest(session.listed(RESOURCE_SLICES), settings.driver)
    return {host.name: host for host in hosts_of(specs, session.listed(NODES), settings.driver)}


def _by_name(found: Sequence[Object], owner: str) -> dict[str, Object]:
    return {
        one["metadata"]["name"]: one
        for one in found
        if claim_label(one) and owner in {ref["uid"] for ref in one["metadata"].get("ownerReferences") or ()}
    }


def _identity(published: Published | None, planned: DeviceIdentity) -> DeviceIdentity:
    if published is None:
        return planned
    found = published.identity
    if found.mig_profile is not None and found.mig_uuid is None:
        return replace(found, mig_uuid=slice_name(found.node, published.name))
    return found


def _is_prepared(
    record: DraRecord, workload: str, claims: Mapping[str, Object], pods: Mapping[str, Object]
) -> bool:
    """Returns whether the driver says so of each device; where it says nothing, whether its holder starts."""
    claim = claims[record.claim_of(workload)]
    reported = (claim.get("status") or {}).get("devices") or ()
    told = [one for one in reported if one.get("conditions")]
    if told and len(told) == len(results_of(claim)):
        return all(_has(one["conditions"], "Ready") for one in told)
    holder = pods.get(record.holder_of(workload), {})
    return _has((holder.get("status") or {}).get("conditions") or (), STARTED)


def _is_ready(
    record: DraRecord, workload: str, claims: Mapping[str, Object], pods: Mapping[str, Object]
) -> bool:
    holder = pods.get(record.holder_of(workload))
    if holder is None or holder["metadata"].get("deletionTimestamp"):
        return False
    users = (claims[record.claim_of(workload)].get("status") or {}).get("reservedFor") or ()
    runs = _has((holder.get("status") or {}).get("conditions") or (), RUNS)
    return runs and holder["metadata"]["uid"] in {user["uid"] for user in users}


def _has(conditions: Sequence[Object], name: str) -> bool:
    return any((one["type"], one["status"]) == (name, "True") for one in conditions)


def _said(
    record: DraRecord, status: ClaimStatus, evidence: tuple[str, ...], grant: DeliveredGrant | None = None
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
