"""What a workload is told: which devices it may see, and what it was granted."""

import json

from videoflow.backends.allocation import DeliveredGrant, Sharing, WorkloadBindings
from videoflow.deploy.allocation_local._ledger import Claim
from videoflow.deploy.allocation_local._settings import BY_ADDRESS, Policy
from videoflow.environment import GRANT_VARIABLE, MASK_VARIABLE, ORDER_VARIABLE


def granted(claim: Claim, *workloads: str) -> DeliveredGrant:
    """Returns what a claim gives to these of its workloads, one after the other."""
    requests = {request.workload_id: request for request in claim.requests}
    devices = tuple(device for name in workloads for device in claim.assignments[name])
    modes = {requests[name].sharing for name in workloads if name in requests}
    return DeliveredGrant(
        workload_id=",".join(workloads),
        devices=devices,
        exclusive=claim.policy == Policy.STRICT and modes <= {Sharing.EXCLUSIVE, Sharing.ISOLATED_MIG},
        requested=sum(
            requests[name].device_count if name in requests else len(claim.assignments[name])
            for name in workloads
        ),
        policy=claim.policy,
    )


def bindings_of(grant: DeliveredGrant) -> WorkloadBindings:
    """Returns the environment of a workload.

    Devices are named by MIG UUID, else by GPU UUID, else all of them by ordinal, then in the order of their
    addresses, since by default CUDA numbers the fastest first.
    """
    ids = [device.mig_uuid or device.uuid for device in grant.devices]
    named = [str(found) for found in ids]
    if any(found is None for found in ids):
        named = [str(device.ordinal) for device in grant.devices]
    env = {MASK_VARIABLE: ",".join(named), ORDER_VARIABLE: BY_ADDRESS, GRANT_VARIABLE: _written(grant)}
    return WorkloadBindings(env=env)


def unobserved_bindings(grant: DeliveredGrant) -> WorkloadBindings:
    """Returns the environment of a workload whose devices nobody knows: its mask stays as inherited."""
    return WorkloadBindings(env={GRANT_VARIABLE: _written(grant)})


def _written(grant: DeliveredGrant) -> str:
    return json.dumps(grant.to_dict(), sort_keys=True)
