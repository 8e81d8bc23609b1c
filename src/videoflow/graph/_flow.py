"""`Flow`: a graph of nodes that can be compiled, run, started and watched.

Used by everyone who writes a flow. It refuses an option of a run that does not exist, and to run while its
own file is only being loaded; what is wrong with the graph it says when it compiles.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from sys import _getframe
from types import FrameType
from typing import Any, ClassVar, Literal, TypedDict, Unpack

import msgspec

from videoflow import registry
from videoflow.errors import ArgumentInvalid, FlowError, NodeFailed, NotYet, RunFailed, RunStalled, UsageError
from videoflow.faults import Fault
from videoflow.graph._code import refuse_while_loading
from videoflow.graph._compile import Compiled, compile_flow
from videoflow.graph._diagram import mermaid, table
from videoflow.graph._naming import flow_name
from videoflow.graph._node import Node
from videoflow.graph._options import nearest
from videoflow.graph._requirements import Requirements
from videoflow.graph._wiring import Port, first_port
from videoflow.graph.report import RunReport, Verdict
from videoflow.graph.running import RunHandle, RunOptions, RunRequest
from videoflow.graph.spec import FlowSpec, PortRef


class RunKeywords(TypedDict, total=False):
    """The options of a run as keywords; they are those of `RunOptions`."""

    runs_folder: str | Path | None
    memory_bytes: int | None
    drain_seconds: float
    stall_seconds: float
    allow_dead_letters: int
    allow_incomplete: bool
    restart_backoff_seconds: float
    fuse: bool
    resume: str
    gpu_policy: Literal["strict", "shared"]
    profile: bool
    faults: dict[str, tuple[Fault, ...]]


class Flow:
    """A graph, given by its sinks.

    Attributes:
        name: Its name, by default that of the file in which it is built.
        folder: Where it was built; relative paths of its nodes are relative to it.
        requirements: What the backends that run it must give; may be added to until it runs.
    """

    _videoflow_flow: ClassVar[bool] = True

    def __init__(
        self, sinks: Sequence[Node], name: str | None = None, *, requirements: Requirements | None = None
    ) -> None:
        """Takes the sinks; everything above them belongs to the flow.

        Args:
            sinks: The consumers at the ends of the graph.
            name: A name for the flow.
            requirements: What the backends that run it must give; an engine that cannot refuses.

        Raises:
            UsageError: `sinks` is no sequence of nodes, or `requirements` is something else.
        """
        if requirements is not None and not isinstance(requirements, Requirements):
            raise UsageError(
                f"the requirements of a flow cannot be {type(requirements).__name__}",
                remedy="write requirements=vf.Requirements(...)",
            )
        ends: list[Any] = list(sinks) if isinstance(sinks, list | tuple) else [sinks]
        for end in ends:
            if not isinstance(end, Node):
                raise UsageError(
                    f"vf.Flow was given {type(end).__name__}",
                    cause="it takes the sinks of the flow in a list",
                    remedy="write vf.Flow([Sink(...)(node)])",
                )
        self._ends: list[Node] = list({id(end): end for end in ends}.values())
        self.name = name if name is not None else _name_of(_getframe(1))
        self.folder = Path.cwd()
        self.requirements = Requirements() if requirements is None else requirements

    def compile(self) -> FlowSpec:
        """Returns the flow as a document.

        Raises:
            FlowInvalid: The graph has problems; it carries all of them.
            NotYet: Some of it is not built yet, and nothing else is wrong.
        """
        return self._compiled().spec

    def run(self, engine: str = "threads", **options: Unpack[RunKeywords]) -> RunReport:
        """Runs the flow to its end and returns the report.

        By default in the threads of this process, where what user code raises can be chained.
        An interrupt (Ctrl-C) stops the sources and drains; a second one ends without draining.

        Raises:
            FlowError: The flow cannot be started, or the run failed or stalled; then `report` is set, and
                the user's exception is chained where it was raised in this process.
        """
        handle = self.start(engine, **options)
        report = _ended(handle)
        if report.verdict in (Verdict.FAILED, Verdict.STALLED):
            raise failure_of(report) from getattr(handle, "cause", None)
        return report

    def start(self, engine: str = "local", **options: Unpack[RunKeywords]) -> RunHandle:
        """Starts the flow and returns a handle with `stop`, `wait` and `status`.

        By default in processes, as `videoflow run-local` does: it goes on beside the caller.

        Raises:
            FlowError: The flow cannot be started.
        """
        refuse_while_loading("a run")
        parsed = run_options(options)
        handle: RunHandle = registry.load(registry.ENGINES, engine)().start(
            request_of(self._compiled(), parsed)
        )
        return handle

    def watch(
        self, *ports: Node | Port, engine: str = "threads", **options: Unpack[RunKeywords]
    ) -> Iterator[tuple[Any, ...]]:
        """Runs the flow and yields what these ports make, trace by trace; leaving the loop stops it.

        Args:
            *ports: Nodes (their first port) or ports.
            engine: Only `threads`, for now.
            **options: Those of a run.

        Raises:
            NotYet: Another engine.
            FlowError: The flow cannot be started, or the run failed.
        """
        if engine != "threads":
            raise NotYet(f"watch with the engine {engine!r}", remedy='use engine="threads", or Collect()')
        refuse_while_loading("watch")
        watched = [first_port(port) if isinstance(port, Node) else port for port in ports]
        if not watched or not all(isinstance(port, Port) for port in watched):
            raise UsageError("watch takes nodes and ports", remedy="write flow.watch(node, other.events)")
        parsed = run_options(options)
        compiled = self._compiled(tuple(port.node for port in watched))
        refs = tuple(_reference(compiled, port) for port in watched)
        compiled.refuse_unwatchable(refs)
        return _watching(engine, request_of(compiled, parsed, refs))

    def mermaid(self) -> str:
        """Returns the graph as a Mermaid flow chart."""
        return mermaid(self.compile())

    def _repr_html_(self) -> str:
        """Returns the graph as a table, or what is wrong with it."""
        try:
            return table(self.compile())
        except FlowError as error:
            return f"<pre>{html.escape(error.block())}</pre>"

    def __repr__(self) -> str:
        return f"Flow([{', '.join(map(repr, self._ends))}], name={self.name!r})"

    def _compiled(self, watched: tuple[Node, ...] = ()) -> Compiled:
        ends = list({id(node): node for node in (*self._ends, *watched)}.values())
        return compile_flow(ends, self.name, str(self.folder), self.requirements, watching=bool(watched))


def run_options(options: RunKeywords) -> RunOptions:
    """Returns the options of a run.

    Raises:
        ArgumentInvalid: An option that does not exist, or a value of another type.
    """
    known = {field.name: field.type for field in fields(RunOptions)}
    given: dict[str, Any] = dict(options)
    for name, value in given.items():
        if name not in known:
            raise ArgumentInvalid(f"a run has no option {name!r}", remedy=nearest(name, list(known)))
        if name == "runs_folder" and isinstance(value, str):
            given[name] = Path(value)
        elif name not in ("runs_folder", "faults"):
            try:
                msgspec.convert(value, known[name])
            except msgspec.ValidationError as error:
                raise ArgumentInvalid(
                    f"the option {name} of a run is {value!r}", cause=str(error), remedy="see RunOptions"
                ) from error
    return RunOptions(**given)


def request_of(compiled: Compiled, options: RunOptions, watched: tuple[PortRef, ...] = ()) -> RunRequest:
    """Returns what an engine is started with."""
    classes = {name: type(node) for name, node in compiled.nodes.items()}
    return RunRequest(compiled.spec, classes, options, watched)


def _ended(handle: RunHandle) -> RunReport:
    for _ in range(2):
        try:
            return handle.wait()
        except KeyboardInterrupt:
            handle.stop()
    return handle.wait()


def failure_of(report: RunReport) -> FlowError:
    """Returns the first failure of a run as an error with the same fields, and with the report."""
    error = _failure_of(report)
    error.report = report
    return error


def _failure_of(report: RunReport) -> FlowError:
    failure = report.failure
    if failure is None:
        gaps = "; ".join(f"{gap.where}: {gap.what}" for gap in report.gaps)
        return RunFailed(f"the run {report.run_id} failed", cause=gaps, remedy="see the report")
    texts = {
        "cause": failure.cause,
        "where": failure.where,
        "effect": failure.effect,
        "remedy": failure.remedy,
    }
    if failure.code == NodeFailed.code:
        return NodeFailed(failure.message, node=failure.node, **texts)
    kind = RunStalled if report.verdict is Verdict.STALLED else RunFailed
    error = kind(failure.message, **texts)
    error.code, error.exit_status = failure.code, report.exit_status
    return error


def _watching(engine: str, request: RunRequest) -> Iterator[tuple[Any, ...]]:
    run = registry.load(registry.ENGINES, engine)().start(request)
    try:
        yield from run.values()
    except GeneratorExit:
        run.stop()
        run.wait()
        raise
    report = run.wait()
    if report.verdict in (Verdict.FAILED, Verdict.STALLED):
        raise failure_of(report)


def _reference(compiled: Compiled, port: Port) -> PortRef:
    found = compiled.reference(port)
    if found is None:
        raise UsageError(f"{port!r} is not part of the flow")
    if port.name not in port.node.ports:
        raise UsageError(
            f"{port.node!r} has no port {port.name!r}", remedy=nearest(port.name, port.node.ports)
        )
    return found


def _name_of(frame: FrameType) -> str:
    file = frame.f_globals.get("__file__")
    return flow_name(Path(file).stem) if isinstance(file, str) else "notebook"
