"""The base classes of all nodes, and the metaclass that records how a node was made.

Used by every author of a node. They refuse, when a node is made, an argument that cannot be recorded as JSON
and an option of the wrong type; what a class may do within a graph is the compiler's to judge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, Unpack

from videoflow.errors import ArgumentInvalid, UsageError
from videoflow.graph._arguments import capture
from videoflow.graph._options import OPTION_TYPES, Disposition, NodeOptions, nearest, take_options
from videoflow.graph._types import Value
from videoflow.graph._wiring import Input, Latest, Port, Source, as_input, as_markers, first_port
from videoflow.graph.spec import MAX_STATE_BYTES, NodeKind


@dataclass(slots=True)
class NodeRecord:
    """How a node was made and wired.

    Attributes:
        arguments: What `__init__` received, as JSON.
        options: Those given by the caller; those given by a class to `super().__init__` where he gave none.
        inputs: None until the node is wired.
        markers: The ports whose items go to its `on_control`; None where there are none.
    """

    arguments: dict[str, Any]
    options: dict[str, Any]
    inputs: tuple[Input, ...] | None = None
    markers: tuple[Port, ...] | None = None


class NodeMeta(type):
    """Takes the options out and records the arguments, before `__init__` runs."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Value:
        """Makes a node.

        Raises:
            ArgumentInvalid: An argument that cannot be recorded, or an option of the wrong type.
        """
        if "decorated_options" in vars(cls):  # a function: its call may name the parents
            parents, args, kwargs = args, (), {**vars(cls)["decorated_options"], **kwargs}
        else:
            parents = ()
        options, rest = take_options(cls.__qualname__, kwargs)
        record = NodeRecord(capture(cls, args, rest), options)
        create: Any = cls.__new__
        node: Any = create(cls, *args, **rest)
        object.__setattr__(node, "_videoflow_record", record)
        type(node).__init__(node, *args, **rest)
        return node(*parents) if parents else node


if TYPE_CHECKING:
    _Base = object
else:

    class _Base(metaclass=NodeMeta):
        """Carries the metaclass, which type checkers need not see."""


class Node(_Base):
    """Base of producers, processors and consumers; derive from one of those.

    A method may declare `ctx: vf.Context`; it is then given the context of the call. Every method may be
    `async def`. Besides the methods here a class may have:

    * `process_batch(self, inputs)`: one result per input, in order, used with `batch=`;
    * `checkpoint(self, ctx) -> int | None` with `holds_items`: how many of its oldest unsettled inputs are
      durable now; called after every input and at the end;
    * `on_control(self, marker)`: what to do with a marker; called in every replica, between two inputs, for
      each item of what was given to `.control(...)`; what it returns is not used;
    * `interrupt(self)`: ends a blocked `produce` from another thread;
    * `snapshot(self)` and `restore(self, value)`, for state that is kept in `self`: what the first returns is
      committed with outputs and positions, once per commit; the second is given it after `open`, before the
      first input, in a process that goes on where another ended.

    Attributes:
        ports: Names of the outputs; the first is the main one.
        many: Port → most items per input, for ports that may emit several.
        later_ports: Ports that are named and refused for now.
        stateful: It uses `ctx.state`; None: judged by the compiler from the code of its methods.
        max_state_bytes: The most that `ctx.state` and the snapshot may hold together, encoded, in one
            partition; one byte more is `StateTooLarge`, which ends the run unless `on_error` says else.
        ordered: What `ordered=None` means for this class; None: the rule of the compiler.
        deterministic: Its outputs and their number depend on its inputs and state alone.
        holds_items: The most inputs that it keeps unsettled, for `checkpoint`.
        resumable: A producer that can start again after its last committed offset.
        required: A source whose failure makes the run incomplete.
        batch_invariant: Its results do not depend on the size of the batch.
        max_item_bytes: Largest output in bytes, or a method that returns it; None where it is not known.
        collects: Its state holds values for `report.values`.
        effect_key_seconds: How long what it writes to recognises a repeated effect key: 0 not at all, None
            for ever. Effects are exactly once only by such a key.
    """

    _videoflow_kind: ClassVar[NodeKind]
    _videoflow_record: NodeRecord

    ports: tuple[str, ...] = ("out",)
    many: Mapping[str, int] = {}
    later_ports: ClassVar[tuple[str, ...]] = ()
    stateful: ClassVar[bool | None] = None
    max_state_bytes: int = MAX_STATE_BYTES
    ordered: ClassVar[bool | None] = None
    deterministic: ClassVar[bool] = True
    holds_items: int = 0
    resumable: bool = True
    required: bool = True
    batch_invariant: ClassVar[bool] = False
    max_item_bytes: Any = None
    collects: ClassVar[bool] = False
    effect_key_seconds: ClassVar[float | None] = 0.0

    def __init__(self, **options: Unpack[NodeOptions]) -> None:
        owner, given = type(self).__qualname__, self._videoflow_record.options
        known, unknown = take_options(owner, options)
        for name in unknown:
            raise ArgumentInvalid(f"{owner} has no option {name!r}", remedy=nearest(name, OPTION_TYPES))
        for name, value in known.items():
            given.setdefault(name, value)

    def __repr__(self) -> str:
        name = self._videoflow_record.options.get("name")
        return f"<{type(self).__qualname__}{f' {name!r}' if name else ''}>"

    def __getattr__(self, name: str) -> Port:
        """Returns the port of that name."""
        if not name.startswith("_") and (name in self.ports or name in self.later_ports):
            return Port(self, name)
        raise AttributeError(
            f"{type(self).__qualname__} has no attribute and no port {name!r}; {nearest(name, self.ports)}",
            name=name,
            obj=self,
        )

    def port(self, name: str) -> Port:
        """Returns a port by name; the compiler refuses one that the class does not declare."""
        return Port(self, name)

    def open(self, *args: Any, **kwargs: Any) -> Value:
        """Gets ready in the process that runs the node: heavy imports, files, models; may take `ctx`."""

    def close(self, *args: Any, **kwargs: Any) -> Value:
        """Gives back what `open` took; called at the end, also after a failure."""

    def flush(self, *args: Any, **kwargs: Any) -> Value:
        """Returns or yields last outputs when its input is finished, as `process` does; may take `ctx`."""

    def classify(self, error: Exception) -> Disposition | None:
        """Returns what an exception means; None leaves it to `on_error` and the default, transient."""
        return None

    def outputs(self) -> tuple[str, ...]:
        """Returns the paths that it writes, as given, so that two runs do not write one path."""
        return ()

    def inputs(self) -> tuple[str, ...]:
        """Returns the paths that it reads, as given, so that no node of the flow writes one of them."""
        return ()

    def summary(self) -> Mapping[str, Any]:
        """Returns its own figures at the end, JSON-like, for the run report.

        Called after `close`. A source says `outcome` (`complete`, `truncated`, `damaged`, `undecodable`,
        `stalled`, `disconnected`, `stopped`), `detail` in words, and figures of its own beside them; as soon
        as it is open, `expected`: about how many items there will be.
        """
        return {}


