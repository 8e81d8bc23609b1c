"""What a backend cannot serve, by name, before anything is planned or written."""

from collections.abc import Sequence

from videoflow.backends.allocation._constants import (
    EXCLUSIVE_FEATURE_PAIRS,
    GATED_FEATURES,
    MATRIX_VERSION,
    Elasticity,
    Feature,
    Sharing,
)
from videoflow.backends.allocation._types import WorkloadRequest
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement


def allocation_rejections(
    requests: Sequence[WorkloadRequest], capabilities: AllocationCapabilities
) -> list[str]:
    """Returns why a backend cannot serve requests, before anything is planned; empty means admitted.

    Each reason names the workload, what it needs, and the adapter with its authority. A gated feature is
    admitted only where the version matrix lists it: that the core of a server is stable implies no gate.
    """
    return [
        f"{request.workload_id} needs {need}: {capabilities.adapter} (authority {capabilities.authority})"
        f" {lack}"
        for request in requests
        for need, lack in _lacks(request, capabilities)
    ]


def _lacks(request: WorkloadRequest, found: AllocationCapabilities) -> list[tuple[str, str]]:
    lacks: list[tuple[bool, str, str]] = [
        (
            request.sharing is Sharing.EXCLUSIVE and not found.exclusive_device,
            "a device of its own",
            "shares every device",
        ),
        (
            request.sharing is Sharing.ISOLATED_MIG and not found.isolated_mig,
            "an isolated MIG slice",
            "provides none",
        ),
        (
            request.sharing is Sharing.COOPERATIVE and not found.cooperative_sharing,
            "cooperative sharing",
            "does not provide it",
        ),
        (
            request.sharing is Sharing.ACCOUNTING_ONLY and found.memory_enforcement is Enforcement.NONE,
            "memory accounting",
            "keeps no account of memory",
        ),
        (
            request.device_count > 1 and not found.multi_device,
            f"{request.device_count} devices",
            "grants one to a workload",
        ),
        (
            request.elasticity is Elasticity.ELASTIC and not found.elastic,
            "a number of devices that may change",
            "fixes it",
        ),
        (
            Feature.PEER_ACCESS in request.features and not found.topology_verification,
            "peer access between its devices",
            "cannot verify the topology",
        ),
    ]
    return [(need, lack) for missing, need, lack in lacks if missing] + _feature_lacks(request, found)


def _feature_lacks(request: WorkloadRequest, found: AllocationCapabilities) -> list[tuple[str, str]]:
    matrix = dict(found.version_matrix)
    name = matrix.pop(MATRIX_VERSION, "without a version")
    listed = ", ".join(f"{feature} {version}" for feature, version in sorted(matrix.items())) or "none"
    lacks = [
        (f"the gated feature {feature}", f"does not list it: version matrix {name}, available: {listed}")
        for feature in GATED_FEATURES
        if feature in request.features and feature not in matrix
    ]
    lacks += [
        (f"{first} and {second} on one device", "cannot combine them, and nobody can")
        for first, second in EXCLUSIVE_FEATURE_PAIRS
        if first in request.features and second in request.features
    ]
    return lacks
