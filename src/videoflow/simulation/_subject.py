"""What is simulated: a planned flow, how its nodes are made, and what may be expected of its results.

Made of a compiled flow once, and run under many schedules. It refuses what the planner refuses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from videoflow.backends.capabilities import ExecutionCapabilities
from videoflow.backends.memory import (
    MemoryBroker,
    MemoryMessaging,
    MemoryPayloads,
    MemoryPool,
    MemoryRuntimeStore,
)
from videoflow.backends.messaging import ChannelSpec, SubscriptionSpec
from videoflow.backends.outcomes import known
from videoflow.clock import ManualClock
from videoflow.engines.accounting import channel_specs, subscription_specs
from videoflow.graph import Compiled, Node, instantiate
from videoflow.planner import FlowCosts, PlanFacts, SizingDefaults, plan_flow
from videoflow.planner.plan import InputMode, Plan, TaskPlan
from videoflow.simulation._levels import Level, levels_of
from videoflow.simulation._nodes import Recording
from videoflow.worker import item_limits, make_program
from videoflow.worker.core import TaskProgram

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
BUDGET_BYTES = 1 << 36
_OF_SHORT_STREAMS = SizingDefaults(small_prefetch=0)  # 30 items are to meet the bounds
_EXECUTION = ExecutionCapabilities(
    engine="simulation",
    isolates_crash=True,
    can_interrupt=True,
    crosses_processes=False,
    crosses_hosts=False,
    fuses=True,
    maximum_batch_items=None,
)


@dataclass(frozen=True)
class Subject:
    """A planned flow.

    Attributes:
        plan: The planner's.
        make: Makes a node, by name.
        programs: By task.
        limits: By task: the largest items of its ports.
        channels: As an engine makes them.
        subscriptions: Likewise.
        fenced: Tasks with an epoch whose workers may be replaced although they live.
        levels: Node → what its inputs are compared for.
        own_state: Nodes with state keep it apart for each source.
        may_fail: Some input is fatal for its node, so that the run may fail.
        stand_ins: Nodes that are not run but answer from `recording`.
        recording: What they answer.
    """

    plan: Plan
    make: Callable[[str], Node]
    programs: Mapping[str, TaskProgram]
    limits: Mapping[str, Mapping[str, dict[str, int]]]
    channels: Sequence[ChannelSpec]
    subscriptions: Sequence[SubscriptionSpec]
    fenced: frozenset[str]
    levels: Mapping[str, Level]
    own_state: bool = False
    may_fail: bool = False
    stand_ins: frozenset[str] = frozenset()
    recording: Recording = field(default_factory=Recording)


def subject_of(
    compiled: Compiled,
    *,
    own_state: bool = False,
    defaults: SizingDefaults | None = None,
    fuse: bool = True,
    costs: FlowCosts | None = None,
) -> Subject:
    """Plans a compiled flow for simulation, as the engines plan it for themselves.

    Args:
        compiled: The flow.
        own_state: The nodes are those of generated graphs: they keep state apart for each source, so that the
            order between sources does not matter, and nothing before they are opened, so that copies do.
        defaults: Where sizing starts.
        fuse: Whether nodes are fused.
        costs: What they are said to cost, to be fused by that, too.

    Raises:
        FlowError: The planner refuses the flow.
    """
    spec = compiled.spec
    sizes = defaults or (_OF_SHORT_STREAMS if own_state else SizingDefaults())
    plan = plan_flow(spec, _facts(sizes, costs, fuse=fuse))
    classes: dict[str, Any] = {name: type(node) for name, node in compiled.nodes.items()}

    def make(name: str) -> Node:
        return instantiate(spec.node(name), classes[name], spec.folder)

    made = {name: make(name) for name in classes} if own_state else {}
    return Subject(
        plan=plan,
        make=lambda name: _copied(made[name]) if own_state else make(name),
        programs={task.name: make_program(plan, task, RUN_ID) for task in plan.tasks},
        limits={task.name: item_limits(plan, task) for task in plan.tasks},
        channels=tuple(channel_specs(plan, RUN_ID)),
        subscriptions=tuple(subscription_specs(plan, RUN_ID)),
        fenced=frozenset(task.name for task in plan.tasks if _is_fenced(plan, task)),
        levels=levels_of(spec, own_state=own_state),
        own_state=own_state,
        may_fail=any("fatal" in node.arguments.get("trouble", ()) for node in spec.nodes if own_state),
    )


def _facts(defaults: SizingDefaults, costs: FlowCosts | None, *, fuse: bool) -> PlanFacts:
    clock = ManualClock()
    pool = MemoryPool(BUDGET_BYTES)
    return PlanFacts(
        engine="threads",
        execution=_EXECUTION,
        messaging=MemoryMessaging(MemoryBroker(pool), "planner", clock).capabilities(),
        payload=MemoryPayloads(pool, "planner", clock).capabilities(),
        runtime=MemoryRuntimeStore(clock).capabilities(),
        memory_budget_bytes=BUDGET_BYTES,
        available_bytes=known(BUDGET_BYTES, 0.0),
        cpus=64.0,
        fuse=fuse,
        costs=costs,
        defaults=defaults,
    )


def _is_fenced(plan: Plan, task: TaskPlan) -> bool:
    """Whether a worker may be replaced although it lives: it has an epoch, and opens none of its own.

    Who replaces a source that opens epochs reads what it said, and then ends that: only a death that is
    certain comes before the reading, and one host sees to that.
    """
    return task.mode is not InputMode.COMPETING and plan.spec.node(task.nodes[0]).traits.resumable


def _copied(made: Node) -> Node:
    """Returns a node as it was made: a copy of what it holds before it is opened."""
    copied: Node = object.__new__(type(made))
    copied.__dict__.update(made.__dict__)
    return copied


def live_readers(plan: Plan) -> dict[str, list[str]]:
    """Returns station → the stations that read live edges from it."""
    found: dict[str, list[str]] = {}
    for task in plan.tasks:
        for subscription in (s for given in task.inputs for s in given.subscriptions):
            if subscription.latest is None:
                continue
            above = plan.task_of(subscription.channel.node)
            for slot in range(above.replicas):
                readers = found.setdefault(f"{above.name}-{slot}", [])
                readers += [f"{task.name}-{number}" for number in range(task.replicas)]
    return found
