"""Selectors in CEL on the attributes that the driver publishes, guarded so that none ends in an error.

An expression that reads an attribute which a device lacks is an error, and an error fails the whole claim.
"""

import json
from collections.abc import Mapping
from typing import Final

from videoflow.backends.allocation import Constraint
from videoflow.deploy.allocation_dra._settings import PCIE_ROOT

MIB: Final = 1 << 20
MEMORY_KEY: Final = "memory_bytes"
PROFILE_KEY: Final = "profile"
# Key of a constraint → attribute of the driver.
TEXTS: Final[Mapping[str, str]] = {
    "product": "productName",
    "brand": "brand",
    "architecture": "architecture",
    "uuid": "uuid",
    PROFILE_KEY: "profile",
    "parent_uuid": "parentUUID",
}
VERSIONS: Final[Mapping[str, str]] = {
    "cuda_compute_capability": "cudaComputeCapability",
    "driver_version": "driverVersion",
    "cuda_driver_version": "cudaDriverVersion",
}
_COMPARED: Final = {"Gt": ">", "Ge": ">=", "Lt": "<", "Le": "<="}
_SETS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def quantity(number: int) -> str:
    """Returns a number of bytes as Kubernetes spells it, exactly.

    >>> quantity(40 << 30), quantity(9984 << 20), quantity(1000)
    ('40Gi', '9984Mi', '1000')
    """
    for unit, size in (("Gi", 1 << 30), ("Mi", MIB)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def memory_at_least(driver: str, number: int, operator: str = ">=") -> str:
    """Returns that a device publishes at least so many usable bytes."""
    capacity = f"device.capacity[{json.dumps(driver)}]"
    compared = f'{capacity}.memory.compareTo(quantity("{quantity(number)}")) {operator} 0'
    return f'"memory" in {capacity} && {compared}'


def text_is(driver: str, attribute: str, values: tuple[str, ...]) -> str:
    """Returns that an attribute of a device is one of these."""
    found = f"device.attributes[{json.dumps(driver)}]"
    one = f"{found}.{attribute} == {json.dumps(values[0])}"
    many = f"{found}.{attribute} in {json.dumps(list(values))}"
    return f'"{attribute}" in {found} && {one if len(values) == 1 else many}'


def selector(driver: str, rule: Constraint) -> str | None:
    """Returns a constraint as an expression, or None where no published attribute could tell.

    As everywhere, an attribute that a device lacks fulfils only `NotIn` and `DoesNotExist`.
    """
    domain, name = _attribute(driver, rule.key)
    values = rule.values
    if rule.key == MEMORY_KEY:
        return _memory(driver, rule)
    if not name or (rule.operator in ("In", "NotIn") and not values):
        return None
    there = f'"{name}" in device.attributes[{json.dumps(domain)}]'
    if rule.operator == "Exists":
        return there
    if rule.operator == "DoesNotExist":
        return f"!({there})"
    if rule.key in VERSIONS:
        return _versions(f"{there} && ", f"device.attributes[{json.dumps(domain)}].{name}", rule)
    if rule.operator == "In":
        return text_is(domain, name, values)
    return f"!({text_is(domain, name, values)})" if rule.operator == "NotIn" else None


def _attribute(driver: str, key: str) -> tuple[str, str]:
    if key == PCIE_ROOT:
        domain, _, name = key.partition("/")
        return domain, name
    return driver, {**TEXTS, **VERSIONS}.get(key, "")


def _memory(driver: str, rule: Constraint) -> str | None:
    if rule.operator not in _COMPARED or not all(value.isdecimal() for value in rule.values):
        return None
    compared = [memory_at_least(driver, int(v), _COMPARED[rule.operator]) for v in rule.values]
    return " && ".join(compared) or None


def _versions(guard: str, attribute: str, rule: Constraint) -> str | None:
    if not all(_is_version(value) for value in rule.values):
        return None
    asked = [f'{attribute}.compareTo(semver("{_three(value)}"))' for value in rule.values]
    if rule.operator in _COMPARED:
        return guard + " && ".join(f"{one} {_COMPARED[rule.operator]} 0" for one in asked)
    if rule.operator in _SETS:
        any_of = guard + "(" + " || ".join(f"{one} == 0" for one in asked) + ")"
        return any_of if rule.operator == "In" else f"!({any_of})"
    return None


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return 1 <= len(parts) <= 3 and all(part.isdecimal() for part in parts)


def _three(text: str) -> str:
    parts = [str(int(part)) for part in text.split(".")]
    return ".".join([*parts, "0", "0"][:3])
