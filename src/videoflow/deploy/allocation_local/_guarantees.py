"""What the allocator of one host guarantees."""

from videoflow.backends.capabilities import AllocationCapabilities, Enforcement
from videoflow.deploy.allocation_local._settings import Policy


def capabilities_of(policy: Policy) -> AllocationCapabilities:
    """Returns what the local allocator guarantees under a policy."""
    return AllocationCapabilities(
        adapter="local",
        authority="sqlite",
        exclusive_device=policy is Policy.STRICT,
        isolated_mig=policy is Policy.STRICT,
        cooperative_sharing=True,
        memory_enforcement=Enforcement.ACCOUNTING,
        multi_device=True,
        topology_verification=policy is Policy.STRICT,
        elastic=False,
        admission_boundary="host",
    )
