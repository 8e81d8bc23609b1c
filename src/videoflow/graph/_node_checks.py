"""What can be wrong with one node: its class, its options, how many inputs it is wired to.

Used by the compiler, which reports all of it at once. It refuses nothing itself: it returns every problem
that it finds.
"""

import re
from collections.abc import Iterator

from videoflow.errors import NotYet, Problem
from videoflow.graph._gpus import check_gpus
from videoflow.graph._methods import Method, shape_of
from videoflow.graph._naming import NAME
from videoflow.graph._node import Node
from videoflow.graph._resolve import keeps_state
from videoflow.graph._traits import MAIN_METHOD, overrides
from videoflow.graph.spec import NodeKind, NodeSpec, OptionsSpec, TraitsSpec

_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


EFFECT_KEY_REMEDY = (
    "use replicas=1 or partition_by=, or write under ctx.effect_key and say effect_key_seconds on the class"
)


def later(node: str, what: str, remedy: str) -> Problem:
    """Returns the problem of a thing that is not built yet."""
    return Problem(node, f"{what}: not built yet", remedy, NotYet.code)


def check_node(node: Node, spec: NodeSpec) -> Iterator[Problem]:
    """Yields what is wrong with a node by itself."""
    yield from _check_class(node, spec)
    yield from _check_state(node, spec)
    yield from _check_ports(spec)
    yield from _check_wiring(node, spec)
    yield from _check_markers(node, spec)
    yield from _check_ranges(spec.name, spec.options)
    yield from check_gpus(spec.name, spec.options.resources)
    yield from _check_order(spec)
    yield from _check_effects(spec, len(node._videoflow_record.inputs or ()))
    yield from _check_later(node, spec)


def _check_class(node: Node, spec: NodeSpec) -> Iterator[Problem]:
    main, name, traits = MAIN_METHOD[spec.kind], type(node).__qualname__, spec.traits
    if not overrides(node, main) and not (spec.kind is NodeKind.PROCESSOR and traits.batches):
        yield Problem(spec.name, f"the class {name} has no {main}", f"write def {main}(self, ...)")
    if spec.options.batch is not None and not (spec.kind is NodeKind.PROCESSOR and traits.batches):
        processes = spec.kind is NodeKind.PROCESSOR
        cause = f"the class {name} has no process_batch" if processes else "batch= is for processors"
        yield Problem(
            spec.name, cause, "write def process_batch(self, inputs)" if processes else "take batch= away"
        )
    if traits.checkpoints and not _whole(traits.holds_items, 1):
        yield Problem(
            spec.name,
            f"the class {name} has checkpoint and holds_items = {traits.holds_items!r}",
            "say holds_items = the most inputs that it keeps unsettled",
        )
    if traits.holds_items and not traits.checkpoints:
        yield Problem(
            spec.name, f"the class {name} holds items and has no checkpoint", "write checkpoint(self, ctx)"
        )
    if traits.checkpoints and spec.kind is NodeKind.PRODUCER:
        yield Problem(spec.name, "a source has no input to make checkpoints of", "take checkpoint away")
    if traits.max_item_bytes is not None and not _whole(traits.max_item_bytes, 1):
        yield Problem(
            spec.name, f"max_item_bytes is {traits.max_item_bytes!r}", "make it a number of bytes, or None"
        )


def _check_state(node: Node, spec: NodeSpec) -> Iterator[Problem]:
    name, traits = type(node).__qualname__, spec.traits
    for method, other in (("snapshot", "restore"), ("restore", "snapshot")):
        if overrides(node, method) and not overrides(node, other):
            yield Problem(spec.name, f"the class {name} has {method} and no {other}", f"write {other} too")
    if traits.snapshots and traits.checkpoints:
        yield Problem(
            spec.name,
            f"the class {name} has snapshot and checkpoint",
            "say in ctx.state what is durable, in checkpoint; a snapshot would be ahead of that",
        )
    if traits.snapshots and node.stateful is False:
        yield Problem(spec.name, "stateful = False, and it has snapshot", "take stateful = False away")
    if not _whole(traits.max_state_bytes, 1):
        yield Problem(spec.name, f"max_state_bytes is {traits.max_state_bytes!r}", "make it a whole number")


