"""A plan in words: sections of plain tables for people, and a Mermaid diagram.

Used by `videoflow explain` and by notebooks, which only lay the sections out. It shows what stands in the
plan and computes nothing anew, so that it cannot disagree with the engine that runs the same document.
"""

from collections.abc import Iterator

from videoflow.backends.messaging import Reliability
from videoflow.graph.spec import NodeKind
from videoflow.planner._explained import admitted_sections, required_section
from videoflow.planner._keeping import effects_section, kept_section
from videoflow.planner._sections import Row as Row
from videoflow.planner._sections import Section as Section
from videoflow.planner._words import count_text, list_text, size_text
from videoflow.planner.plan import (
    ChannelPlan,
    ChannelRef,
    CommitOrder,
    EdgePlan,
    InputMode,
    Plan,
    SubscriptionPlan,
    TaskPlan,
    Transport,
)

_TAKES = {
    InputMode.SOURCE: "nothing, it is a source",
    InputMode.COMPETING: "whichever replica is free",
    InputMode.ORDERED: "in order",
    InputMode.JOIN: "in order, joined",
}
_CARRIED = {
    Transport.FUSED: "direct call",
    Transport.MEMORY: "memory",
    Transport.SHM: "shared memory",
}
_WORDS = {
    "task": "one or more nodes that run in one process and call each other directly",
    "channel": "the queue behind an output port; an item stays until every reader has settled it",
    "bound": "the most unsettled items and bytes in a channel; a writer waits when it is reached",
    "credit": "the most items that one reader may have taken and not settled yet",
    "spread": "how many inputs the replicas of a task may be ahead of the oldest that is not settled",
    "hold": "how many items an ordered reader must be able to keep until the one whose turn it is comes",
    "stateless": "publish the results, then settle the input; a repetition is recognised",
    "outbox": "commit state, positions and results together, then publish; nothing is out before it is safe",
    "markers": "items that go to on_control of every replica of a node; no input waits for them",
    "live": "when the reader is behind, the oldest item of the same key is dropped, and counted",
}


def explain_text(plan: Plan) -> list[Section]:
    """Returns the plan as sections, in the order in which to read them."""
    required = required_section(plan)
    sections = [_summary(plan), *([] if required is None else [required])]
    sections += [_tasks(plan), _edges(plan), _channels(plan), _memory(plan)]
    sections += [part for part in (kept_section(plan), effects_section(plan)) if part is not None]
    sections += admitted_sections(plan)
    if plan.outside_identity:
        sections.append(Section("Results may differ between runs and engines", plan.outside_identity))
    if plan.notes:
        sections.append(Section("Worth knowing", plan.notes))
    return [*sections, _words(plan)]


def plain_text(sections: list[Section]) -> str:
    """Lays sections out with spaces alone, for logs and files."""
    lines: list[str] = []
    for section in sections:
        lines += ["", section.title, *(f"  {sentence}" for sentence in section.sentences)]
        if section.rows:
            lines += list(_table(section))
    return "\n".join(line.rstrip() for line in lines[1:]) + "\n"


def _table(section: Section) -> Iterator[str]:
    cells = [section.columns, *(row.cells for row in section.rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(section.columns))]
    flush = [column in section.numbers for column in section.columns]

    def laid_out(line: tuple[str, ...]) -> str:
        parts = zip(line, widths, flush, strict=True)
        return "  " + "  ".join(
            f"{cell:>{width}}" if right else f"{cell:<{width}}" for cell, width, right in parts
        )

    yield laid_out(section.columns)
    for row in section.rows:
        yield laid_out(row.cells)
        for sentence in row.why:
            yield f"      {sentence}"


def _summary(plan: Plan) -> Section:
    fused = sum(edge.transport is Transport.FUSED for edge in plan.edges)
    sentences = [
        f"{count_text(len(plan.spec.nodes), 'node')} in {count_text(len(plan.tasks), 'task')}, joined by "
        f"{count_text(len(plan.channels), 'channel')}"
        + (f" and {count_text(fused, 'direct call')}" if fused else ""),
        f"items in flight take at most {size_text(plan.memory_bytes)} of the "
        f"{size_text(plan.memory_budget_bytes)} that they may",
    ]
    return Section(f"{plan.spec.flow_id} on {plan.engine}", tuple(sentences))


