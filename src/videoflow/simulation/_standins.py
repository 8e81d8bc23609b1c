"""Flows of users: what reaches outside of the process is recorded once, and replayed in every simulated run.

Used by `videoflow simulate`. Sources, models, codecs, files, threads, sleeps and devices are not simulated: a
stand-in answers as the node did in one run without faults, and a sink that writes is replaced by one that
only keeps what it would have written. It refuses a flow that fails without faults.
"""

import dis
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace

from videoflow.errors import RunFailed
from videoflow.graph import SKIP, Compiled, Item, Node, Processor, Producer
from videoflow.graph.spec import NodeKind, NodeSpec
from videoflow.simulation._account import outcome_of
from videoflow.simulation._library import Saver, Sink
from videoflow.simulation._nodes import Recording
from videoflow.simulation._run import SimulatedRun
from videoflow.simulation._schedule import Schedule
from videoflow.simulation._subject import Subject, subject_of

_OUTSIDE = frozenset(
    (
        "open",
        "sleep",
        "Thread",
        "Lock",
        "Event",
        "threading",
        "multiprocessing",
        "subprocess",
        "socket",
        "requests",
        "httpx",
        "urllib",
        "urlopen",
        "cv2",
        "av",
        "onnxruntime",
        "torch",
        "sqlite3",
        "random",
        "time",
        "print",
        "input",
    )
)
_LIBRARY = ("videoflow.nodes.video", "videoflow.nodes.vision._detector", "videoflow.nodes.records")


@dataclass(frozen=True)
class StandIn:
    """A node that is not run.

    Attributes:
        node: Its name.
        why: What it would reach, in words.
    """

    node: str
    why: str


class _StandInSource(Producer):
    """In the place of a source; its items are replayed."""

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields nothing of its own."""
        return iter(())


class _StandIn(Processor):
    """In the place of a processor; its answers are replayed."""

    def process(self, *inputs: object) -> object:
        """Returns nothing of its own."""
        return SKIP


def recorded(compiled: Compiled, items: int) -> tuple[Subject, list[StandIn]]:
    """Returns a user's flow, ready for simulation, and what is replayed in it.

    Args:
        compiled: The flow.
        items: So many items of each source are recorded.

    Raises:
        FlowError: The planner refuses the flow, or it fails without faults.
    """
    subject = subject_of(compiled)
    found = [
        StandIn(node.name, why)
        for node in compiled.spec.nodes
        if (why := _why(node, type(compiled.nodes[node.name]))) is not None
    ]
    names = frozenset(each.node for each in found)
    kinds = {node.name: node for node in compiled.spec.nodes}
    sinks = frozenset(name for name in names if kinds[name].kind is NodeKind.CONSUMER)
    recording = Recording()
    first = replace(subject, make=lambda name: _made(subject, kinds[name], sinks), recording=recording)
    limits = tuple((name, items) for name in sorted(names) if kinds[name].kind is NodeKind.PRODUCER)
    schedule = Schedule(0, items=limits, calm=True)
    report = outcome_of(SimulatedRun(first, schedule, filling=names - sinks).go()).report
    if report.failure is not None:
        raise RunFailed(
            "the flow fails without faults",
            cause=f"{report.failure.message}: {report.failure.cause}",
            remedy="mend it first: run it with videoflow run-local",
        )
    replayed = replace(
        subject,
        make=lambda name: _made(subject, kinds[name], names),
        stand_ins=names - sinks,
        recording=recording,
    )
    return replayed, found


def _made(subject: Subject, spec: NodeSpec, stand_ins: frozenset[str]) -> Node:
    if spec.name not in stand_ins:
        return subject.make(spec.name)
    if spec.kind is NodeKind.PRODUCER:
        return _StandInSource(name=spec.name)
    if spec.kind is NodeKind.PROCESSOR:
        return _StandIn(name=spec.name)
    if spec.traits.checkpoints:
        return Saver(max(1, spec.traits.holds_items), name=spec.name)
    return Sink(name=spec.name)


def _why(spec: NodeSpec, cls: type) -> str | None:
    """Returns why a node is not run, or None."""
    if spec.kind is NodeKind.PRODUCER:
        return "a source"
    if spec.traits.outputs:
        return f"it writes {spec.traits.outputs[0]}"
    if spec.traits.inputs:
        return f"it reads {spec.traits.inputs[0]}"
    if spec.traits.collects:
        return None
    if cls.__module__.startswith(_LIBRARY):
        return "a model, a codec, a file or a terminal"
    named = sorted(_names(cls) & _OUTSIDE)
    return f"its code names {named[0]}" if named else None


def _names(cls: type) -> set[str]:
    """Returns the names that the code of a class uses, those of its bases of the library left out."""
    names: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith("videoflow.graph"):
            continue
        for member in vars(base).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, types.FunctionType):
                names |= _names_in(function.__code__)
    return names


def _names_in(code: types.CodeType) -> set[str]:
    names = {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME", "LOAD_METHOD", "LOAD_ATTR")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names