def _check_ports(spec: NodeSpec) -> Iterator[Problem]:
    if spec.kind is NodeKind.CONSUMER:
        if spec.ports:
            yield Problem(
                spec.name, "a consumer has no ports", "take `ports` away, or derive from vf.Processor"
            )
        return
    if not spec.ports:
        yield Problem(spec.name, "it has no ports", 'say ports = ("out",), or derive from vf.Consumer')
    ports: tuple[object, ...] = spec.ports
    for port in ports:
        if not (isinstance(port, str) and NAME.fullmatch(port)):
            yield Problem(
                spec.name, f"{port!r} is no name of a port", "use a lower-case letter, then a-z, 0-9, _ and -"
            )
    if len(set(spec.ports)) < len(spec.ports):
        yield Problem(spec.name, "a port is named twice", "name each port once")
    for name, most in spec.many.items():
        if name not in spec.ports:
            yield Problem(
                spec.name, f"many names {name!r}, which is no port", f"ports are {', '.join(spec.ports)}"
            )
        if not _whole(most, 1):
            yield Problem(
                spec.name, f"many[{name!r}] is {most!r}", "make it the most items per input, at least 1"
            )
    if spec.many and spec.kind is NodeKind.PRODUCER:
        yield Problem(spec.name, "a source has no `many` ports", "yield an Item for each output")


def _check_wiring(node: Node, spec: NodeSpec) -> Iterator[Problem]:
    inputs = node._videoflow_record.inputs
    if spec.kind is NodeKind.PRODUCER:
        if shape_of(_method(node, "produce")).least > 1:
            yield Problem(spec.name, "produce takes `resume` and nothing else", "give the rest to __init__")
        return
    if inputs is None:
        yield Problem(spec.name, "it is not wired", f"write {type(node).__qualname__}(...)(parent)")
        return
    main = MAIN_METHOD[spec.kind]
    if not overrides(node, main):
        return
    shape, count = shape_of(_method(node, main)), len(inputs)
    if count < shape.least or (shape.most is not None and count > shape.most):
        takes = str(shape.least) if shape.least == shape.most else f"{shape.least} to {shape.most or 'any'}"
        yield Problem(
            spec.name,
            f"{main} takes {takes} input{'' if takes == '1' else 's'} and is wired to {count}",
            "wire as many parents as it has parameters",
        )
    for edge in inputs:
        live = edge.latest
        if live is None:
            continue
        if not _whole(live.capacity, 1):
            yield Problem(spec.name, f"latest(capacity={live.capacity!r})", "make it a whole number from 1")
        if live.max_age_seconds is not None and not _positive(live.max_age_seconds):
            yield Problem(
                spec.name, f"latest(max_age_seconds={live.max_age_seconds!r})", "make it more than 0"
            )
        if live.key is not None and not _ATTRIBUTE.fullmatch(str(live.key)):
            yield _key_problem(spec.name, "latest(key=...)", live.key)


def _check_markers(node: Node, spec: NodeSpec) -> Iterator[Problem]:
    if node._videoflow_record.markers is not None and not spec.traits.controlled:
        name = type(node).__qualname__
        yield Problem(
            spec.name,
            f"it is given markers, and the class {name} has no on_control",
            "write on_control(self, marker), or take .control(...) away",
        )
    elif spec.traits.controlled and not _takes_one(_method(node, "on_control")):
        yield Problem(spec.name, "on_control takes one marker", "write on_control(self, marker)")


def _takes_one(method: Method) -> bool:
    shape = shape_of(method)
    return shape.least <= 1 and (shape.most is None or shape.most >= 1)


