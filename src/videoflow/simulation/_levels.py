"""What the results of a node may be compared for, judged from the graph.

The claim of equal results is for lossless edges and deterministic nodes; whatever lies outside of it is
compared for less, and never for nothing.
"""

from collections.abc import Collection
from enum import IntEnum

from videoflow.graph.spec import FlowSpec, NodeKind, NodeSpec


class Level(IntEnum):
    """How the inputs of a node compare with those of a run without faults.

    `EXACT`: equal. `SUBSET`: what came is equal, and the rest was accounted for. `VALUES`: each value that
    came also comes without faults, under whatever number. `SAME`: whatever comes again is equal to what came
    before.
    """

    SAME = 0
    VALUES = 1
    SUBSET = 2
    EXACT = 3


def levels_of(
    spec: FlowSpec, *, own_state: bool, lossy: bool = False, renumbered: Collection[str] = ()
) -> dict[str, Level]:
    """Returns node → level of its inputs; see `levels_made_of`."""
    return _levels(spec, own_state=own_state, lossy=lossy, renumbered=renumbered)[0]


def levels_made_of(
    spec: FlowSpec, *, own_state: bool, lossy: bool = False, renumbered: Collection[str] = ()
) -> dict[str, Level]:
    """Returns node → level of what it makes.

    Args:
        spec: The flow.
        own_state: Nodes with state keep it apart for each source.
        lossy: Anything may have been lost anywhere, as when the run was aborted.
        renumbered: Live sources that began another epoch, so that their items have other numbers.
    """
    return _levels(spec, own_state=own_state, lossy=lossy, renumbered=renumbered)[1]


def _levels(
    spec: FlowSpec, *, own_state: bool, lossy: bool, renumbered: Collection[str]
) -> tuple[dict[str, Level], dict[str, Level]]:
    levels: dict[str, Level] = {}
    made: dict[str, Level] = {}
    sources: dict[str, frozenset[str]] = {}
    for node in spec.nodes:
        inputs = spec.inputs(node.name)
        sources[node.name] = frozenset(
            source for edge in inputs for parent in edge.parents for source in sources[parent.node]
        ) or frozenset({node.name})
        level = Level.EXACT
        for edge in inputs:
            above = min(made[parent.node] for parent in edge.parents)
            level = min(level, above, Level.SUBSET if edge.latest is not None or lossy else Level.EXACT)
        if level < Level.EXACT and len(inputs) > 1 and node.options.missing == "none":
            level = Level.SAME
        levels[node.name] = level
        made[node.name] = _made(node, level, shared=len(sources[node.name]) > 1 and not own_state)
        if node.name in renumbered:
            made[node.name] = Level.VALUES
        elif lossy:
            made[node.name] = min(made[node.name], Level.SUBSET)
    return levels, made


def _made(node: NodeSpec, level: Level, *, shared: bool) -> Level:
    """Returns the level of what a node makes."""
    stateful = node.traits.stateful or node.traits.flushes
    if node.kind is NodeKind.PRODUCER:
        return Level.EXACT
    if not node.options.deterministic or (stateful and (level < Level.EXACT or shared)):
        return Level.SAME
    return level