def _tasks(plan: Plan) -> Section:
    rows = [
        Row(
            (
                task.name,
                ", ".join(task.nodes),
                str(task.replicas),
                _TAKES[task.mode],
                "—" if not task.inputs and not task.outputs else task.order.value,
            ),
            task.why,
        )
        for task in plan.tasks
    ]
    return Section(
        "Tasks", (), ("task", "nodes", "replicas", "takes its input", "commits"), tuple(rows), ("replicas",)
    )


def _subscriptions(plan: Plan) -> Iterator[tuple[TaskPlan, SubscriptionPlan]]:
    for task in plan.tasks:
        for entry in task.inputs:
            for subscription in entry.subscriptions:
                yield task, subscription


def _edges(plan: Plan) -> Section:
    found = {(s.reader, s.channel.node, s.channel.port): s for _, s in _subscriptions(plan)}
    rows = []
    for edge in plan.edges:
        subscription = found.get((edge.reader or "", edge.parent, edge.port))
        why = [sentence for sentence in (edge.why, subscription.why if subscription else "") if sentence]
        rows.append(Row(_edge_cells(edge, subscription), tuple(why)))
    columns = ("edge", "carried by", "credit", "spread", "hold", "live")
    rows += list(_control_rows(plan))
    return Section("Edges", (), columns, tuple(rows), ("credit", "spread", "hold"))


def _control_rows(plan: Plan) -> Iterator[Row]:
    planned = {
        (s.reader, s.channel.node, s.channel.port): s
        for task in plan.tasks
        for control in task.controls
        for s in control.subscriptions
    }
    for edge in plan.controls:
        found = planned[edge.reader, edge.parent, edge.port]
        credit = f"{found.credit_items} / {size_text(found.credit_bytes)}"
        shown = f"{_port(edge.parent, edge.port)} → {edge.child} (markers)"
        yield Row((shown, _CARRIED[edge.transport], credit, "", "", _live(found)), (edge.why, found.why))


def _edge_cells(edge: EdgePlan, subscription: SubscriptionPlan | None) -> tuple[str, ...]:
    shown = f"{_port(edge.parent, edge.port)} → {edge.child}"
    if subscription is None:
        return (shown, _CARRIED[edge.transport], "", "", "", "")
    spread, hold = subscription.spread, subscription.hold_items
    return (
        shown,
        _CARRIED[edge.transport],
        f"{subscription.credit_items} / {size_text(subscription.credit_bytes)}",
        "" if spread is None else str(spread),
        str(hold) if hold else "",
        _live(subscription),
    )


def _live(subscription: SubscriptionPlan) -> str:
    latest = subscription.latest
    if latest is None:
        return ""
    kept = "the latest" if latest.capacity == 1 else f"the latest {latest.capacity}"
    per = f" of each {latest.key}" if latest.key else ""
    age = f", at most {latest.max_age_seconds:g} s old" if latest.max_age_seconds is not None else ""
    return f"{kept}{per}{age}"


def _channels(plan: Plan) -> Section:
    rows = [
        Row(
            (
                _channel(channel.ref),
                channel.writer if channel.slots == 1 else f"{channel.writer} x{channel.slots}",
                list_text(channel.readers),
                str(channel.bound_items),
                size_text(channel.item_bytes),
                size_text(channel.bound_bytes),
            ),
            (channel.why,) if channel.why else (),
        )
        for channel in plan.channels
    ]
    columns = ("channel", "written by", "read by", "bound", "items up to", "in bytes")
    return Section("Channels", (), columns, tuple(rows), ("bound", "items up to", "in bytes"))