def _check_ranges(name: str, options: OptionsSpec) -> Iterator[Problem]:
    resources, batch = options.resources, options.batch
    wanted = [
        ("replicas", options.replicas, options.replicas >= 1, "at least 1"),
        ("retries", options.retries, options.retries >= 0, "0 or more"),
        ("lookahead", options.lookahead, options.lookahead >= 0, "0 or more"),
        (
            "timeout_seconds",
            options.timeout_seconds,
            options.timeout_seconds is None or _positive(options.timeout_seconds),
            "more than 0, or None",
        ),
        ("fuse", options.fuse, options.fuse != "", "a label, False or None"),
        ("resources.cpus", resources.cpus, _positive(resources.cpus), "more than 0"),
        (
            "resources.memory_bytes",
            resources.memory_bytes,
            resources.memory_bytes is None or _whole(resources.memory_bytes, 1),
            "a number of bytes, or None",
        ),
        ("resources.gpus", resources.gpus, _whole(resources.gpus, 0), "0 or more"),
    ]
    if batch is not None:
        wanted += [
            ("batch.max_items", batch.max_items, _whole(batch.max_items, 1), "at least 1"),
            (
                "batch.max_wait_seconds",
                batch.max_wait_seconds,
                batch.max_wait_seconds == 0 or _positive(batch.max_wait_seconds),
                "0 or more",
            ),
        ]
    for option, value, right, need in wanted:
        if not right:
            yield Problem(name, f"{option} is {value!r}", f"make it {need}")
    if options.partition_by is not None and not _ATTRIBUTE.fullmatch(options.partition_by):
        yield _key_problem(name, "partition_by", options.partition_by)


def single_owner_reason(options: OptionsSpec, traits: TraitsSpec) -> str:
    """Returns why replicas cannot share a node's input, or an empty text."""
    if traits.stateful:
        return "it keeps state"
    if traits.flushes:
        return "it has a flush"
    if traits.checkpoints:
        return "it makes checkpoints"
    return "it is ordered" if options.ordered else ""


def _check_order(spec: NodeSpec) -> Iterator[Problem]:
    options, name = spec.options, spec.name
    if spec.kind is NodeKind.PRODUCER:
        if options.replicas > 1:
            yield Problem(
                name, f"a source with replicas={options.replicas}", "make it 1: two would read the same"
            )
        if options.partition_by is not None:
            yield Problem(
                name, "a source has no input to partition", "set partition_by where the items are read"
            )
        return
    if keeps_state(spec.traits) and not options.ordered:
        reason = single_owner_reason(options, spec.traits)
        yield Problem(name, f"ordered=False, and {reason}", "take ordered=False away")
    grouped = isinstance(options.fuse, str)  # it may share the input of the first by that one's key
    if options.replicas > 1 and options.partition_by is None and not grouped:
        reason = single_owner_reason(options, spec.traits)
        if reason:
            free = "or ordered=False, " if reason == "it is ordered" else ""
            yield Problem(
                name,
                f"replicas={options.replicas}, and {reason}: replicas would see its input out of order",
                f"use replicas=1, {free}or partition_by=",
            )


def _check_effects(spec: NodeSpec, inputs: int) -> Iterator[Problem]:
    kept = spec.traits.effect_key_seconds
    if kept is not None and not (kept == 0 or _positive(kept)):
        yield Problem(spec.name, f"effect_key_seconds is {kept!r}", "make it seconds, 0, or None for ever")
    if spec.kind is not NodeKind.CONSUMER and kept != 0:
        yield Problem(spec.name, "effect_key_seconds is said of sinks", "take it away, or make it a consumer")
    if spec.competes_without_effect_key(inputs) and not spec.options.ordered:
        cause = f"a sink with replicas={spec.options.replicas}, and its class declares no effect key"
        yield Problem(spec.name, cause, EFFECT_KEY_REMEDY)


def _check_later(node: Node, spec: NodeSpec) -> Iterator[Problem]:
    name, options, given = spec.name, spec.options, node._videoflow_record.options
    if given.get("join") is not None:
        yield later(name, "join=ByTime(...)", "leave it out to join by trace, or use vf.merge")
    if given.get("window") is not None:
        yield later(name, "window=", "leave it out, and keep what is needed in ctx.state")
    if options.image is not None:
        yield later(name, "image=", "leave it out")


def _key_problem(name: str, what: str, key: object) -> Problem:
    return Problem(
        name, f"{what} is {key!r}", 'make it "key", "source" or the name of an attribute of the item'
    )


def _method(node: Node, name: str) -> Method:
    found: Method = getattr(node, name)
    return found


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