class _Emitting(Node):
    def latest(
        self, *, key: str | None = None, max_age_seconds: float | None = None, capacity: int = 1
    ) -> Latest:
        """Returns a live edge from the first port: when the reader is behind, the oldest item is dropped.

        Args:
            key: How items are told apart: `key`, `source` or an attribute of the item; None: all alike.
            max_age_seconds: Nothing older than this reaches the reader.
            capacity: How many items of one key wait at most.
        """
        return first_port(self).latest(key=key, max_age_seconds=max_age_seconds, capacity=capacity)


class _Reading(Node):
    def __call__(self, *parents: Source) -> Self:
        """Wires the node to its parents, in the order of its inputs, and returns it.

        Raises:
            UsageError: It is wired already, or a parent is no node or port.
        """
        record = self._videoflow_record
        if record.inputs is not None:
            raise UsageError(
                f"{self!r} is wired twice",
                cause="calling a node says what it reads, once",
                remedy="make a second node, or use vf.merge for one stream of several parents",
            )
        if not parents:
            raise UsageError(f"{self!r} is called without parents", remedy="write Child(...)(parent)")
        record.inputs = tuple(as_input(parent) for parent in parents)
        return self

    def control(self, markers: Source) -> Self:
        """Lets every item of a node or port reach `on_control` of every replica of this node; returns it.

        Markers go beside the inputs: nothing waits for them, and where too many wait the oldest are dropped
        and counted.

        Args:
            markers: A node or a port, or several with `vf.merge(...)`.

        Raises:
            UsageError: It has its markers already, or they are no node or port, or a live edge.
        """
        record = self._videoflow_record
        if record.markers is not None:
            raise UsageError(
                f"{self!r} is given markers twice",
                cause="control says whose items are its markers, once",
                remedy="write .control(vf.merge(a, b)) for the markers of several",
            )
        record.markers = as_markers(markers)
        return self


class Producer(_Emitting):
    """A node without inputs: it makes the items of a flow, such as the frames of a file."""

    _videoflow_kind = NodeKind.PRODUCER

    def produce(self, *args: Any, **kwargs: Any) -> Value:
        """Yields `Item`s with strictly increasing offsets; takes `resume: int | None`, and may take `ctx`.

        `resume` is the last committed offset + 1, or None at the first start.
        """
        raise _lacks(self, "produce")

    def interrupt(self) -> None:
        """Ends a blocked `produce`; called from another thread when the run stops."""

    if not TYPE_CHECKING:

        def __call__(self, *parents: Source) -> NoReturn:
            """Refuses: a producer has no inputs."""
            raise UsageError(f"{self!r} takes no parents", cause="a producer has no inputs")

        def control(self, markers: Source) -> NoReturn:
            """Refuses: a producer takes nothing, no markers either."""
            raise UsageError(
                f"{self!r} takes no markers",
                cause="a producer reads nothing of the flow",
                remedy="give the markers to a node that reads it",
            )


class Processor(_Emitting, _Reading):
    """A node with inputs and outputs."""

    _videoflow_kind = NodeKind.PROCESSOR

    def process(self, *args: Any, **kwargs: Any) -> Value:
        """Returns a value, `SKIP` or `Out`, or yields several; takes the inputs, and may take `ctx`."""
        raise _lacks(self, "process")


class Consumer(_Reading):
    """A node with inputs and effects: it writes, shows or sends."""

    _videoflow_kind = NodeKind.CONSUMER
    ports: tuple[str, ...] = ()

    def consume(self, *args: Any, **kwargs: Any) -> Value:
        """Has its effect; takes the inputs by position, and may take `ctx`."""
        raise _lacks(self, "consume")


def _lacks(node: Node, method: str) -> UsageError:
    name = type(node).__qualname__
    return UsageError(f"{name} has no {method}", remedy=f"write the method {method} in the class {name}")
