"""From the options of a node to what applies: defaults, the class's own settings, plain data.

Used by the compiler. It refuses nothing; values out of range are found by the checks.
"""

from collections.abc import Mapping
from typing import Any

from videoflow.graph._node import Node
from videoflow.graph._types import Value
from videoflow.graph._values import Resources
from videoflow.graph.spec import BatchSpec, GpuSpec, NodeKind, OptionsSpec, ResourcesSpec, TraitsSpec


def options_of(node: Node, traits: TraitsSpec) -> OptionsSpec:
    """Returns the resolved options of a node."""
    given: Mapping[str, Any] = {
        name: value for name, value in node._videoflow_record.options.items() if value is not None
    }
    batch, resources = given.get("batch"), given.get("resources", Resources())
    return OptionsSpec(
        replicas=given.get("replicas", 1),
        partition_by=given.get("partition_by"),
        ordered=_ordered(node, given.get("ordered"), traits),
        missing=given.get("missing", "skip"),
        missing_chosen="missing" in given,
        batch=None if batch is None else BatchSpec(**_fields(batch)),
        fuse=given.get("fuse"),
        resources=ResourcesSpec(
            cpus=float(resources.cpus),
            memory_bytes=resources.memory_bytes,
            gpus=resources.gpus,
            gpu_memory_bytes=resources.gpu_memory_bytes,
            gpu=None if resources.gpu is None else GpuSpec(**_fields(resources.gpu)),
        ),
        on_error=dict(given.get("on_error", {})),
        retries=given.get("retries", 3),
        timeout_seconds=given.get("timeout_seconds"),
        lookahead=given.get("lookahead", 0),
        deterministic=given.get("deterministic", bool(node.deterministic)),
        image=given.get("image"),
    )


def keeps_state(traits: TraitsSpec) -> bool:
    """Whether a node has anything that one owner must see in order."""
    return traits.stateful or traits.flushes or traits.checkpoints


def _ordered(node: Node, given: bool | None, traits: TraitsSpec) -> bool:
    if given is not None:
        return given
    if node.ordered is not None:
        return bool(node.ordered)
    return node._videoflow_kind is not NodeKind.PROCESSOR or keeps_state(traits)


def _fields(value: Value) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}
