"""In what a flow, or its plan, differs from the one that a run had.

Used where a run is resumed. It refuses nothing: it names the differences, the first few of them.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from videoflow.graph.spec import FlowSpec
from videoflow.planner.plan import Plan, Transport

_MOST = 5
_LONGEST = 200


def spec_differences(before: FlowSpec, now: FlowSpec) -> list[str]:
    """Returns in words what a flow has otherwise than before."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(now)
    nodes = [{node["name"]: node for node in spec.pop("nodes")} for spec in (old, new)]
    found = []
    for name in {**nodes[0], **nodes[1]}:
        if name not in nodes[1]:
            found.append(f"there was a node {name}")
        elif name not in nodes[0]:
            found.append(f"node {name} is new")
        else:
            parts = _differences("", nodes[0][name], nodes[1][name])
            found += [f"node {name}: {part}" for part in parts]
    found += list(_differences("", old, new))
    return _first(found)


def plan_differences(before: Plan, now: Plan) -> list[str]:
    """Returns in words where two plans of one flow lay its tasks out otherwise."""
    old, new = _layout(before), _layout(now)
    return _first(list(_differences("", old, new)))


def _layout(plan: Plan) -> dict[str, Any]:
    tasks = {
        task.name: {"nodes": task.nodes, "replicas": task.replicas, "takes": task.mode, "commits": task.order}
        for task in plan.tasks
    }
    channels = [msgspec.to_builtins(channel.ref) for channel in plan.channels]
    fused = [f"{e.parent}.{e.port} -> {e.child}" for e in plan.edges if e.transport is Transport.FUSED]
    return {"tasks": tasks, "channels": channels, "direct calls": fused}


def _differences(path: str, old: object, new: object) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _differences(f"{path}.{key}" if path else str(key), old.get(key), new.get(key))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for number, (before, now) in enumerate(zip(old, new, strict=True)):
            yield from _differences(f"{path}[{number}]", before, now)
    elif old != new:
        yield f"{path} is {_short(new)}, and was {_short(old)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _first(found: list[str]) -> list[str]:
    return found if len(found) <= _MOST else [*found[:_MOST], f"and {len(found) - _MOST} more"]
