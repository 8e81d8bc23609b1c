"""Requests of every kind, each with facts of a cluster that can serve it."""

from collections.abc import Mapping
from typing import Any

from tests.dra.slices import A100, H100
from videoflow.backends.allocation import Constraint, Feature, Sharing, WorkloadRequest
from videoflow.deploy.allocation_dra import DISTINCT, GROUP, PCIE_ROOT, SAME

GIB = 1 << 30
ALL_ON = {
    "kubernetes": "1.36",
    "driver": "0.5.0",
    "driver-gates": "TimeSlicingSettings,DynamicMIG,ConsumableShares",
}
SHARES = {"kubernetes": "1.36", "driver": "0.5.0", "driver-gates": "TimeSlicingSettings,MPSSupport"}
OLD = {"kubernetes": "1.34", "driver": "0.5.0"}


def ask(name: str = "w/0", **more: Any) -> WorkloadRequest:
    return WorkloadRequest("flow", "run", name, **more)


def rule(key: str, operator: str, *values: str, hard: bool = True) -> Constraint:
    return Constraint(key, operator, values, hard)


PIECE: dict[str, Any] = {"sharing": Sharing.ISOLATED_MIG}
SHARE: dict[str, Any] = {"sharing": Sharing.COOPERATIVE, "declared_peak_memory_bytes": 15 * GIB}
GROUPED = (rule(GROUP, "In", "readers"),)
KINDS: dict[str, tuple[WorkloadRequest, Mapping[str, str]]] = {
    "one whole card": (ask(), OLD),
    "several whole cards on one root": (
        ask(device_count=4, constraints=(rule(PCIE_ROOT, SAME), rule("product", "In", H100))),
        OLD,
    ),
    "cards on different roots": (ask(device_count=2, constraints=(rule(PCIE_ROOT, DISTINCT),)), ALL_ON),
    "a card by memory and version": (
        ask(
            minimum_usable_memory_bytes=40 * GIB,
            constraints=(rule("cuda_compute_capability", "Ge", "8.0"), rule("host", "In", "a", "b")),
        ),
        OLD,
    ),
    "a slice by profile": (ask(**PIECE, constraints=(rule("profile", "In", "1g.10gb"),)), OLD),
    "a slice by memory": (ask(**PIECE, minimum_usable_memory_bytes=10 * GIB), OLD),
    "a preferred card": (ask(constraints=(rule("product", "In", H100, hard=False),)), OLD),
    "a preferred slice": (
        ask(
            **PIECE,
            minimum_usable_memory_bytes=10 * GIB,
            constraints=(rule("product", "In", A100, hard=False),),
        ),
        OLD,
    ),
    "a group that shares by time": (ask(**SHARE, constraints=GROUPED), SHARES),
    "a group under MPS": (
        ask(**SHARE, constraints=GROUPED, features=(Feature.MPS,), hard_memory_limit_bytes=20 * GIB),
        SHARES,
    ),
    "a part of the capacity": (ask(**SHARE, features=(Feature.CONSUMABLE_CAPACITY,)), ALL_ON),
}
