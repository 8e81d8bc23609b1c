"""Which optional parts of dynamic resource allocation are there, as data with source and date, and as probed.

That the API is stable says nothing of a gate: an alpha gate is off unless somebody says that it was switched
on, and every gate of the driver is alpha.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Final

from videoflow.backends.allocation import MATRIX_VERSION, Feature

KUBERNETES_FACT: Final = "kubernetes"
KUBERNETES_GATES_FACT: Final = "kubernetes-gates"
DRIVER_FACT: Final = "driver"
DRIVER_GATES_FACT: Final = "driver-gates"


class Gate(StrEnum):
    """A gate of the server."""

    PRIORITIZED_LIST = "DRAPrioritizedList"
    ADMIN_ACCESS = "DRAAdminAccess"
    DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
    PARTITIONABLE = "DRAPartitionableDevices"
    CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
    DEVICE_TAINTS = "DRADeviceTaints"
    EXTENDED_RESOURCE = "DRAExtendedResource"


class DriverGate(StrEnum):
    """A gate of the driver."""

    TIME_SLICING = "TimeSlicingSettings"
    MPS = "MPSSupport"
    DYNAMIC_MIG = "DynamicMIG"
    CONSUMABLE_SHARES = "ConsumableShares"


@dataclass(frozen=True)
class GateMatrix:
    """The table of gates.

    Attributes:
        name: Of this table.
        date: When its sources were read, as an ISO date.
        sources: Addresses.
        kubernetes: Gate → minor version of the server → `alpha` (off), `beta` or `GA` (on).
        driver: Gate → its stage, its first version and the gates that it excludes.
    """

    name: str
    date: str
    sources: tuple[str, ...]
    kubernetes: Mapping[str, Mapping[str, str]]
    driver: Mapping[str, Mapping[str, object]]

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of the server that it knows."""
        return tuple(self.kubernetes["DynamicResourceAllocation"])


@cache
def gate_matrix() -> GateMatrix:
    """Returns the table that is shipped as `gates.json`."""
    text = files("videoflow.deploy.allocation_dra").joinpath("gates.json").read_text(encoding="utf-8")
    found = json.loads(text)
    return GateMatrix(
        found["name"], found["date"], tuple(found["sources"]), found["kubernetes"], found["driver"]
    )


@dataclass(frozen=True)
class Gates:
    """The gates that are on in one cluster.

    Attributes:
        kubernetes: Minor version of the server, such as `1.36`; empty: nobody said.
        driver: Version of the driver; empty: nobody said.
        on: Gates of the server.
        driver_on: Gates of the driver.
    """

    kubernetes: str
    driver: str
    on: frozenset[Gate]
    driver_on: frozenset[DriverGate]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Gates":
        """Returns the gates that probed facts prove.

        Args:
            environment: `kubernetes`: minor version; `kubernetes-gates`, `driver-gates`: names of gates that
                were switched on, with commas between; `driver`: its version. A version that the table does
                not know has no gate but those that were switched on.
        """
        version = environment.get(KUBERNETES_FACT, "")
        named = _named(environment.get(KUBERNETES_GATES_FACT, ""))
        table = gate_matrix().kubernetes
        on = {gate for gate in Gate if gate in named or table[gate].get(version) in ("beta", "GA")}
        driver = environment.get(DRIVER_FACT, "")
        switched = _named(environment.get(DRIVER_GATES_FACT, "")) if driver else frozenset[str]()
        return cls(version, driver, frozenset(on), frozenset(gate for gate in DriverGate if gate in switched))

    def has(self, *needed: Gate | DriverGate) -> bool:
        """Returns whether all of these are on."""
        return all(gate in self.on or gate in self.driver_on for gate in needed)

    def lacking(self, *needed: Gate | DriverGate) -> str:
        """Returns the gates that are off, with what is known of them, or empty."""
        table = gate_matrix()
        told = []
        for gate in needed:
            if isinstance(gate, Gate) and gate not in self.on:
                stage = table.kubernetes[gate].get(self.kubernetes, "not listed")
                told.append(f"{gate} ({stage} in Kubernetes {self.kubernetes or 'of unknown version'})")
            elif isinstance(gate, DriverGate) and gate not in self.driver_on:
                told.append(f"{gate} ({table.driver[gate]['stage']} in the driver, and off)")
        return ", ".join(told)

    def version_matrix(self) -> tuple[tuple[str, str], ...]:
        """Returns what capabilities list: the name of the table, and each gated feature that is there."""
        listed = [(MATRIX_VERSION, f"{gate_matrix().name}, Kubernetes {self.kubernetes or 'unknown'}")]
        for feature, gates in FEATURE_GATES.items():
            if self.has(*gates):
                listed.append((str(feature), f"driver {self.driver}"))
        return tuple(listed)


FEATURE_GATES: Final[Mapping[Feature, tuple[Gate | DriverGate, ...]]] = {
    Feature.DYNAMIC_MIG: (Gate.PARTITIONABLE, DriverGate.DYNAMIC_MIG),
    Feature.MPS: (DriverGate.MPS,),
    Feature.CONSUMABLE_CAPACITY: (Gate.CONSUMABLE_CAPACITY, DriverGate.CONSUMABLE_SHARES),
}


def _named(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.split(",") if name.strip())
