"""What the tasks of a flow ask of accelerators, one request for each replica.

Used when a composition is judged, and by the engines, which reserve what was admitted. It refuses nodes of
one task that want their device in ways that exclude each other.
"""

from collections.abc import Iterable, Iterator, Sequence

from videoflow.backends.allocation import Constraint, Feature, Provenance, Sharing, WorkloadRequest
from videoflow.errors import FlowInvalid, Problem
from videoflow.graph import parse_condition
from videoflow.graph.spec import GpuSpec, NodeSpec
from videoflow.planner.plan import Plan

TaskNodes = tuple[str, int, Sequence[NodeSpec]]
"""Name of a task, its replicas, its nodes."""


def accelerator_requests(
    plan: Plan, run_id: str = "", unsaid: Sharing = Sharing.EXCLUSIVE
) -> tuple[WorkloadRequest, ...]:
    """Returns what a plan asks of accelerators.

    Args:
        plan: Of a flow.
        run_id: ULID of the run that asks, or "" where there is none yet.
        unsaid: How a device is shared where a node does not say.
    """
    tasks = [(t.name, t.replicas, [plan.spec.node(name) for name in t.nodes]) for t in plan.tasks]
    return tuple(requests_of(plan.spec.flow_id, run_id, tasks, unsaid))


def requests_of(
    flow_id: str, run_id: str, tasks: Iterable[TaskNodes], unsaid: Sharing
) -> Iterator[WorkloadRequest]:
    """Yields the requests of tasks.

    Raises:
        FlowInvalid: Nodes of one task share their device in different ways.
    """
    for name, replicas, nodes in tasks:
        asking = [node for node in nodes if node.options.resources.gpus]
        for replica in range(replicas if asking else 0):
            yield _request((flow_id, run_id, f"{name}/{replica}"), asking, unsaid)


def _request(ids: tuple[str, str, str], nodes: Sequence[NodeSpec], unsaid: Sharing) -> WorkloadRequest:
    said = [node.options.resources for node in nodes]
    stated = [each.gpu or GpuSpec() for each in said]
    modes = dict.fromkeys(gpu.sharing for gpu in stated if gpu.sharing is not None)
    if len(modes) > 1:
        names = ", ".join(node.name for node in nodes)
        raise FlowInvalid(
            [
                Problem(
                    nodes[0].name,
                    f"the nodes {names} are one task, and share its GPU as {', '.join(modes)}",
                    "say the same sharing= for each, or fuse=False",
                )
            ]
        )
    least, peaks = [each.gpu_memory_bytes for each in said], [gpu.peak_memory_bytes for gpu in stated]
    flow_id, run_id, workload_id = ids
    return WorkloadRequest(
        flow_id,
        run_id,
        workload_id,
        device_count=max(each.gpus for each in said),
        sharing=Sharing(next(iter(modes))) if modes else unsaid,
        minimum_usable_memory_bytes=sum(filter(None, least)) or None,
        declared_peak_memory_bytes=sum(filter(None, peaks)) or None,
        features=tuple(dict.fromkeys(Feature(name) for gpu in stated for name in gpu.features)),
        constraints=tuple(dict.fromkeys(c for gpu in stated for c in _constraints(gpu))),
        provenance={
            "device_count": Provenance.EXPLICIT,
            "sharing": Provenance.EXPLICIT if modes else Provenance.DEFAULT,
            "minimum_usable_memory_bytes": Provenance.EXPLICIT if any(least) else Provenance.DEFAULT,
        },
    )


def _constraints(gpu: GpuSpec) -> Iterator[Constraint]:
    for text in gpu.constraints:
        found = parse_condition(text)
        if found is not None:
            yield Constraint(found.key, found.operator, found.values, found.hard)
