"""The compiled flow: a versioned JSON document that says everything and holds no code.

Made by the compiler, read by the planner, the engines, the workers and the command line. It refuses
a document of another schema.
"""

from enum import StrEnum
from typing import Any, Literal

import msgspec

from videoflow.errors import FlowFileError

SPEC_SCHEMA = 1
MAX_STATE_BYTES = 64 << 20


class NodeKind(StrEnum):
    """The three kinds of node."""

    PRODUCER = "producer"
    PROCESSOR = "processor"
    CONSUMER = "consumer"


class CodeKind(StrEnum):
    """How a worker finds a class."""

    MODULE = "module"
    FLOW_FILE = "flow_file"
    NOTEBOOK = "notebook"


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the parts of a spec."""


class PortRef(Struct, frozen=True, kw_only=True):
    """An output port of a node."""

    node: str
    port: str = "out"

    def __str__(self) -> str:
        return self.node if self.port == "out" else f"{self.node}.{self.port}"


class LatestSpec(Struct, frozen=True, kw_only=True):
    """A live edge: when the child is behind, the oldest item of the same key is dropped."""

    key: str | None = None
    max_age_seconds: float | None = None
    capacity: int = 1


class EdgeSpec(Struct, frozen=True, kw_only=True):
    """One input of a node: what it reads.

    Attributes:
        child: The reading node.
        input: Position among the child's inputs, from 0.
        parents: The port that it reads; several for `merge`.
        latest: Set for a live edge.
    """

    child: str
    input: int
    parents: tuple[PortRef, ...]
    latest: LatestSpec | None = None

    @property
    def name(self) -> str:
        """What the child calls this input: the parents' names."""
        return "+".join(str(parent) for parent in self.parents)


class ControlSpec(Struct, frozen=True, kw_only=True):
    """The markers of a node: every item of these ports reaches its `on_control`, in every replica.

    Attributes:
        child: The node.
        parents: The ports; several for `merge`.
    """

    child: str
    parents: tuple[PortRef, ...]

    @property
    def name(self) -> str:
        """What the markers are called: the parents' names."""
        return "+".join(str(parent) for parent in self.parents)


class BatchSpec(Struct, frozen=True, kw_only=True):
    """How a node's inputs are batched."""

    max_items: int
    max_wait_seconds: float
    group_by: Literal["shape"] | None = None


class GpuSpec(Struct, frozen=True, kw_only=True):
    """How one replica uses its accelerators; the fields are those of `vf.Gpu`."""

    sharing: str | None = None
    peak_memory_bytes: int | None = None
    features: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class ResourcesSpec(Struct, frozen=True, kw_only=True):
    """What one replica needs."""

    cpus: float = 1.0
    memory_bytes: int | None = None
    gpus: int = 0
    gpu_memory_bytes: int | None = None
    gpu: GpuSpec | None = None


class OptionsSpec(Struct, frozen=True, kw_only=True):
    """The options of a node, resolved: `ordered` and `missing` hold what applies."""

    replicas: int = 1
    partition_by: str | None = None
    ordered: bool = True
    missing: Literal["skip", "none"] = "skip"
    missing_chosen: bool = False
    batch: BatchSpec | None = None
    fuse: str | Literal[False] | None = None
    resources: ResourcesSpec = ResourcesSpec()
    on_error: dict[str, Literal["poison", "transient", "fatal"]] = {}
    retries: int = 3
    timeout_seconds: float | None = None
    lookahead: int = 0
    deterministic: bool = True
    image: str | None = None


class TraitsSpec(Struct, frozen=True, kw_only=True):
    """What a node's class is able to do, read from the class.

    Attributes:
        stateful: It uses `ctx.state` or has `snapshot`.
        flushes: It overrides `flush`.
        checkpoints: It has `checkpoint`.
        holds_items: The most inputs that it keeps unsettled.
        resumable: A producer that can start again after its last committed offset.
        required: A source whose failure makes the run incomplete.
        asynchronous: Its main method is a coroutine function.
        batches: It has `process_batch`.
        batch_invariant: Results do not depend on the size of the batch.
        max_item_bytes: Largest output, or None.
        collects: Its state holds values for `report.values`.
        outputs: Paths that it writes, as given.
        inputs: Paths that it reads, as given.
        effect_key_seconds: How long what it writes to recognises a repeated effect key; None: for ever.
        controlled: It has `on_control`.
        snapshots: It has `snapshot` and `restore`.
        max_state_bytes: The most that it may keep in one partition, encoded.
    """

    stateful: bool = False
    flushes: bool = False
    checkpoints: bool = False
    holds_items: int = 0
    resumable: bool = True
    required: bool = True
    asynchronous: bool = False
    batches: bool = False
    batch_invariant: bool = False
    max_item_bytes: int | None = None
    collects: bool = False
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    effect_key_seconds: float | None = 0.0
    controlled: bool = False
    snapshots: bool = False
    max_state_bytes: int = MAX_STATE_BYTES


