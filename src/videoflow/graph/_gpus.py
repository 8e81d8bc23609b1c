"""What a node asks of accelerators: its words, and what is wrong with them.

Used by the compiler, which reports all of it at once, and by the planner, which turns conditions into
constraints. It refuses nothing itself; whether a host can give it, the planner and the allocator judge.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from videoflow.errors import Problem
from videoflow.graph.spec import ResourcesSpec

SHARING = ("exclusive", "isolated_mig", "cooperative", "accounting_only")
FEATURES = ("dynamic-mig", "mps", "consumable-capacity", "peer-access")
_PREFERENCE = "prefer "
_CONDITION = re.compile(
    r"(?P<no>!)?(?P<key>[a-z][a-z0-9_.:/-]*)(?:\s*(?P<sign>!=|>=|<=|=|>|<)\s*(?P<values>.+))?"
)
_OPERATORS = {"=": "In", "!=": "NotIn", ">": "Gt", ">=": "Ge", "<": "Lt", "<=": "Le"}


class Condition(NamedTuple):
    """A condition on a device, as `Gpu.constraints` states it.

    Attributes:
        key: The name of a fact, such as `product` or `compute_capability`.
        operator: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Ge`, `Lt` or `Le`.
        values: What it is compared with.
        hard: Whether it must hold; else it is a preference.
    """

    key: str
    operator: str
    values: tuple[str, ...]
    hard: bool


def parse_condition(text: str) -> Condition | None:
    """Returns a condition, or None for a text that is none.

    >>> parse_condition("product=NVIDIA L4, NVIDIA L40S")
    Condition(key='product', operator='In', values=('NVIDIA L4', 'NVIDIA L40S'), hard=True)
    >>> parse_condition("prefer compute_capability>=90").hard
    False
    """
    hard = not text.startswith(_PREFERENCE)
    found = _CONDITION.fullmatch(text.removeprefix(_PREFERENCE).strip())
    if found is None:
        return None
    key, sign = found["key"], found["sign"]
    if sign is None:
        return Condition(key, "DoesNotExist" if found["no"] else "Exists", (), hard)
    values = tuple(value.strip() for value in found["values"].split(","))
    numeric = sign in (">", ">=", "<", "<=")
    if found["no"] or not all(values) or (numeric and not all(value.isdecimal() for value in values)):
        return None
    return Condition(key, _OPERATORS[sign], values, hard)


def check_gpus(name: str, resources: ResourcesSpec) -> Iterator[Problem]:
    """Yields what is wrong with what a node asks of accelerators."""
    gpu = resources.gpu
    if not resources.gpus and (gpu is not None or resources.gpu_memory_bytes is not None):
        yield Problem(
            name, "it says how its GPUs are to be, and asks for none", "say gpus=1, or leave it out"
        )
    yield from _check_bytes(name, "gpu_memory_bytes", resources.gpu_memory_bytes)
    if gpu is None:
        return
    yield from _check_bytes(name, "gpu.peak_memory_bytes", gpu.peak_memory_bytes)
    if gpu.sharing is not None and gpu.sharing not in SHARING:
        yield Problem(name, f"gpu.sharing is {gpu.sharing!r}", f"choose one of {', '.join(SHARING)}")
    if gpu.sharing == "cooperative" and gpu.peak_memory_bytes is None:
        yield Problem(
            name,
            "it shares a GPU and does not say how much of it it uses",
            "say peak_memory_bytes= in vf.Gpu: by that sharers are admitted",
        )
    for feature in gpu.features:
        if feature not in FEATURES:
            yield Problem(name, f"gpu.features has {feature!r}", f"known are {', '.join(FEATURES)}")
    for text in gpu.constraints:
        if parse_condition(text) is None:
            yield Problem(
                name,
                f"gpu.constraints has {text!r}",
                'write "product=NVIDIA L4" or "memory_bytes>=40000000000", with "prefer " before a wish',
            )


def _check_bytes(name: str, field: str, value: object) -> Iterator[Problem]:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if value is not None and not whole:
        yield Problem(name, f"resources.{field} is {value!r}", "make it a number of bytes, or None")
