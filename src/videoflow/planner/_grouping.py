"""Which nodes may be one task (rule 20): by label, and asked again where costs would put them together.

Used by `make_tasks`. It reports all that keeps the nodes of a label apart, and refuses groups that would wait
for each other.
"""

from collections.abc import Iterator, Sequence

from videoflow.errors import Problem
from videoflow.graph.spec import ControlSpec, EdgeSpec, FlowSpec, NodeKind, NodeSpec
from videoflow.planner._words import list_text


def groups_by_label(spec: FlowSpec, *, fuse: bool) -> list[tuple[str | None, tuple[NodeSpec, ...]]]:
    """Returns the nodes of each label, None for one that has none or where labels are ignored."""
    labelled: dict[str, list[NodeSpec]] = {}
    groups: list[tuple[str | None, tuple[NodeSpec, ...]]] = []
    for node in spec.nodes:
        if fuse and isinstance(node.options.fuse, str):
            labelled.setdefault(node.options.fuse, []).append(node)
        else:
            groups.append((None, (node,)))
    return groups + [(label, tuple(members)) for label, members in labelled.items()]


def entry_of(
    spec: FlowSpec, label: str | None, members: tuple[NodeSpec, ...]
) -> tuple[list[Problem], NodeSpec | None]:
    """Judges one group (rule 20), and finds its entry."""
    if len(members) == 1:
        return [], members[0]
    problems = [
        Problem(node.name, f"it cannot be fused as {label!r}: {cause}", remedy)
        for node, cause, remedy in _against(spec, members)
    ]
    return problems, members[0]


def first_cause(spec: FlowSpec, members: tuple[NodeSpec, ...]) -> str | None:
    """Returns what keeps nodes from being one task, or None."""
    return next((cause for _, cause, _ in _against(spec, members)), None)


def circle_problems(spec: FlowSpec, groups: Sequence[tuple[NodeSpec, ...]]) -> Iterator[Problem]:
    """Yields groups that would wait for each other: by their items, or for the rest of their markers."""
    group_of = {node.name: nodes[0].name for nodes in groups for node in nodes}
    known = [(p.node, node.name) for node in spec.nodes for e in spec.inputs(node.name) for p in e.parents]
    known += [(p.node, control.child) for control in spec.controls for p in control.parents]
    left = {(group_of[parent], group_of[child]) for parent, child in known}
    left = {(above, below) for above, below in left if above != below}
    while True:  # what begins nowhere and what leads nowhere is on no circle
        aboves, belows = {above for above, _ in left}, {below for _, below in left}
        on = {(above, below) for above, below in left if above in belows and below in aboves}
        if on == left:
            break
        left = on
    waiting = {above for above, _ in left}
    for first, *others in groups:
        if first.name in waiting and others:
            cause = f"{list_text(sorted(waiting))} would wait for each other's items or markers"
            message = f"it cannot be fused as {first.options.fuse!r}: {cause}"
            yield Problem(first.name, message, "take the label off one of them")


def by_entry(spec: FlowSpec, groups: Sequence[tuple[NodeSpec, ...]]) -> list[tuple[NodeSpec, ...]]:
    """Returns groups in the order of their entries in the flow."""
    position = {node.name: index for index, node in enumerate(spec.nodes)}
    return sorted(groups, key=lambda nodes: position[nodes[0].name])


def _against(spec: FlowSpec, members: tuple[NodeSpec, ...]) -> Iterator[tuple[NodeSpec, str, str]]:
    """Yields what keeps nodes from being one task (rule 20): at which node, why, and the remedy."""
    names = {node.name for node in members}
    first = members[0]
    for node in members[1:]:
        for edge in spec.inputs(node.name):
            outside = [str(parent) for parent in edge.parents if parent.node not in names]
            if outside:
                cause = f"{first.name} is where the group begins, and {node.name} also reads"
                yield node, f"{cause} {list_text(outside)} from outside", "give it another label"
            elif edge.latest is not None:
                yield node, f"its edge from {edge.name} is live", "take .latest() away or the label"
        if not spec.inputs(node.name):
            yield node, f"a source begins a group, and so does {first.name}", "give it another label"
        if node.options.replicas != first.options.replicas:
            wanted, found = first.options.replicas, node.options.replicas
            cause = f"{first.name} has replicas={wanted} and {node.name} has replicas={found}"
            yield node, cause, "give both the same number"
        if node.options.partition_by is not None:
            remedy = f"set it on {first.name}"
            yield node, "partition_by belongs to the node where the group begins", remedy
        if node.options.image != first.options.image:
            yield node, f"its image is not that of {first.name}", "give both the same image"
    for node, cause in (*_against_sinks(spec, members), *_against_batches(members)):
        yield node, cause, "leave it out of the group"


def _against_sinks(spec: FlowSpec, members: Sequence[NodeSpec]) -> Iterator[tuple[NodeSpec, str]]:
    """Yields sinks that keep a group from being one task, and why."""
    sinks = [node for node in members if node.traits.checkpoints]
    yield from ((sinks[-1], cause) for cause in _against_checkpoints(spec, members, sinks))
    for sink, above in _keyed_below_chance(spec, members):
        yield sink, f"its effect key stands for one effect, and {above} may answer anew before it commits"


def _against_batches(members: Sequence[NodeSpec]) -> Iterator[tuple[NodeSpec, str]]:
    """Yields nodes that cannot gather their inputs within a group, and why."""
    for node in members[1:]:
        if node.options.batch is not None:
            yield node, f"{members[0].name} would hand it one input at a time, and it says batch="


def _keyed_below_chance(spec: FlowSpec, members: Sequence[NodeSpec]) -> Iterator[tuple[NodeSpec, str]]:
    """Yields sinks with effect keys, with a node above in their group that is not deterministic."""
    chance: dict[str, str] = {}
    for node in members:
        above = [parent.node for edge in spec.inputs(node.name) for parent in edge.parents]
        found = next((chance[name] for name in above if name in chance), None)
        if found is not None and node.kind is NodeKind.CONSUMER and node.traits.effect_key_seconds != 0:
            yield node, found
        if found is not None or not node.options.deterministic:
            chance[node.name] = found or node.name


def _against_checkpoints(
    spec: FlowSpec, members: Sequence[NodeSpec], sinks: Sequence[NodeSpec]
) -> Iterator[str]:
    """Yields why a sink cannot say for a whole task what of its input is durable."""
    if not sinks:
        return
    first, sink, names = members[0], sinks[-1], {node.name for node in members}
    if len(sinks) > 1:
        yield f"{list_text([node.name for node in sinks])} make checkpoints, each of its own inputs"
    if first.kind is NodeKind.PRODUCER:
        yield f"it makes checkpoints, and {first.name} has no input that could wait for them"
    if len(sink.scope) > len(first.scope):
        yield f"it may make a part durable of what {sink.scope[-1]} makes of one input"
    edges: list[EdgeSpec | ControlSpec] = [*spec.edges, *spec.controls]
    read = {ref for edge in edges if edge.child not in names for ref in edge.parents}
    outside = sorted(str(ref) for ref in read if ref.node in names)
    if outside:
        yield f"{list_text(outside)} is read outside, and would wait until it has made inputs durable"
