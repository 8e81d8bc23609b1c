"""What may not be: a simulated run is compared with one without faults, and with the rules.

Used by whoever simulates. Each violation is one sentence that begins with the promise that was broken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from videoflow.backends.coverage import Cause, OriginRecord
from videoflow.backends.messaging import Kind
from videoflow.graph.report import Verdict
from videoflow.graph.spec import FlowSpec, NodeKind, NodeSpec
from videoflow.planner.plan import InputMode
from videoflow.simulation._account import Outcome
from videoflow.simulation._levels import Level, levels_made_of, levels_of
from videoflow.simulation._library import MARKERS
from videoflow.simulation._record import Made, Mark, mark
from videoflow.simulation._subject import Subject


def judge(
    subject: Subject, found: Outcome, wanted: Outcome, *, stopped: bool, died: Outcome | None = None
) -> list[str]:
    """Returns every violation of one run.

    Args:
        subject: What was run.
        found: What it came to.
        wanted: What a run without faults came to, of sources as long as these were.
        stopped: It was asked to stop.
        died: What a run without faults comes to that is not stopped: sources that died before they had
            committed an item, and did not make it again, gave it to the nodes fused with them.
    """
    aborted = found.report.failure is not None
    violations = [*found.violations, *dict.fromkeys(found.record.wrongs)]
    if not found.quit:
        violations += _ended(subject, found, aborted=aborted)
    violations += _accounted(subject, found, stopped=stopped, aborted=aborted)
    levels = _levels(subject, found, aborted=aborted)
    for node in subject.plan.spec.nodes:
        calls = found.record.calls.get(node.name, [])
        level, task = levels[node.name], subject.plan.task_of(node.name)
        unmade = died if task.mode is InputMode.SOURCE else None
        if node.options.missing == "skip" and any(made.missing for made in calls):
            violations.append(f"joins: {node.name} was called without an input, which it did not ask for")
        if node.kind is not NodeKind.PRODUCER and not _may_change(subject, node):
            right = wanted.record.calls.get(node.name, [])
            lost = [] if unmade is None else unmade.record.calls.get(node.name, [])
            violations += _compared(node.name, calls, right, level, more=lost)
        if task.mode is not InputMode.COMPETING and node.name == task.nodes[0]:
            violations += _ordered(node.name, calls)
        violations += _flushes(node.name, found, wanted, level)
        if node.traits.checkpoints and level is Level.EXACT:
            violations += _saved(node.name, found, wanted)
        violations += _keyed(node.name, found, wanted, level, unmade)
        violations += _marked(node.name, found)
    violations += _state(subject, found, wanted, levels)
    violations += _letters(found, wanted, levels, died)
    if not stopped:
        violations += _announced(subject, found, wanted, aborted=aborted)
    if found.quit:
        return violations
    violations += _stated(subject, found) if aborted else _told_aside(found)
    violations += [f"payloads: one was left: {each}" for each in found.left]
    return violations


def _levels(subject: Subject, found: Outcome, *, aborted: bool) -> Mapping[str, Level]:
    lossy = aborted or found.quit
    if not lossy and not found.renumbered:
        return subject.levels
    return levels_of(subject.plan.spec, own_state=subject.own_state, lossy=lossy, renumbered=found.renumbered)


def suspended_well(found: Outcome) -> list[str]:
    """Returns what may not be of a run that was stopped, and can be gone on with."""
    return found.violations + [
        f"coverage: {edge.parent} -> {edge.child} does not close: {edge.detail}"
        for edge in found.report.edges
        if not edge.closed
    ]


def _ended(subject: Subject, found: Outcome, *, aborted: bool) -> Iterator[str]:
    for task, kinds in found.kinds.items():
        if None in kinds:
            yield f"end exactly once: {task} did not end"
    if not aborted:
        if any(Kind.ABORT in kinds for kinds in found.kinds.values()):
            yield "end exactly once: a task aborted, and nothing had failed"
        return
    for task, kinds in found.kinds.items():
        said = [name for name in subject.plan.task(task).nodes if found.record.flushes.get(name)]
        if Kind.END not in kinds and said and task != found.failed_task:
            yield f"abort beats end: {said[0]} was asked for its last words after an abort"
    failed = {task for task, kinds in found.kinds.items() if Kind.ABORT in kinds}
    for reader in subject.plan.tasks:
        above = {
            subject.plan.task_of(subscription.channel.node).name
            for given in reader.inputs
            for subscription in given.subscriptions
        }
        if above & failed and Kind.END in found.kinds[reader.name]:
            yield f"abort beats end: {reader.name} ended as if nothing had happened"


def _accounted(subject: Subject, found: Outcome, *, stopped: bool, aborted: bool) -> Iterator[str]:
    report = found.report
    for edge in report.edges:
        if not edge.closed:
            yield f"coverage: {edge.parent} -> {edge.child} does not close: {edge.detail}"
        elif edge.in_flight and not (found.quit or found.keeps):
            yield f"coverage: {edge.in_flight} items of {edge.parent} -> {edge.child} are in flight"
    if aborted and not subject.may_fail:
        failure = report.failure
        yield f"the run failed, and nothing was wrong: {failure.message if failure else ''}"
    expected = Verdict.INCOMPLETE if found.letters else Verdict.COMPLETE
    expected = Verdict.STOPPED if stopped else expected
    if not aborted and report.verdict is not expected:
        yield f"the verdict is {report.verdict}, and {expected} was right"


def _compared(
    node: str, calls: Sequence[Made], wanted: Sequence[Made], level: Level, more: Sequence[Made] = ()
) -> Iterator[str]:
    given: dict[str, Made] = {}
    for made in calls:
        first = given.setdefault(made.input_id, made)
        if first.given != made.given:
            yield f"results: {node} was given another value when {_place(made)} came again"
            return
    if level is Level.SAME:
        return
    if level is Level.VALUES:
        yield from _values(node, given.values(), {made.given for made in (*wanted, *more)})
        return
    right = {made.input_id: made for made in wanted}
    may_be = {made.input_id: made for made in more} | right
    for input_id, made in given.items():
        known = may_be.get(input_id)
        if known is None:
            yield f"results: {node} was given {_place(made)}, which does not exist"
            return
        if (known.given, known.missing) != (made.given, made.missing):
            yield f"results: {node} was given another {_place(made)} than without faults"
            return
    if level is Level.EXACT:
        for input_id, known in right.items():
            if input_id not in given:
                yield f"results: {node} was never given {_place(known)}"
                return


def _values(node: str, given: Iterable[Made], right: set[Mark]) -> Iterator[str]:
    for made in given:
        if made.given not in right:
            yield f"results: {node} was given {_place(made)} with a value that does not exist"
            return


def _may_change(subject: Subject, node: NodeSpec) -> bool:
    """Whether another value may come again: inside a task, behind a node that may answer differently."""
    nodes = subject.plan.task_of(node.name).nodes
    before = nodes[: nodes.index(node.name)]
    return any(not subject.plan.spec.node(name).options.deterministic for name in before)


def _place(made: Made) -> str:
    path = "".join(f".{hop.k}" for hop in made.path)
    return f"item {made.origin.ordinal}{path} of {made.origin.node}"


def _ordered(node: str, calls: Sequence[Made]) -> Iterator[str]:
    """Looks at each incarnation for itself: a new one begins with what was not settled."""
    reached: dict[tuple[str, int, str], tuple[int, int, tuple[int, ...]]] = {}
    for made in calls:
        reader = made.station, made.incarnation, made.origin.node
        last = reached.get(reader)
        if last is not None and made.place < last:
            yield f"ordered: {node} was given {_place(made)} after a later one"
            return
        reached[reader] = made.place


def _flushes(node: str, found: Outcome, wanted: Outcome, level: Level) -> Iterator[str]:
    said = found.record.flushes.get(node, [])
    if any(committed for _, committed, _ in said):
        yield f"flush: {node} was asked for last words that it had said"
    if level is not Level.EXACT:
        return
    mine = {station: answer for station, _, answer in said}
    for station, _, answer in wanted.record.flushes.get(node, []):
        if station not in mine:
            yield f"flush: {node} in {station} was never asked for its last words"
        elif mine[station] != answer:
            yield f"flush: the last words of {node} in {station} are others than without faults"


def _saved(node: str, found: Outcome, wanted: Outcome) -> Iterator[str]:
    mine, right = found.record.disk(node), wanted.record.disk(node)
    for source in sorted({row[0] for row in (*mine, *right)}):
        written = [row for row in mine if row[0] == source]
        expected = [row for row in right if row[0] == source]
        if written != expected:
            yield (
                f"effects: {node} wrote {len(written)} rows of {source}, {len(expected)} without faults"
                if len(written) != len(expected)
                else f"effects: what {node} wrote of {source} differs from what it writes without faults"
            )


def _keyed(
    node: str, found: Outcome, wanted: Outcome, level: Level, died: Outcome | None = None
) -> Iterator[str]:
    """Looks at what was written under effect keys: each key stands for one effect, however often it came."""
    mine, right = found.record.table(node), wanted.record.table(node)
    may_be = right if died is None else {**died.record.table(node), **right}
    for key, written in mine.items():
        if any(row != written[0] for row in written):
            yield f"effects: {node} wrote two things under one key"
        elif level >= Level.SUBSET and (key not in may_be or may_be[key][0] != written[0]):
            yield f"effects: {node} wrote something else under a key than without faults"
    if level is Level.EXACT and len(mine) < len(right):
        yield f"effects: {node} wrote {len(mine)} rows, {len(right)} without faults"


def _marked(node: str, found: Outcome) -> Iterator[str]:
    given: dict[str, Mark] = {}
    for identity, value in found.record.markers.get(node, ()):
        if given.setdefault(identity, value) != value:
            yield f"markers: {node} was given another value when a marker came again"


def _announced(subject: Subject, found: Outcome, wanted: Outcome, *, aborted: bool) -> Iterator[str]:
    """Compares what was said of every trace: an item, or a skip with its cause."""
    made = levels_made_of(
        subject.plan.spec, own_state=subject.own_state, lossy=aborted, renumbered=found.renumbered
    )
    for channel, records in found.announced.items():
        exact = made[channel.partition(".")[0]] is Level.EXACT
        if exact and _said(records) != _said(wanted.announced[channel]):
            yield f"skips: {channel} said other things of some items than without faults"


def _said(records: Iterable[OriginRecord]) -> dict[tuple[str, int], list[object]]:
    return {
        (record.node, record.epoch): [
            record.ordinals,
            record.deep_ordinals,
            record.deep_items,
            record.deep_open,
        ]
        for record in records
    }


def _state(subject: Subject, found: Outcome, wanted: Outcome, levels: Mapping[str, Level]) -> Iterator[str]:
    plan = subject.plan
    for task in plan.tasks:
        nodes = [plan.spec.node(name) for name in task.nodes]
        if any(levels[node.name] is not Level.EXACT or node.traits.collects for node in nodes):
            continue
        if task.controls and not subject.own_state:
            continue  # which markers came in time is not said
        if _kept(task.name, found) != _kept(task.name, wanted):
            yield f"state: what {task.name} committed is not what it commits without faults"
    for node in plan.spec.nodes:
        if node.traits.collects and levels[node.name] is Level.EXACT:
            yield from _rows(node.name, found, wanted)


def _kept(task: str, found: Outcome) -> dict[str, bytes]:
    """Returns what a task keeps, without how many markers came in time: of that nothing is promised."""
    state = found.state.items()
    return {key: value for (name, key), value in state if name == task and not key.endswith(MARKERS)}


def _rows(node: str, found: Outcome, wanted: Outcome) -> Iterator[str]:
    """Compares the rows of each source, since there is no order between sources."""
    mine, right = found.report.values.get(node, []), wanted.report.values.get(node, [])
    sources = sorted({_source(row) for row in (*mine, *right)})
    for source in sources:
        if [mark(row) for row in mine if _source(row) == source] != [
            mark(row) for row in right if _source(row) == source
        ]:
            yield f"effects: {node} keeps other rows of {source} than without faults"


def _source(row: object) -> str:
    return str(row[0]) if isinstance(row, list) and row and isinstance(row[0], str) else ""


def _stated(subject: Subject, found: Outcome) -> Iterator[str]:
    """Looks whether, also in a run that failed, something was said of each input that counts as delivered.

    What a task inside of a fan-out said, or one that makes several of one, is not counted like its inputs.
    """
    edges = [edge for edge in found.report.edges if edge.replica is None]
    for task in subject.plan.tasks:
        node = subject.plan.spec.node(task.nodes[0])
        if len(task.nodes) > 1 or node.many or node.scope:
            continue
        read = [edge for edge in edges if edge.child == node.name]
        inputs = [edge.delivered for edge in read if not _is_deep(subject.plan.spec, edge.parent)]
        said = [edge.announced for edge in edges if edge.parent.partition(".")[0] == node.name]
        delivered = max(inputs, default=0) if task.mode is InputMode.JOIN else sum(inputs)
        if said and delivered > min(said):
            yield f"skips: {node.name} took {delivered} inputs, and said something of {min(said)} of them"


def _is_deep(spec: FlowSpec, port: str) -> bool:
    """Whether a port is inside of a fan-out, so that several items of it may meet one of another."""
    name, _, own = port.partition(".")
    return bool(spec.node(name).scope) or (own or "out") in spec.node(name).many


def _told_aside(found: Outcome) -> Iterator[str]:
    """Looks whether the ports of a node say of what was put aside that it was."""
    for node in sorted({node for node, _ in found.letters}):
        for channel, records in found.announced.items():
            causes = {cause for record in records for _, cause, _ in (*record.ordinals, *record.deep_items)}
            if channel.partition(".")[0] == node and records and Cause.DEAD_LETTER not in causes:
                yield f"skips: {channel} does not say that {node} put an input aside"


def _letters(
    found: Outcome, wanted: Outcome, levels: Mapping[str, Level], died: Outcome | None
) -> Iterator[str]:
    may_be = wanted.letters.keys() | (set() if died is None else died.letters.keys())
    for node, input_id in found.letters:
        if levels[node] >= Level.SUBSET and (node, input_id) not in may_be:
            yield f"dead letters: {node} put aside what was in order: {found.letters[node, input_id]}"
    for node, input_id in wanted.letters:
        if levels[node] is Level.EXACT and (node, input_id) not in found.letters:
            yield f"dead letters: {node} should have put an input aside: {wanted.letters[node, input_id]}"
