"""Puts a plan together from tasks, wiring and sizes."""

from collections.abc import Sequence

import msgspec

from videoflow.backends.messaging import Reliability
from videoflow.errors import FlowInvalid, Problem
from videoflow.graph.spec import FlowSpec, PortRef
from videoflow.planner._admitted import CompositionPlan
from videoflow.planner._composition import plan_composition
from videoflow.planner._facts import PlanFacts
from videoflow.planner._fitting import Fit, fit
from videoflow.planner._markers import marker_subscription
from videoflow.planner._notes import identity_exceptions, notes
from videoflow.planner._ports import size_reason
from videoflow.planner._requiring import execution_on, requirements_of
from videoflow.planner._tasks import Task, make_tasks
from videoflow.planner._wiring import Reading, Wiring, wire
from videoflow.planner._words import count_text, size_text
from videoflow.planner.plan import (
    ChannelPlan,
    ChannelRef,
    ControlEdgePlan,
    ControlPlan,
    EdgePlan,
    InputMode,
    InputPlan,
    OutputPlan,
    Plan,
    SubscriptionPlan,
    TaskPlan,
    Transport,
)

RECORD_BYTES = 256 << 10


def plan_flow(spec: FlowSpec, facts: PlanFacts) -> Plan:
    """Plans a flow for one engine; pure, and before anything is provisioned.

    Args:
        spec: The compiled flow.
        facts: What the engine and its backends guarantee, and what was observed.

    Raises:
        FlowInvalid: The flow cannot be cut into tasks; every problem is listed.
        NotYet: It asks for something that is not built yet.
        IncompatibleProfile: The backends cannot give what the flow needs; every miss is listed.
        MemoryShort: Its buffers do not fit the budget, or the budget does not fit the machine.
        UnobservableState: The available memory, or a guarantee, could not be read.
    """
    tasks = make_tasks(spec, facts)
    wiring = wire(spec, tasks)
    transport = Transport.SHM if facts.execution.crosses_processes else Transport.MEMORY
    _admit(wiring, facts)  # before any size is judged: what the backends cannot give is said first
    fitted = fit(wiring, facts)
    _check_records(wiring, facts, fitted)
    admitted = _admit(wiring, facts, fitted)
    return Plan(
        engine=facts.engine,
        spec=spec,
        tasks=tuple(_task_plan(wiring, facts, fitted, task) for task in tasks),
        channels=tuple(
            _channel_plan(wiring, facts, fitted, channel, transport) for channel in wiring.writers
        ),
        edges=_edges(wiring, transport),
        memory_bytes=fitted.memory_bytes,
        memory_budget_bytes=facts.memory_budget_bytes,
        outside_identity=identity_exceptions(wiring),
        notes=(*notes(wiring, facts, fitted), *admitted.notes),
        admitted=admitted,
        controls=_control_edges(wiring, transport),
        costs=facts.costs if facts.fuse else None,
    )