def _memory(plan: Plan) -> Section:
    parts = [(f"channel {_channel(channel.ref)}", channel.bound_bytes) for channel in plan.channels]
    parts += [(f"next outputs of {_copies(task)}", task.replicas * task.step_bytes) for task in plan.tasks]
    rows = [
        Row((name, size_text(size_bytes)))
        for name, size_bytes in sorted(parts, key=lambda part: -part[1])
        if size_bytes
    ]
    rows.append(Row(("all together", size_text(plan.memory_bytes))))
    rows.append(Row(("allowed (--memory-bytes)", size_text(plan.memory_budget_bytes))))
    sentences = (_largest(plan.channels),) if plan.channels else ()
    return Section(
        "Memory for items in flight, at most", sentences, ("part", "bytes"), tuple(rows), ("bytes",)
    )


def _largest(channels: tuple[ChannelPlan, ...]) -> str:
    largest = sorted(channels, key=lambda channel: -channel.bound_bytes)[:3]
    shown = [f"{_channel(channel.ref)} ({size_text(channel.bound_bytes)})" for channel in largest]
    return f"the largest buffers: {list_text(shown)}"


def _copies(task: TaskPlan) -> str:
    return task.name if task.replicas == 1 else f"{task.name} x{task.replicas}"


def _words(plan: Plan) -> Section:
    subscriptions = [subscription for _, subscription in _subscriptions(plan)]
    is_used = {
        "spread": any(s.spread is not None for s in subscriptions),
        "hold": any(s.hold_items for s in subscriptions),
        "stateless": any(task.order is CommitOrder.STATELESS for task in plan.tasks),
        "outbox": any(task.order is CommitOrder.OUTBOX for task in plan.tasks),
        "live": any(s.latest is not None for s in subscriptions),
        "markers": bool(plan.controls),
        "channel": bool(plan.channels),
        "bound": bool(plan.channels),
        "credit": bool(plan.channels),
    }
    rows = [Row((word, meaning)) for word, meaning in _WORDS.items() if is_used.get(word, True)]
    return Section("Words", (), ("word", "meaning"), tuple(rows))


def _port(node: str, port: str) -> str:
    return node if port == "out" else f"{node}.{port}"


def _channel(ref: ChannelRef) -> str:
    return _port(ref.node, ref.port) + (" (live)" if ref.reliability is Reliability.LIVE else "")


def explain_mermaid(plan: Plan) -> str:
    """Returns the plan as a Mermaid flow chart: a frame is a fused task, a dotted arrow a live edge."""
    kinds = {node.name: node.kind for node in plan.spec.nodes}
    ids = {node.name: f"n{number}" for number, node in enumerate(plan.spec.nodes)}
    lines = ["flowchart LR"]
    for number, task in enumerate(plan.tasks):
        if len(task.nodes) == 1:
            lines.append(f"  {ids[task.name]}{_shape(kinds[task.name], _copies(task))}")
            continue
        lines.append(f'  subgraph t{number}["task {_copies(task)}"]')
        lines += [f"    {ids[node]}{_shape(kinds[node], node)}" for node in task.nodes]
        lines.append("  end")
    live = {(edge.child, edge.input) for edge in plan.spec.edges if edge.latest is not None}
    for edge in plan.edges:
        arrow = "-.->" if (edge.child, edge.input) in live else "-->"
        words = [edge.port] if edge.port != "out" else []
        words += [] if edge.transport is Transport.FUSED else [_CARRIED[edge.transport]]
        label = f'|"{", ".join(words)}"|' if words else ""
        lines.append(f"  {ids[edge.parent]} {arrow}{label} {ids[edge.child]}")
    for control in plan.controls:
        words = [control.port] if control.port != "out" else []
        label = ", ".join([*words, "markers", _CARRIED[control.transport]])
        lines.append(f'  {ids[control.parent]} -.->|"{label}"| {ids[control.child]}')
    return "\n".join(lines) + "\n"


def _shape(kind: NodeKind, label: str) -> str:
    if kind is NodeKind.PRODUCER:
        return f'(["{label}"])'
    return f'[/"{label}"/]' if kind is NodeKind.CONSUMER else f'["{label}"]'
