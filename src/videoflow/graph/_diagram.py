"""A flow as a picture: Mermaid text, and a small table for notebooks.

Used by `Flow` and by the command line. It draws what is in the document and judges nothing.
"""

import html

from videoflow.graph.spec import EdgeSpec, FlowSpec, NodeKind, NodeSpec

_SHAPES = {
    NodeKind.PRODUCER: ("([", "])"),
    NodeKind.PROCESSOR: ("[", "]"),
    NodeKind.CONSUMER: ("[/", "/]"),
}
_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top"


def mermaid(spec: FlowSpec) -> str:
    """Returns the graph as a Mermaid flow chart; live edges and those of markers are dotted."""
    number = {node.name: f"n{index}" for index, node in enumerate(spec.nodes)}
    lines = ["flowchart LR"]
    for node in spec.nodes:
        left, right = _SHAPES[node.kind]
        label = node.name if node.options.replicas == 1 else f"{node.name} x {node.options.replicas}"
        lines.append(f'  {number[node.name]}{left}"{label}"{right}')
    for edge in spec.edges:
        for parent in edge.parents:
            arrow = "-.->" if edge.latest else "-->"
            label = "" if parent.port == _main_port(spec, parent.node) else f"|{parent.port}|"
            lines.append(f"  {number[parent.node]} {arrow}{label} {number[edge.child]}")
    for control in spec.controls:
        for parent in control.parents:
            port = "" if parent.port == _main_port(spec, parent.node) else f"{parent.port}, "
            lines.append(f"  {number[parent.node]} -.->|{port}markers| {number[control.child]}")
    return "\n".join(lines) + "\n"


def table(spec: FlowSpec) -> str:
    """Returns the graph as an HTML table: one row per node, what it is, what it reads."""
    head = "".join(f'<th style="{_CELL}">{title}</th>' for title in ("node", "is a", "reads", "options"))
    rows = "".join(f"<tr>{_row(spec, node)}</tr>" for node in spec.nodes)
    title = html.escape(f"flow {spec.flow_id}")
    return f"<div><b>{title}</b><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _row(spec: FlowSpec, node: NodeSpec) -> str:
    markers = spec.control(node.name)
    reads = ", ".join(_reading(edge) for edge in spec.inputs(node.name))
    reads += f", {markers.name} (markers)" if markers is not None else ""
    options = [f"replicas={node.options.replicas}"] if node.options.replicas > 1 else []
    options += [f"fuse={node.options.fuse}"] if node.options.fuse else []
    texts = (node.name, f"{node.qualname} ({node.kind})", reads, ", ".join(options))
    return "".join(f'<td style="{_CELL}">{html.escape(text)}</td>' for text in texts)


def _reading(edge: EdgeSpec) -> str:
    return f"{edge.name} (latest)" if edge.latest else edge.name


def _main_port(spec: FlowSpec, name: str) -> str:
    return next(iter(spec.node(name).ports), "out")