def _check_records(wiring: Wiring, facts: PlanFacts, fitted: Fit) -> None:
    """Refuses answers that are too large to be recorded, one by one, before they are published."""
    most = min(facts.messaging.maximum_envelope_bytes or RECORD_BYTES, RECORD_BYTES)
    found = {t.name: fitted.sizing.reserves[t.name] // t.replicas for t in wiring.tasks if t.answers_once}
    problems = [
        Problem(
            name,
            f"its replicas record each answer, up to {size_text(size)}, and {size_text(most)} fit a record",
            "say max_item_bytes on its class, partition_by=, replicas=1, or leave deterministic=False out",
        )
        for name, size in found.items()
        if size > most
    ]
    if problems:
        raise FlowInvalid(problems)


def _admit(wiring: Wiring, facts: PlanFacts, fitted: Fit | None = None) -> CompositionPlan:
    return plan_composition(
        requirements_of(wiring, facts, fitted),
        facts.messaging,
        facts.payload,
        facts.runtime,
        facts.allocation,
        execution_on(facts),
        payload_refs_in_use=bool(wiring.writers),
    )


def _task_plan(wiring: Wiring, facts: PlanFacts, fitted: Fit, task: Task) -> TaskPlan:
    readings = wiring.read_by(task)
    inputs = tuple(
        InputPlan(
            index=edge.input,
            name=edge.name,
            subscriptions=tuple(_subscription(fitted, facts, r) for r in readings if r.edge is edge),
        )
        for edge in wiring.spec.inputs(task.name)
    )
    ports = {(channel.node, channel.port): channel for channel in wiring.written_by(task)}
    item_bytes = [fitted.sizing.port(channel).item_bytes for channel in ports.values()]
    prefetch, why = _prefetch(fitted, facts, task, readings)
    return TaskPlan(
        name=task.name,
        nodes=tuple(node.name for node in task.nodes),
        replicas=task.replicas,
        mode=task.mode,
        order=task.order,
        inputs=inputs,
        outputs=tuple(
            OutputPlan(
                node=node,
                port=port,
                channels=tuple(c for c in wiring.written_by(task) if (c.node, c.port) == (node, port)),
            )
            for node, port in ports
        ),
        max_item_bytes=max(item_bytes, default=0),
        prefetch=prefetch,
        checkpoint_items=task.holds_items,
        why=(*task.why, *why),
        step_bytes=fitted.sizing.reserves[task.name] // task.replicas,
        batch_items=task.batch,
        publish_window=facts.defaults.publish_window,
        controls=_controls(wiring, fitted, task),
    )


def _controls(wiring: Wiring, fitted: Fit, task: Task) -> tuple[ControlPlan, ...]:
    sizing, mine = fitted.sizing, [reading for reading in wiring.markers if reading.task is task]
    return tuple(
        ControlPlan(
            node=control.child,
            name=control.name,
            subscriptions=tuple(
                marker_subscription(r, sizing.port(r.channel), sizing.markers[r.channel])
                for r in mine
                if r.control is control
            ),
        )
        for control in wiring.spec.controls
        if any(reading.control is control for reading in mine)
    )


def _prefetch(
    fitted: Fit, facts: PlanFacts, task: Task, readings: Sequence[Reading]
) -> tuple[int, tuple[str, ...]]:
    if task.mode is not InputMode.COMPETING:
        return facts.defaults.prefetch if readings else 0, ()
    if any(reading.edge.latest for reading in readings):
        return 0, ("nothing is prefetched from a live edge, where it would grow old",)
    spread = min(need.spread for need in map(fitted.sizing.need, readings) if need.spread is not None)
    fair = max(0, spread // task.replicas - task.batch)
    largest = max(fitted.sizing.port(reading.channel).item_bytes for reading in readings)
    prefetch = facts.defaults.prefetch_of(largest, task.replicas)
    if fair < prefetch:
        return fair, (f"{fair} prefetched by each replica, so that none takes the whole spread of {spread}",)
    return prefetch, (f"{prefetch} prefetched by each replica, so that it does not wait between inputs",)


def _subscription(fitted: Fit, facts: PlanFacts, reading: Reading) -> SubscriptionPlan:
    need, room = fitted.sizing.need(reading), fitted.rooms[reading.channel]
    port = fitted.sizing.port(reading.channel)
    is_live = reading.edge.latest is not None
    hold_bytes = need.items * port.item_bytes
    if is_live:
        items, size_bytes = need.items, hold_bytes
    elif need.whole:
        items, size_bytes = room.items, room.size_bytes
    else:
        beside_bytes = need.siblings * port.item_bytes
        items = min(max(need.items, facts.defaults.credit_items), room.items)
        size_bytes = min(room.size_bytes - beside_bytes, max(hold_bytes, facts.defaults.credit_bytes))
    exclusive = reading.task.mode is not InputMode.COMPETING
    return SubscriptionPlan(
        channel=reading.channel,
        reader=reading.reader,
        exclusive=exclusive,
        credit_items=items,
        credit_bytes=size_bytes,
        spread=need.spread,
        hold_items=need.items if exclusive else 0,
        latest=reading.edge.latest,
        scope=len(port.scope),
        why="; ".join(filter(None, (need.why() if exclusive else "", need.spread_why))),
    )


def _channel_plan(
    wiring: Wiring, facts: PlanFacts, fitted: Fit, channel: ChannelRef, transport: Transport
) -> ChannelPlan:
    task, room, sizing = wiring.writers[channel], fitted.rooms[channel], fitted.sizing
    port, readings = sizing.port(channel), wiring.readers(channel)
    markers = [reading.reader for reading in wiring.markers_on(channel)]
    floor = sizing.floors[channel]
    readers = sorted(readings, key=lambda r: -sizing.need(r).room(port.burst))
    reasons = [f"at least {count_text(floor, 'item')} for {[*(r.reader for r in readers), *markers][0]}"]
    if port.burst > 1:
        reasons.append(f"one input of {task.name} makes up to {port.burst} at once")
    if sizing.beside(channel):
        reasons.append(f"{sizing.beside(channel)} more because paths beside it look ahead")
    if channel.partitions > 1:
        reasons.append(f"in each of {channel.partitions} partitions by {(channel.key or '').split(':')[0]}")
    if channel.reliability is Reliability.LIVE:
        reasons.append("it never blocks: what is not taken in time is dropped and counted")
    elif room.size_bytes * channel.partitions > sizing.floor_bytes(channel):
        reasons.append("the rest evens out speeds")
    if room.is_shrunk:
        reasons.append("lowered to fit the memory budget")
    size_from = size_reason(wiring.spec, facts, channel.node)
    reasons.append(f"items of up to {size_text(port.item_bytes)}: {size_from}")
    return ChannelPlan(
        ref=channel,
        writer=task.name,
        slots=task.replicas,
        bound_items=room.items,
        bound_bytes=room.size_bytes,
        item_bytes=port.item_bytes,
        transport=transport,
        readers=(*(reading.reader for reading in readings), *markers),
        why="; ".join(reasons),
    )


def _control_edges(wiring: Wiring, transport: Transport) -> tuple[ControlEdgePlan, ...]:
    return tuple(
        ControlEdgePlan(
            parent=reading.parent.node,
            port=reading.parent.port,
            child=reading.control.child,
            replicas=reading.task.replicas,
            transport=transport,
            reader=reading.reader,
            why="markers, to every replica, beside its inputs",
        )
        for reading in wiring.markers
    )


def _edges(wiring: Wiring, transport: Transport) -> tuple[EdgePlan, ...]:
    readers = {(r.task.name, r.edge.input, r.parent): r.reader for r in wiring.readings}
    apart = {task.name: task.apart for task in wiring.tasks}
    found = []
    for edge in wiring.spec.edges:
        for parent in edge.parents:
            reader = readers.get((edge.child, edge.input, parent))
            made = _edge(edge.child, edge.input, parent, reader, transport)
            if reason := apart.get(edge.child):
                made = msgspec.structs.replace(made, why=f"{made.why}; not a direct call: {reason}")
            found.append(made)
    return tuple(found)


def _edge(child: str, index: int, parent: PortRef, reader: str | None, transport: Transport) -> EdgePlan:
    if reader is None:
        carried, why = Transport.FUSED, "a direct call: both nodes are in one task"
    elif transport is Transport.SHM:
        carried, why = transport, "bytes once into shared memory, a reference to the reader's process"
    else:
        carried, why = transport, "a reference: both tasks are in this process"
    return EdgePlan(
        parent=parent.node,
        port=parent.port,
        child=child,
        input=index,
        transport=carried,
        reader=reader,
        why=why,
    )