class NodeSpec(Struct, frozen=True, kw_only=True):
    """One node.

    Attributes:
        name: Unique in the flow.
        kind: Producer, processor or consumer.
        code: How its class is found.
        module: Module, path of the flow file, or "" for a notebook class.
        qualname: Qualified name of the class or decorated function.
        arguments: What `__init__` received, as JSON.
        ports: Output ports in order; the first is the main one.
        many: Port → most items per input, for ports that may emit several.
        options: How it runs.
        traits: What its class is able to do.
        scope: The fan-out ports (`node.port`) between the sources and this node's inputs.
    """

    name: str
    kind: NodeKind
    code: CodeKind
    module: str
    qualname: str
    arguments: dict[str, Any] = {}
    ports: tuple[str, ...] = ()
    many: dict[str, int] = {}
    options: OptionsSpec = OptionsSpec()
    traits: TraitsSpec = TraitsSpec()
    scope: tuple[str, ...] = ()

    def competes_without_effect_key(self, inputs: int) -> bool:
        """Whether replicas of a sink share its input and nothing recognises what they do twice (rule 14).

        Args:
            inputs: How many it has.
        """
        shared = self.options.replicas > 1 and self.options.partition_by is None and inputs < 2
        return shared and self.kind is NodeKind.CONSUMER and self.traits.effect_key_seconds == 0


class ChannelRequirementSpec(Struct, frozen=True, kw_only=True):
    """What one channel must guarantee; the fields are those of `vf.ChannelRequirement`."""

    channel: str
    profile: str | None = None
    tolerated_failures: int = 0
    horizon_seconds: float | None = None
    exactly_once_effects: bool = False


class RequirementsSpec(Struct, frozen=True, kw_only=True):
    """What the backends must give beyond what the edges say; the fields are those of `vf.Requirements`."""

    channels: tuple[ChannelRequirementSpec, ...] = ()
    tolerated_failures: int = 0
    horizon_seconds: float | None = None
    exactly_once_effects: bool = False
    durable_control: bool = False
    restart_safe: bool = False
    isolated: bool = False
    dedicated_cpus: bool = False


class FlowSpec(Struct, frozen=True, kw_only=True):
    """A whole flow.

    Attributes:
        schema: Version of this document.
        flow_id: The flow's name.
        folder: Where the flow was built; relative paths are relative to it.
        nodes: In topological order.
        edges: By child in the order of `nodes`, then by input.
        requirements: What the backends must give; a composition that cannot is refused.
        controls: The markers of nodes, by child in the order of `nodes`; they are no inputs.
    """

    schema: int = SPEC_SCHEMA
    flow_id: str
    folder: str
    nodes: tuple[NodeSpec, ...]
    edges: tuple[EdgeSpec, ...]
    requirements: RequirementsSpec = RequirementsSpec()
    controls: tuple[ControlSpec, ...] = ()

    def node(self, name: str) -> NodeSpec:
        """Returns the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def inputs(self, name: str) -> tuple[EdgeSpec, ...]:
        """Returns the inputs of a node, by position."""
        return tuple(edge for edge in self.edges if edge.child == name)

    def control(self, name: str) -> ControlSpec | None:
        """Returns the markers of a node, or None."""
        return next((control for control in self.controls if control.child == name), None)

    def ports_read(self) -> frozenset[PortRef]:
        """Returns the ports that a node reads or takes markers of."""
        markers = frozenset(ref for control in self.controls for ref in control.parents)
        return markers.union(*(edge.parents for edge in self.edges))

    def readers(self, name: str, port: str) -> tuple[EdgeSpec, ...]:
        """Returns the edges that read a port."""
        return tuple(edge for edge in self.edges if PortRef(node=name, port=port) in edge.parents)

    def to_json(self) -> bytes:
        """Returns the document, indented."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=2)

    @staticmethod
    def from_json(document: bytes) -> "FlowSpec":
        """Reads a document.

        Raises:
            FlowFileError: Not a flow spec, or of another schema.
        """
        try:
            spec = msgspec.json.decode(document, type=FlowSpec)
        except msgspec.MsgspecError as error:
            raise FlowFileError("this is not a flow spec", cause=str(error)) from error
        if spec.schema != SPEC_SCHEMA:
            raise FlowFileError(
                f"the flow spec has schema {spec.schema}, this version reads {SPEC_SCHEMA}",
                remedy="compile the flow again with this version",
            )
        return spec
