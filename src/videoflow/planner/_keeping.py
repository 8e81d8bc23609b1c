"""What nodes keep between inputs, and how often the effects of sinks happen, as sections of an explanation.

Used by `explain`. It shows what stands in the plan, and promises nothing that a class does not declare.
"""

from videoflow.graph.spec import NodeKind, NodeSpec
from videoflow.planner._sections import Row, Section
from videoflow.planner._words import size_text
from videoflow.planner.plan import Plan


def kept_section(plan: Plan) -> Section | None:
    """Returns what nodes keep, and how much it may be; None where none keeps anything."""
    rows = tuple(_kept_row(plan, node) for node in plan.spec.nodes if node.traits.stateful)
    if not rows:
        return None
    sentence = "more than that ends the run, by the name of the node and the key (VF-STATE)"
    return Section("What nodes keep", (sentence,), ("node", "keeps", "at most", "for"), rows, ("at most",))


def effects_section(plan: Plan) -> Section | None:
    """Returns how often the effect of an input happens, for each sink; None where there is none."""
    rows = tuple(
        Row((node.name, *effect_of(node))) for node in plan.spec.nodes if node.kind is NodeKind.CONSUMER
    )
    return Section("Effects of sinks", (), ("sink", "an effect happens", "because"), rows) if rows else None


def effect_of(node: NodeSpec) -> tuple[str, str]:
    """Returns how often the effect of an input of a sink happens whatever dies, and why."""
    kept = node.traits.effect_key_seconds
    if kept is None or kept > 0:
        often = "once" if kept is None else f"once, if repeated within {kept:g} s"
        return often, "what it writes to recognises ctx.effect_key (effect_key_seconds)"
    if node.traits.checkpoints:
        return "once", "after a crash it cuts back to its last checkpoint"
    if node.traits.collects:
        return "once", "it writes to the state of the run alone"
    return "at least once", "it has no checkpoint and declares no effect key"


def is_at_least_once(node: NodeSpec) -> bool:
    """Whether the effect of an input may happen again after a crash, as far as the class of a sink says."""
    return node.kind is NodeKind.CONSUMER and effect_of(node)[0] == "at least once"


def _kept_row(plan: Plan, node: NodeSpec) -> Row:
    partitions = plan.task_of(node.name).partitions
    keeps = "itself (snapshot) and ctx.state" if node.traits.snapshots else "ctx.state"
    shares = "the run" if partitions == 1 else f"each of {partitions} partitions"
    return Row((node.name, keeps, size_text(node.traits.max_state_bytes), shares))
