"""The fake's CEL knows quantities and versions, and refuses what a server refuses."""

import pytest

from tests.dra.slices import DRIVER, gpu
from videoflow.testing.kubernetes.expressions import ExpressionInvalid, Expressions, read_quantity

DEVICE = {**gpu(0, "GPU-0"), "driver": DRIVER}
MEMORY = f'device.capacity["{DRIVER}"].memory'
VERSION = f'device.attributes["{DRIVER}"].cudaComputeCapability'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{MEMORY}.compareTo(quantity("81559Mi")) == 0', True),
        (f'{MEMORY}.compareTo(quantity("80Gi")) >= 0', False),
        (f'{MEMORY}.compareTo(quantity("80G")) >= 0', True),
        (f'{MEMORY}.isGreaterThan(quantity("40Gi")) && {MEMORY}.isLessThan(quantity("0.1Ti"))', True),
        (f'{VERSION}.compareTo(semver("9.0.0")) == 0', True),
        (f'{VERSION}.isLessThan(semver("10.0.0"))', True),
        ('isQuantity("1Gi") && !isQuantity("1GB")', True),
        ('isSemver("1.2.3") && !isSemver("1.2")', True),
        (f'"type" in device.attributes["{DRIVER}"]', True),
        ('"type" in device.attributes["other.example"]', False),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_what_holds_of_a_device(expression: str, expected: bool) -> None:
    assert Expressions().matches(expression, DEVICE) is expected


@pytest.mark.parametrize(
    "expression",
    [
        f"{MEMORY} >= 40",
        f'{MEMORY}.compareTo("40Gi") >= 0',
        f'{MEMORY}.compareTo(quantity("40Gi"))',
        "device.atributes",
        f'device.attributes["{DRIVER}"',
        "true ||",
        f'{VERSION}.compareTo(quantity("1"), semver("1.0.0")) == 0',
    ],
)
def test_what_no_server_takes(expression: str) -> None:
    with pytest.raises(ExpressionInvalid):
        Expressions().check(expression)


@pytest.mark.parametrize(
    "expression",
    [
        f'device.attributes["{DRIVER}"].moon == "full"',
        f'device.attributes["{DRIVER}"].productName.compareTo(semver("1.0.0")) == 0',
        f'{MEMORY}.compareTo(quantity("40GB")) > 0',
        'device.attributes["other.example"].type == "gpu"',
    ],
)
def test_an_error_is_not_a_no(expression: str) -> None:
    with pytest.raises(ExpressionInvalid):
        Expressions().matches(expression, DEVICE)


def test_a_server_without_the_gate_knows_nothing_of_several_allocations() -> None:
    with pytest.raises(ExpressionInvalid):
        Expressions(consumable=False).check("device.allowMultipleAllocations")


def test_quantities() -> None:
    assert read_quantity("9984Mi") == 9984 << 20
    assert read_quantity("1e3") == 1000
    assert read_quantity("0.5Gi") == 1 << 29
    with pytest.raises(ValueError, match="no quantity"):
        read_quantity("40GiB")
