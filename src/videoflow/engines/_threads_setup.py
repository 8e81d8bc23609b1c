"""What a run in threads is made of: the plan, and the memory backends that all of its replicas share.

Used by the threads engine, before the first thread starts. It refuses what the planner refuses, and makes
nothing that outlives the process.
"""

from videoflow.backends.capabilities import ExecutionCapabilities
from videoflow.backends.memory import (
    MemoryBroker,
    MemoryMessaging,
    MemoryPayloads,
    MemoryPool,
    MemoryRuntimeStore,
)
from videoflow.backends.outcomes import known
from videoflow.clock import RealClock
from videoflow.engines._accelerators import allocation_on, in_one_process, unsaid_sharing
from videoflow.engines._costs import costs_of
from videoflow.engines._machine import available_bytes, budget_bytes, processors
from videoflow.engines._provision import channel_specs, subscription_specs
from videoflow.engines._watch import WATCH_NODE, WatchSink, with_watch
from videoflow.graph import Node, instantiate
from videoflow.graph.running import RunRequest
from videoflow.planner import PlanFacts, plan_flow
from videoflow.planner.plan import TaskPlan

CALL_SECONDS = 30.0
CAPABILITIES = ExecutionCapabilities(
    engine="threads",
    isolates_crash=False,
    can_interrupt=False,
    crosses_processes=False,
    crosses_hosts=False,
    fuses=True,
    maximum_batch_items=None,
    clock_uncertainty_seconds=known(0.0, 0.0),
)


class Setup:
    """Everything that is checked and made before the first thread starts.

    Args:
        request: What to run, and how.
        clock: Time.

    Attributes:
        request: As given.
        clock: As given.
        plan: What is to run.
        store: Where the records of the run are kept.

    Raises:
        FlowError: The flow cannot run here as it is.
    """

    def __init__(self, request: RunRequest, clock: RealClock) -> None:
        self.request = request
        self.clock = clock
        available = available_bytes(clock.monotonic())
        budget = budget_bytes(request.options.memory_bytes, available)
        self._pool = MemoryPool(budget)
        self._broker = MemoryBroker(self._pool)
        self.store = MemoryRuntimeStore(clock)
        spec = with_watch(request.spec, request.watched) if request.watched else request.spec
        plan = plan_flow(
            spec,
            PlanFacts(
                engine=CAPABILITIES.engine,
                execution=CAPABILITIES,
                messaging=self.messaging("planner").capabilities(),
                payload=self.payloads("planner").capabilities(),
                runtime=self.store.capabilities(),
                memory_budget_bytes=budget,
                available_bytes=available,
                cpus=processors(),
                fuse=request.options.fuse,
                costs=costs_of(request, CAPABILITIES.engine),
                allocation=allocation_on(spec, request.options.gpu_policy, clock),
                gpu_sharing=unsaid_sharing(request.options.gpu_policy),
            ),
        )
        self.plan = in_one_process(plan, request.options.gpu_policy)

    def messaging(self, owner: str, clock: RealClock | None = None) -> MemoryMessaging:
        """Returns the messaging backend as one owner uses it, with a clock of its own where it has one."""
        return MemoryMessaging(self._broker, owner, clock or self.clock)

    def payloads(self, owner: str, clock: RealClock | None = None) -> MemoryPayloads:
        """Returns the payload store as one owner uses it, with a clock of its own where it has one."""
        return MemoryPayloads(self._pool, owner, clock or self.clock)

    def provision(self, run_id: str) -> None:
        """Makes the channels and subscriptions of a run."""
        backend = self.messaging("provisioner")
        deadline = self.clock.monotonic() + CALL_SECONDS
        for number, channel in enumerate(channel_specs(self.plan, run_id)):
            backend.ensure_channel(channel, f"{run_id}/c{number}", deadline=deadline)
        for number, subscription in enumerate(subscription_specs(self.plan, run_id)):
            backend.ensure_subscription(subscription, f"{run_id}/s{number}", deadline=deadline)

    def instances(self, task: TaskPlan, watch: WatchSink | None) -> dict[str, Node]:
        """Makes the nodes of one replica; the watching consumer is the caller's."""
        made: dict[str, Node] = {}
        for name in task.nodes:
            if name == WATCH_NODE and watch is not None:
                made[name] = watch
            else:
                made[name] = instantiate(
                    self.plan.spec.node(name), self.request.classes[name], self.plan.spec.folder
                )
        return made
