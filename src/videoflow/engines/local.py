"""The local engine: every task replica in a process of its own on this machine, without a server.

Used by `run-local` and by `Flow.start`. Messages and payloads go through shared memory, run records into one
SQLite file. It refuses to run anywhere but on Linux, and to start anything before all was checked and made;
what a failed start had made is gone again.
"""

import os
import sys
from contextlib import ExitStack

from videoflow.adapters import shm, sqlite
from videoflow.adapters.notebook import dump_classes
from videoflow.backends.capabilities import ExecutionCapabilities
from videoflow.backends.messaging import ChannelId
from videoflow.backends.outcomes import Known, known
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import RealClock
from videoflow.engines._accelerators import allocation_on, reserved, unsaid_sharing, with_devices_shown
from videoflow.engines._costs import costs_of
from videoflow.engines._local_run import LocalRun
from videoflow.engines._local_supervisor import Common
from videoflow.engines._machine import available_bytes, budget_bytes, processors
from videoflow.engines._outputs import claim_outputs, outputs_of
from videoflow.engines._past import Past
from videoflow.engines._provision import channel_specs, markers_of, subscription_specs, subscriptions_of
from videoflow.engines._report import iso_time
from videoflow.engines._suspended import resumption_of
from videoflow.engines.run_folder import RunFolder
from videoflow.errors import EnvironmentFault, NotYet
from videoflow.graph.running import RunRequest
from videoflow.graph.spec import CodeKind
from videoflow.ids import new_ulid
from videoflow.planner import PlanFacts, plan_flow
from videoflow.planner.plan import Plan, TaskPlan
from videoflow.worker import channel_id

CAPABILITIES = ExecutionCapabilities(
    engine="local",
    isolates_crash=True,
    can_interrupt=True,
    crosses_processes=True,
    crosses_hosts=False,
    fuses=True,
    maximum_batch_items=None,
    clock_uncertainty_seconds=known(0.0, 0.0),
)
_LOG_SHARE_BYTES = 256 << 20


class LocalEngine:
    """Runs flows in processes of this machine."""

    name = "local"

    def plan(self, request: RunRequest) -> Plan:
        """Returns the plan that `start` would run.

        Raises:
            EnvironmentFault: This is not Linux.
            FlowError: The flow cannot run here as it is.
        """
        clock = RealClock()
        return with_devices_shown(_plan(request, clock), request.options.gpu_policy, clock)

    def start(self, request: RunRequest) -> LocalRun:
        """Plans, provisions and starts; see `Engine.start`."""
        clock = RealClock()
        plan = _plan(request, clock)
        run_id = new_ulid(clock.wall(), os.urandom(10))
        resumption = resumption_of(request, plan, clock)
        with ExitStack() as made:
            made.callback(claim_outputs(outputs_of(plan.spec), run_id).release)
            folder = RunFolder.create(
                request.options.runs_folder,
                run_id,
                engine=self.name,
                flow_id=plan.spec.flow_id,
                started_at=iso_time(clock.wall()),
            )
            with ExitStack() as undone:
                undone.callback(folder.remove)
                folder.write_spec(plan.spec)
                folder.write_plan(plan)
                devices = made.enter_context(reserved(plan, run_id, request.options.gpu_policy, clock))
                store = sqlite.SqliteStore(folder.store_path, clock)
                made.callback(store.close)
                available = available_bytes(clock.monotonic())
                left = available.value if isinstance(available, Known) else None
                host = shm.ShmHost(clock, plan.memory_budget_bytes + _LOG_SHARE_BYTES, left)
                made.callback(host.close)
                shapes = [_shape(plan, task, run_id) for task in plan.tasks]
                host.provision(channel_specs(plan, run_id), subscription_specs(plan, run_id), shapes)
                common = Common(
                    plan=plan,
                    plan_document=folder.plan_path.read_bytes(),
                    run_id=run_id,
                    folder=folder.path,
                    logs=folder.logs_path,
                    import_path=tuple(map(os.path.abspath, sys.path)),
                    classes=_notebook_classes(request, plan),
                    options=request.options,
                    devices=devices,
                )
                runtime = FlowRuntime(store, run_id)
                past = Past(plan, run_id, runtime, resumption, clock)
                undone.callback(past.give_back)
                past.begin()
                run = LocalRun(common, folder, host, runtime, past, clock)
                run.begin(made.pop_all())
                undone.pop_all()
        return run


def _plan(request: RunRequest, clock: RealClock) -> Plan:
    if sys.platform != "linux":
        raise EnvironmentFault(
            "the local engine needs Linux",
            cause=f"this is {sys.platform}, which has no memory that processes share without a name",
            remedy="run with --engine threads",
        )
    if request.watched:
        raise NotYet("watch on the local engine", remedy='use engine="threads", or Collect()')
    now = clock.monotonic()
    available = available_bytes(now)
    budget = budget_bytes(request.options.memory_bytes, available)
    return plan_flow(
        request.spec,
        PlanFacts(
            engine=LocalEngine.name,
            execution=CAPABILITIES,
            messaging=shm.CAPABILITIES,
            payload=shm.payload_capabilities(now, budget),
            runtime=sqlite.CAPABILITIES,
            memory_budget_bytes=budget,
            available_bytes=available,
            cpus=processors(),
            fuse=request.options.fuse,
            costs=costs_of(request, LocalEngine.name),
            allocation=allocation_on(request.spec, request.options.gpu_policy, clock),
            gpu_sharing=unsaid_sharing(request.options.gpu_policy),
        ),
    )


def _shape(plan: Plan, task: TaskPlan, run_id: str) -> shm.TaskShape:
    """Returns a task as the log sees it; a replica has payload memory for all that it may have in flight."""
    flow_id = plan.spec.flow_id
    writes = [ref for output in task.outputs for ref in output.channels]
    bounds = {channel.ref: channel.bound_bytes * channel.ref.partitions for channel in plan.channels}
    in_flight = sum(bounds[ref] for ref in writes)
    largest = task.max_item_bytes
    return shm.TaskShape(
        name=task.name,
        replicas=task.replicas,
        reads=tuple(
            name
            for reader, _, name in (*subscriptions_of(plan, run_id), *markers_of(plan, run_id))
            if reader.name == task.name
        ),
        writes=tuple[ChannelId, ...](channel_id(ref, flow_id, run_id) for ref in writes),
        slab_bytes=in_flight + task.step_bytes + largest if writes else 0,
        largest_bytes=largest,
    )


def _notebook_classes(request: RunRequest, plan: Plan) -> dict[str, bytes]:
    """Returns, by task, the classes that have no importable name."""
    found = {}
    for task in plan.tasks:
        names = [name for name in task.nodes if plan.spec.node(name).code is CodeKind.NOTEBOOK]
        if names:
            found[task.name] = dump_classes({name: request.classes[name] for name in names})
    return found
