"""A plan as text for people, and as a Mermaid diagram. Used by `videoflow explain`.

It shows what stands in the plan and computes nothing, so that it cannot disagree with the engine.
"""

from collections.abc import Iterator

from rich.text import Text

from videoflow.cli._table import Table, indented
from videoflow.cli._units import plural, show_bytes
from videoflow.graph.spec import NodeKind
from videoflow.planner.plan import ChannelRef, EdgePlan, InputMode, Plan, SubscriptionPlan, Transport

_TAKES = {
    InputMode.SOURCE: "nothing (source)",
    InputMode.COMPETING: "competing",
    InputMode.ORDERED: "in order",
    InputMode.JOIN: "join by trace",
}


def plan_lines(plan: Plan, width: int | None) -> Iterator[Text]:
    """Yields the plan line by line: tasks, edges, channels, what differs between runs, notes.

    Args:
        plan: What the engine would run.
        width: Columns to keep to, or None for lines as long as they are.
    """
    yield Text.assemble(
        (plan.spec.flow_id, "bold"),
        f" on {plan.engine}: {plural(len(plan.tasks), 'task')}, {plural(len(plan.channels), 'channel')}",
    )
    yield Text(
        f"items in flight take at most {show_bytes(plan.memory_bytes)}"
        f" of the {show_bytes(plan.memory_budget_bytes)} allowed"
    )
    for title, table in (
        ("Tasks", _tasks(plan)),
        ("Edges", _edges(plan)),
        ("Channels", _channels(plan)),
    ):
        if table.rows:
            yield Text("")
            yield Text(title, style="bold underline")
            yield from table.lines(width)
    for title, sentences in (
        ("Results may differ between runs and engines by", plan.outside_identity),
        ("Worth knowing", plan.notes),
    ):
        if sentences:
            yield Text("")
            yield Text(title, style="bold underline")
            for sentence in sentences:
                yield from indented(sentence, width)


def _tasks(plan: Plan) -> Table:
    made = Table(("task", "nodes", "replicas", "takes", "commits"), numbers=("replicas",))
    fused = any(len(task.nodes) > 1 for task in plan.tasks)
    for task in plan.tasks:
        made.add(
            (task.name, "cyan"),
            ", ".join(task.nodes) if fused else "",
            str(task.replicas),
            _TAKES[task.mode],
            task.order.value,
            notes=task.why,
        )
    return made.without_zeros("nodes")


def _edges(plan: Plan) -> Table:
    made = Table(
        ("edge", "transport", "credit", "spread", "hold", "live"), numbers=("credit", "spread", "hold")
    )
    subscriptions = {
        (subscription.reader, subscription.channel.node, subscription.channel.port): subscription
        for task in plan.tasks
        for entry in task.inputs
        for subscription in entry.subscriptions
    }
    for edge in plan.edges:
        found = subscriptions.get((edge.reader or "", edge.parent, edge.port))
        why = [sentence for sentence in (edge.why, found.why if found else "") if sentence]
        made.add(
            (f"{_port(edge.parent, edge.port)} → {edge.child}", "cyan"),
            edge.transport.value,
            f"{found.credit_items} / {show_bytes(found.credit_bytes)}" if found else "",
            str(found.spread) if found and found.spread is not None else "",
            str(found.hold_items) if found and found.hold_items else "",
            _live(found),
            notes=why,
        )
    return made.without_zeros("spread", "hold", "live", "credit")


def _live(subscription: SubscriptionPlan | None) -> str:
    """Returns what a live edge keeps, or nothing for a lossless one."""
    if subscription is None or subscription.latest is None:
        return ""
    latest = subscription.latest
    kept = "latest" if latest.capacity == 1 else f"latest {latest.capacity}"
    per = f" per {latest.key}" if latest.key else ""
    age = f", at most {latest.max_age_seconds:g} s old" if latest.max_age_seconds is not None else ""
    return f"{kept}{per}{age}"


def _channels(plan: Plan) -> Table:
    made = Table(
        ("channel", "writers", "transport", "bound", "of at most", "bytes", "readers"),
        numbers=("writers", "bound", "of at most", "bytes"),
    )
    for channel in plan.channels:
        made.add(
            (_channel(channel.ref), "cyan"),
            str(channel.slots),
            channel.transport.value,
            str(channel.bound_items),
            show_bytes(channel.item_bytes),
            show_bytes(channel.bound_bytes),
            ", ".join(channel.readers),
            notes=[channel.why] if channel.why else [],
        )
    return made


def _port(node: str, port: str) -> str:
    return node if port == "out" else f"{node}.{port}"


def _channel(ref: ChannelRef) -> str:
    return _port(ref.node, ref.port) + (" (live)" if ref.reliability == "live" else "")


def mermaid(plan: Plan) -> str:
    """Returns the plan as a Mermaid flowchart: a frame is a fused task, a dotted arrow a live edge."""
    kinds = {node.name: node.kind for node in plan.spec.nodes}
    numbers = {node.name: f"n{index}" for index, node in enumerate(plan.spec.nodes)}
    lines = ["flowchart LR"]
    for index, task in enumerate(plan.tasks):
        times = f" x{task.replicas}" if task.replicas > 1 else ""
        framed = len(task.nodes) > 1
        if framed:
            lines.append(f'    subgraph t{index}["task {task.name}{times}"]')
        for node in task.nodes:
            label = node if framed else f"{node}{times}"
            left, right = _shape(kinds[node])
            lines.append(f'    {"    " if framed else ""}{numbers[node]}{left}"{label}"{right}')
        if framed:
            lines.append("    end")
    lines += [f"    {_arrow(plan, edge, numbers)}" for edge in plan.edges]
    return "\n".join(lines) + "\n"


def _shape(kind: NodeKind) -> tuple[str, str]:
    return {NodeKind.PRODUCER: ("([", "])"), NodeKind.PROCESSOR: ("[", "]"), NodeKind.CONSUMER: ("[/", "/]")}[
        kind
    ]


def _arrow(plan: Plan, edge: EdgePlan, numbers: dict[str, str]) -> str:
    drawn = next((e for e in plan.spec.edges if e.child == edge.child and e.input == edge.input), None)
    arrow = "-.->" if drawn is not None and drawn.latest is not None else "-->"
    words = [edge.port] if edge.port != "out" else []
    words += [edge.transport.value] if edge.transport is not Transport.FUSED else []
    label = f'|"{", ".join(words)}"| ' if words else " "
    return f"{numbers[edge.parent]} {arrow}{label}{numbers[edge.child]}"
