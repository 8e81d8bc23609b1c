"""Replays dead letters: a flow of the node that failed and of what is below it, fed by the letters alone.

Used by `videoflow dead-letters replay`, and from Python as `replay_flow(run, labels).run()`. Nothing above
the node runs; a sibling that the letters do not hold says nothing, as a missing parent does. It refuses
letters that are not whole, code that does not fit them any more, and to write over a file that is there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import DeadLetter, FlowRuntime
from videoflow.clock import RealClock
from videoflow.engines.run_folder import RunFolder, find_run
from videoflow.errors import NotYet, OutputUnwritable, UsageError, ValueRefused
from videoflow.graph import Batch, Flow, Latest, Merged, Node, Port, Resources, instantiate, resolve
from videoflow.graph.spec import EdgeSpec, FlowSpec, NodeSpec, OptionsSpec, PortRef
from videoflow.ids import hash_id
from videoflow.nodes.replayed import Letter, Letters, Parent, is_sink, write_letters
from videoflow.wire import decode_value

_CALL_SECONDS = 10.0


def replay_flow(
    run: str, labels: Sequence[str] = (), *, runs_folder: Path | None = None, into: Path | None = None
) -> Flow:
    """Returns the flow that replays dead letters, to be run like any other.

    Args:
        run: Id of the run, a part of it, or `last`.
        labels: Which letters, such as `318-7f3a`; all of the run where none is named.
        runs_folder: Where its folder is; None for the default.
        into: Folder that relative paths of the replayed nodes are relative to; None for that of the flow.

    Raises:
        UsageError: They cannot be replayed; nothing was started.
        NotYet: What is below the node cannot be replayed yet.
    """
    folder = find_run(run, runs_folder)
    letters = _chosen(folder, labels)
    spec = folder.spec()
    if spec is None:
        raise _refused(folder, "its flow was not written", "", "run the flow anew")
    failed = spec.node(_one_node(letters))
    below = _below(spec, failed)
    nodes = {node.name: _made(node, into or Path(spec.folder)) for node in below}
    for letter in letters:
        _require_whole(folder, letter)
    name = f"{hash_id(*(letter.record_id for letter in letters))}.msgpack"
    path = folder.path.absolute() / "replay" / name
    write_letters(path, [Letter(each.members, each.source, each.event_time) for each in letters])
    _wire(spec, failed, nodes, Letters(str(path), name=_free_name(spec)))
    flow = Flow([node for node in nodes.values() if is_sink(node)], spec.flow_id)
    flow.folder = (into or Path(spec.folder)).absolute()
    for name in [path for node in flow.compile().nodes for path in node.traits.outputs]:
        if (flow.folder / name).exists():
            raise UsageError(
                f"{name} is there already, and a replay would write over it",
                where=str(flow.folder / name),
                effect="nothing was started",
                remedy="name a folder for what is written, with into= or --into, or move the file away",
            )
    _make_folder(flow.folder)
    return flow


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputUnwritable(
            "the folder for what is written cannot be made",
            cause=error.strerror or str(error),
            where=str(folder),
            effect="nothing was started",
            remedy="name another one",
        ) from error


def _chosen(folder: RunFolder, labels: Sequence[str]) -> list[DeadLetter]:
    if not folder.store_path.exists():
        raise _refused(folder, "it has no dead letters", "", "see `videoflow dead-letters list`")
    clock = RealClock()
    store = SqliteStore(folder.store_path, clock)
    try:
        records = FlowRuntime(store, folder.run_id)
        letters = records.dead_letters(deadline=clock.monotonic() + _CALL_SECONDS)
    finally:
        store.close()
    chosen = []
    for label in labels:
        found = [letter for letter in letters if label in (letter.label, letter.record_id)]
        found = found or [letter for letter in letters if label and letter.label.startswith(label)]
        if len(found) != 1:
            known = ", ".join(letter.label for letter in (found or letters)[:5])
            what = (
                f"{label!r} names {len(found)} of its dead letters"
                if found
                else f"it has no letter {label!r}"
            )
            raise _refused(folder, what, f"known are {known}", "see `videoflow dead-letters list`")
        chosen += found
    if not (chosen or letters):
        raise _refused(folder, "it has no dead letters", "", "see `videoflow dead-letters list`")
    return chosen or letters


def _one_node(letters: Sequence[DeadLetter]) -> str:
    names = sorted({letter.node for letter in letters})
    if len(names) > 1:
        raise UsageError(
            f"the letters are of {len(names)} nodes",
            cause=", ".join(names),
            effect="nothing was started",
            remedy="name the letters of one node at a time",
        )
    return names[0]


def _below(spec: FlowSpec, failed: NodeSpec) -> list[NodeSpec]:
    """Returns a node and what is below it, in topological order."""
    found = {failed.name}
    for node in spec.nodes:
        if any(ref.node in found for edge in spec.inputs(node.name) for ref in edge.parents):
            found.add(node.name)
    below = [node for node in spec.nodes if node.name in found]
    depth = failed.scope
    for node in below:
        if node.scope[: len(depth)] != depth:
            raise NotYet(
                f"the letters of {failed.name} cannot be replayed yet",
                cause=f"{node.name} gathers all items of {depth[-1]}, and a letter holds one",
                effect="nothing was started",
                remedy="run the flow again",
            )
        if spec.control(node.name) is not None:
            raise NotYet(
                f"the letters of {failed.name} cannot be replayed yet",
                cause=f"{node.name} takes markers",
                effect="nothing was started",
                remedy="run the flow again",
            )
    return below


def _made(spec: NodeSpec, folder: Path) -> Node:
    """Makes a node with the code as it is now, and refuses one that has other ports than it had."""
    node = instantiate(spec, resolve(spec), folder)
    now = tuple(node.ports)
    if now != spec.ports or node._videoflow_kind is not spec.kind:
        raise UsageError(
            f"node {spec.name} is not what it was",
            cause=f"its ports are {', '.join(now) or 'none'}, and were {', '.join(spec.ports) or 'none'}",
            effect="nothing was started",
            remedy="replay with the code that the run had, or run the flow anew",
        )
    node._videoflow_record.options.update(_options(spec.options))
    return node


def _options(given: OptionsSpec) -> dict[str, Any]:
    plain = OptionsSpec()
    same = ("replicas", "partition_by", "fuse", "on_error", "retries", "timeout_seconds", "lookahead")
    options = {name: found for name in same if (found := getattr(given, name)) != getattr(plain, name)}
    options |= {"ordered": given.ordered, "deterministic": given.deterministic}
    if given.missing_chosen:
        options["missing"] = given.missing
    if given.batch is not None:
        options["batch"] = Batch(**msgspec.structs.asdict(given.batch))
    resources = given.resources
    options["resources"] = Resources(cpus=resources.cpus, memory_bytes=resources.memory_bytes)
    return options


def _require_whole(folder: RunFolder, letter: DeadLetter) -> None:
    where = f"letter {letter.label} of {letter.node}"
    if letter.omitted:
        name, size = next(iter(letter.omitted.items()))
        cause = f"{name} was left out, since its {size} bytes did not fit the budget of dead letters"
        raise _refused(folder, f"{where} is not whole", cause, "run the flow again")
    if not letter.members:
        raise _refused(folder, f"{where} holds no input", "it is of its last words", "run the flow again")
    for name, body in letter.members.items():
        try:
            decode_value(body)
        except ValueRefused as error:
            cause = f"{name} cannot be made with the code as it is now: {error}"
            raise _refused(
                folder, f"{where} cannot be read", cause, "use the code that the run had"
            ) from error


def _wire(spec: FlowSpec, failed: NodeSpec, nodes: dict[str, Node], letters: Letters) -> None:
    fed: dict[str, dict[str, str]] = {}
    for edge in spec.inputs(failed.name):
        ref = edge.parents[0]  # of a merged input the letter does not say which
        fed.setdefault(ref.node, {})[ref.port] = edge.name
    inside = dict(nodes)
    stands: dict[str, Node] = {}
    for name, node in inside.items():
        wire: Any = node
        wire(*(_parent(spec, edge, inside, stands, fed, failed, letters) for edge in spec.inputs(name)))


def _parent(
    spec: FlowSpec,
    edge: EdgeSpec,
    inside: dict[str, Node],
    stands: dict[str, Node],
    fed: dict[str, dict[str, str]],
    failed: NodeSpec,
    letters: Letters,
) -> Merged | Latest:
    def port(ref: PortRef) -> Port:
        if ref.node in inside:
            return Port(inside[ref.node], ref.port)
        if ref.node not in stands:
            above = spec.node(ref.node)
            own = fed.get(ref.node, {})
            deeper = len(above.scope) + 1 > len(failed.scope)
            made = Parent(
                list(above.ports),
                {name: most for name, most in above.many.items() if deeper and name in own},
                own,
                failed.options.missing == "none",
                name=ref.node,
            )
            stands[ref.node] = made(letters)
        return Port(stands[ref.node], ref.port)

    merged = Merged(tuple(port(ref) for ref in edge.parents))
    live = edge.latest
    return merged if live is None else Latest(merged, live.key, live.max_age_seconds, live.capacity)


def _free_name(spec: FlowSpec) -> str:
    taken = {node.name for node in spec.nodes}
    return next(
        name for name in ("letters", *(f"letters-{n}" for n in range(len(taken)))) if name not in taken
    )


def _refused(folder: RunFolder, what: str, cause: str, remedy: str) -> UsageError:
    return UsageError(
        f"run {folder.run_id}: {what}", cause=cause, effect="nothing was started", remedy=remedy
    )
