"""What a user should know of a plan: weaker guarantees, and what lies outside the identity of results.

Used by `plan_flow` for the document. It refuses nothing, and hides nothing that is weaker.
"""

from videoflow.graph.spec import NodeKind
from videoflow.planner._facts import PlanFacts
from videoflow.planner._fitting import Fit
from videoflow.planner._keeping import is_at_least_once
from videoflow.planner._tasks import gain_is_unknown
from videoflow.planner._wiring import Wiring
from videoflow.planner._words import list_text


def identity_exceptions(wiring: Wiring) -> tuple[str, ...]:
    """Returns why results may differ between runs, engines or groupings (rule 18), in words."""
    found = []
    for node in wiring.spec.nodes:
        live = [edge.name for edge in wiring.spec.inputs(node.name) if edge.latest is not None]
        if live:
            found.append(f"{node.name}: {list_text(live)} comes live, so timing decides what is dropped")
        markers = wiring.spec.control(node.name)
        if markers is not None:
            found.append(
                f"{node.name}: timing decides between which inputs the markers of {markers.name} come, and "
                "which are dropped where too many wait"
            )
        if not node.options.deterministic:
            found.append(f"{node.name}: deterministic=False, it may answer the same input differently")
        if node.options.batch is not None and not node.traits.batch_invariant:
            found.append(f"{node.name}: the size of a batch, which timing decides, may change its floats")
    sources = [node.name for node in wiring.spec.nodes if node.kind is NodeKind.PRODUCER]
    if len(sources) > 1:
        found.append(f"the order between the sources {list_text(sources)}; each is in order by itself")
    return tuple(found)


def notes(wiring: Wiring, facts: PlanFacts, fitted: Fit) -> tuple[str, ...]:
    """Returns other things worth knowing."""
    found = [
        f"{node.name} is at-least-once: after a crash it may consume an item again, having no checkpoint "
        "and no effect key"
        for node in wiring.spec.nodes
        if is_at_least_once(node)
    ]
    found += [
        f"{reading.task.name} keeps the latest of each {reading.edge.latest.key} of {reading.parent}: memory "
        f"is counted for {facts.defaults.latest_keys} of them"
        for reading in wiring.readings
        if reading.edge.latest is not None and reading.edge.latest.key not in (None, "source")
    ]
    if not facts.execution.isolates_crash:
        found.append(
            f"the {facts.engine} engine isolates no crash: a node that ends the process ends the run, "
            "and an input that does so is not put aside"
        )
    found += [
        f"{join} joins streams whose sources were merged in different nodes, so its inputs must hold what "
        "one may be ahead of the other; merging the sources once, in one node, takes less memory"
        for join in fitted.sizing.interleaving.joins
    ]
    if gain_is_unknown(wiring.spec, wiring.tasks, facts):
        found.append(
            "no profiled run has measured this flow here, so that nodes share a process by their labels "
            "alone: run it once with --profile"
        )
    needed = sum(task.replicas * max(n.options.resources.cpus for n in task.nodes) for task in wiring.tasks)
    if needed > facts.cpus:
        found.append(
            f"the tasks count as {needed:g} processors and there are {facts.cpus:g}: they share them"
        )
    return tuple(found)
