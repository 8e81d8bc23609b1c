"""What profiled runs have measured, kept in the home folder for later plans of the same flow.

Read when a run is planned, written when a profiled run has ended. It refuses to know a node again whose file,
class or arguments are others, and to fail a run: what cannot be read was never measured, and what cannot be
written is not kept.
"""

import contextlib
import hashlib
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from videoflow.engines.run_folder import find_run, home_folder, write_atomically
from videoflow.errors import FlowError
from videoflow.graph.report import ProfileReport, RunReport, Verdict
from videoflow.graph.running import RunRequest
from videoflow.graph.spec import CodeKind, FlowSpec, NodeSpec
from videoflow.planner import FlowCosts, NodeCost
from videoflow.planner.plan import Plan

_LOG = logging.getLogger("videoflow.engines.costs")
_FILE = "costs.json"
_SCHEMA = 1
_MOST_FLOWS = 64
_MOST_BYTES = 4 << 20
_FEWEST_ITEMS = 30


class _KnownNode(msgspec.Struct, kw_only=True):
    digest: str
    seconds: float
    hops: dict[str, float] = {}


class _KnownFlow(msgspec.Struct, kw_only=True):
    folder: str
    flow_id: str
    engine: str
    run_id: str
    nodes: dict[str, _KnownNode] = {}

    @property
    def key(self) -> tuple[str, str, str]:
        return self.folder, self.flow_id, self.engine


class _Known(msgspec.Struct, kw_only=True):
    """The file: flows, the one measured last at the end."""

    schema: int = _SCHEMA
    flows: list[_KnownFlow] = []


def costs_of(request: RunRequest, engine: str) -> FlowCosts | None:
    """Returns what is known of the costs of a flow on an engine, or None.

    A run that goes on with another one is planned with what that one was planned with.
    """
    if not request.options.fuse:
        return None
    if request.options.resume:
        return _costs_of_run(request)
    flow = next((flow for flow in _read().flows if flow.key == _key(request.spec, engine)), None)
    if flow is None:
        return None
    digests = _digests(request.spec)
    found = {
        name: NodeCost(seconds=known.seconds, hops=known.hops)
        for name, known in flow.nodes.items()
        if digests.get(name) == known.digest
    }
    return FlowCosts(run_id=flow.run_id, nodes=found) if found else None


def keep_costs(plan: Plan, report: RunReport) -> None:
    """Keeps what a profiled run has measured, where it measured enough."""
    profile = report.profile
    ended = report.verdict in (Verdict.COMPLETE, Verdict.STOPPED)
    if profile is None or not ended or profile.items < _FEWEST_ITEMS:
        return
    known = _read()
    key = _key(plan.spec, plan.engine)
    before = next((flow for flow in known.flows if flow.key == key), None)
    folder, flow_id, engine = key
    nodes = _measured(plan, profile, before.nodes if before is not None else {})
    flow = _KnownFlow(folder=folder, flow_id=flow_id, engine=engine, run_id=report.run_id, nodes=nodes)
    flows = [each for each in known.flows if each.key != key][1 - _MOST_FLOWS :]
    document = msgspec.json.format(msgspec.json.encode(_Known(flows=[*flows, flow])), indent=1)
    try:
        home_folder().mkdir(parents=True, exist_ok=True)
        write_atomically(home_folder() / _FILE, document)
    except OSError as error:
        _LOG.warning("what the run has measured is not kept: %s", error)


def _measured(plan: Plan, profile: ProfileReport, before: Mapping[str, _KnownNode]) -> dict[str, _KnownNode]:
    """Returns what nodes cost; of a hop that a direct call has replaced, what it cost when it was there."""
    digests, found = _digests(plan.spec), {}
    for node in profile.nodes:
        digest = digests.get(node.node)
        if digest is None or not node.items:
            continue
        read = {str(parent) for edge in plan.spec.inputs(node.node) for parent in edge.parents}
        known = before.get(node.node)
        hops = dict(known.hops) if known is not None and known.digest == digest else {}
        hops |= {
            hop.parent: hop.processor_seconds / profile.items
            for hop in profile.hops
            if hop.child == node.node
        }
        found[node.node] = _KnownNode(
            digest=digest,
            seconds=node.seconds / profile.items,
            hops={port: seconds for port, seconds in hops.items() if port in read},
        )
    return found


def _costs_of_run(request: RunRequest) -> FlowCosts | None:
    with contextlib.suppress(FlowError, OSError, msgspec.MsgspecError):
        folder = find_run(request.options.resume, request.options.runs_folder)
        return Plan.from_json(folder.plan_path.read_bytes()).costs
    return None  # whatever is wrong with it is said where the run is taken over


def _key(spec: FlowSpec, engine: str) -> tuple[str, str, str]:
    return str(Path(spec.folder).absolute()), spec.flow_id, engine


def _read() -> _Known:
    path = home_folder() / _FILE
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        if path.stat().st_size <= _MOST_BYTES:
            known = msgspec.json.decode(path.read_bytes(), type=_Known)
            return known if known.schema == _SCHEMA else _Known()
    return _Known()


def _digests(spec: FlowSpec) -> dict[str, str]:
    """Returns by which a node is known again; one without a file is not."""
    files: dict[str, bytes | None] = {}
    return dict(_each_digest(spec, files))


def _each_digest(spec: FlowSpec, files: dict[str, bytes | None]) -> Iterator[tuple[str, str]]:
    for node in spec.nodes:
        path = _file(node, spec.folder)
        if path not in files:
            files[path] = _content(path)
        content = files[path]
        if content is not None:
            said = msgspec.json.encode([node.qualname, node.arguments], order="sorted")
            yield node.name, hashlib.blake2b(content + said, digest_size=16).hexdigest()


def _file(node: NodeSpec, folder: str) -> str:
    if node.code is CodeKind.FLOW_FILE:
        return str(Path(folder, node.module))
    module = sys.modules.get(node.module) if node.code is CodeKind.MODULE else None
    return getattr(module, "__file__", None) or ""


def _content(path: str) -> bytes | None:
    try:
        return hashlib.blake2b(Path(path).read_bytes()).digest() if path else None
    except OSError:
        return None
