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
from videoflow.engines._replaying import Replaying, belonging_together, is_gathered, nodes_below
from videoflow.engines.run_folder import RunFolder, find_run
from videoflow.errors import OutputUnwritable, UsageError, ValueRefused
from videoflow.graph import Batch, Flow, Node, Resources, instantiate, resolve
from videoflow.graph.spec import NodeSpec, OptionsSpec
from videoflow.ids import hash_id
from videoflow.nodes.replayed import is_sink, write_letters
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
    """
    folder = find_run(run, runs_folder)
    letters = _chosen(folder, labels)
    spec = folder.spec()
    if spec is None:
        raise _refused(folder, "its flow was not written", "", "run the flow anew")
    failed = spec.node(_one_node(letters))
    for letter in letters:
        _require_whole(folder, letter)
    _refuse_odd(folder, failed, letters)
    below = nodes_below(spec, failed)
    gathered = is_gathered(spec, failed, below)
    nodes = {node.name: _made(node, into or Path(spec.folder)) for node in below}
    name = f"{hash_id(*(letter.record_id for letter in letters))}.msgpack"
    path = folder.path.absolute() / "replay" / name
    together = belonging_together(letters, gathered=gathered)
    write_letters(path, together)
    Replaying(spec, failed, nodes, path, max(each.width for each in together)).wire()
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


def _refuse_odd(folder: RunFolder, failed: NodeSpec, letters: Sequence[DeadLetter]) -> None:
    """Refuses letters of markers, and of what a node flushed within a fan-out."""
    for letter in letters:
        if letter.path and letter.path[-1][:2] == (failed.name, "on_control"):
            raise _refused(
                folder,
                f"letter {letter.label} of {failed.name} is of a marker",
                "what a marker does depends on the inputs around it, and the letter has none",
                "run the flow again, or send the marker anew",
            )
        if len(letter.path) < len(failed.scope):
            raise _refused(
                folder,
                f"letter {letter.label} of {failed.name} is of the last words of a node above it",
                "they are no elements of a fan-out, as the inputs of the node are",
                "run the flow again",
            )


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
    """Returns the options of a node in a replay: it runs once and alone, since its group may not be whole."""
    plain = OptionsSpec()
    same = ("on_error", "retries", "timeout_seconds", "lookahead")
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


def _refused(folder: RunFolder, what: str, cause: str, remedy: str) -> UsageError:
    return UsageError(
        f"run {folder.run_id}: {what}", cause=cause, effect="nothing was started", remedy=remedy
    )
