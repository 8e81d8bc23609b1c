"""What a node is able to do, read from its class and its code.

Used by the compiler and the invoker. It refuses nothing; what a trait means for the graph is the
compiler's to judge. A trait that the class says outright is taken; state is otherwise judged from the code
of its methods.
"""

import dis
import functools
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType

from videoflow.graph._functions import FunctionConsumer, FunctionProcessor, FunctionProducer
from videoflow.graph._methods import is_asynchronous, shape_of
from videoflow.graph._node import Consumer, Node, Processor, Producer
from videoflow.graph._types import Value
from videoflow.graph.spec import NodeKind, TraitsSpec

MANY_DEFAULT = 256
MAIN_METHOD: Mapping[NodeKind, str] = {
    NodeKind.PRODUCER: "produce",
    NodeKind.PROCESSOR: "process",
    NodeKind.CONSUMER: "consume",
}
_BASES = (Producer, Processor, Consumer, FunctionProducer, FunctionProcessor, FunctionConsumer)
_LIBRARY = frozenset(base for kind in _BASES for base in kind.__mro__)


def overrides(node: Node, method: str) -> bool:
    """Whether a class or one of its bases, up to those of the library, defines a method."""
    own = (cls for cls in type(node).__mro__ if cls not in _LIBRARY)
    return method in vars(node) or any(method in vars(cls) for cls in own)


def many_of(node: Node) -> dict[str, int]:
    """Returns the ports that may emit several items per input, with their bounds."""
    many: Value = node.many
    return dict(many) if isinstance(many, Mapping) else dict.fromkeys(many, MANY_DEFAULT)


def traits_of(node: Node) -> TraitsSpec:
    """Returns the traits of a node."""
    main = MAIN_METHOD[node._videoflow_kind]
    if not overrides(node, main) and hasattr(node, "process_batch"):
        main = "process_batch"
    largest = node.max_item_bytes
    return TraitsSpec(
        stateful=is_stateful(node),
        flushes=overrides(node, "flush"),
        checkpoints=overrides(node, "checkpoint"),
        holds_items=node.holds_items,
        resumable=bool(node.resumable),
        required=bool(node.required),
        asynchronous=is_asynchronous(getattr(node, main)),
        batches=overrides(node, "process_batch"),
        batch_invariant=bool(node.batch_invariant),
        max_item_bytes=largest() if callable(largest) else largest,
        collects=bool(node.collects),
        outputs=_paths(node, "outputs"),
        inputs=_paths(node, "inputs"),
        effect_key_seconds=node.effect_key_seconds,
        controlled=overrides(node, "on_control"),
        snapshots=has_snapshots(node),
        max_state_bytes=node.max_state_bytes,
    )


def _paths(node: Node, method: str) -> tuple[str, ...]:
    """Returns the paths that a node names; none where the class uses the name for data of its own."""
    found = getattr(node, method)
    return tuple(str(path) for path in found()) if callable(found) else ()


def is_stateful(node: Node) -> bool:
    """Whether a node uses `ctx.state`, or has `snapshot`.

    A class that does not say so itself is judged: a method of it that takes a context reads an attribute
    `state` of something other than `self`.
    """
    if has_snapshots(node):
        return True
    if node.stateful is not None:
        return bool(node.stateful)
    return any(_reads_state(function) for function in _own_functions(node))


def has_snapshots(node: Node) -> bool:
    """Whether a node hands over what it keeps in `self`."""
    return overrides(node, "snapshot") or overrides(node, "restore")


def _own_functions(node: Node) -> Iterator[FunctionType]:
    for cls in type(node).__mro__:
        if cls in _LIBRARY:
            continue
        for name, member in vars(cls).items():
            if not name.startswith("_videoflow"):
                yield from _functions_of(member)


def _functions_of(member: Value) -> Iterator[FunctionType]:
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    if isinstance(member, functools.partial):
        member = member.func
    if callable(member):
        member = inspect.unwrap(member)
    if isinstance(member, FunctionType):
        yield member


def _reads_state(function: FunctionType) -> bool:
    return shape_of(function).context is not None and any(map(_code_reads_state, _codes(function.__code__)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _code_reads_state(code: CodeType) -> bool:
    if "state" not in code.co_names:
        return False
    before: object = None
    for instruction in dis.get_instructions(code):
        if instruction.argval == "state" and "ATTR" in instruction.opname and before != "self":
            return True
        # Python 3.13 loads two names in one instruction; the attribute is of the last.
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        before = names[-1] if names and instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) else None
    return False
