"""Gates: what a version says by itself, what has to be said, and what cannot go together."""

import pytest

from videoflow.backends.allocation import EXCLUSIVE_FEATURE_PAIRS, GATED_FEATURES, MATRIX_VERSION
from videoflow.deploy.allocation_dra import DriverGate, Gate, Gates, gate_matrix

# Typed in from the release notes: the first version in which a gate is on by itself.
ON_SINCE = {
    Gate.PRIORITIZED_LIST: 34,
    Gate.ADMIN_ACCESS: 34,
    Gate.DEVICE_STATUS: 34,
    Gate.PARTITIONABLE: 36,
    Gate.CONSUMABLE_CAPACITY: 36,
    Gate.DEVICE_TAINTS: 36,
    Gate.EXTENDED_RESOURCE: 36,
}


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_a_version_has_the_gates_that_are_beta_or_stable_in_it(minor: int) -> None:
    assert Gates.of({"kubernetes": f"1.{minor}"}).on == {
        gate for gate, since in ON_SINCE.items() if minor >= since
    }


def test_the_table_says_where_it_is_from() -> None:
    found = gate_matrix()
    assert found.date in found.name
    assert len(found.sources) == 2
    assert set(found.kubernetes) == {*Gate, "DynamicResourceAllocation"}
    assert set(found.driver) == set(DriverGate)


def test_nothing_is_taken_for_granted() -> None:
    for facts in ({}, {"kubernetes": "1.99"}, {"driver-gates": "DynamicMIG"}):
        assert {name for name, _ in Gates.of(facts).version_matrix()} == {MATRIX_VERSION}
    stable = Gates.of({"kubernetes": "1.37", "driver": "0.5.0"})
    assert {name for name, _ in stable.version_matrix()} == {MATRIX_VERSION}
    assert "alpha in the driver" in stable.lacking(DriverGate.MPS)
    facts = {"kubernetes": "1.35", "driver": "0.5.0", "driver-gates": ",".join(DriverGate)}
    old = Gates.of(facts)
    assert "alpha in Kubernetes 1.35" in old.lacking(Gate.PARTITIONABLE)
    assert not old.has(Gate.PARTITIONABLE, DriverGate.DYNAMIC_MIG)
    switched = Gates.of(facts | {"kubernetes-gates": "DRAPartitionableDevices, DRAConsumableCapacity"})
    assert {name for name, _ in switched.version_matrix()} == {MATRIX_VERSION, *map(str, GATED_FEATURES)}


def test_what_the_driver_excludes_the_contract_excludes() -> None:
    features = {DriverGate.MPS: "mps", DriverGate.DYNAMIC_MIG: "dynamic-mig"}
    features[DriverGate.CONSUMABLE_SHARES] = "consumable-capacity"
    table = gate_matrix().driver
    for one, other in EXCLUSIVE_FEATURE_PAIRS:
        first, second = (next(g for g in features if features[g] == str(f)) for f in (one, other))
        excluded = table[first]["excludes"]
        assert isinstance(excluded, list)
        assert str(second) in excluded
