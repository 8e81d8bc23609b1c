"""Makes the profile of a run from what its replicas measured.

Used by the report, where a run is profiled. It refuses to name a bottleneck where nothing was busy for most
of the time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from videoflow.graph.report import Bottleneck, HopTimes, NodeTimes, ProfileReport, TaskTimes
from videoflow.graph.spec import NodeKind, PortRef
from videoflow.planner.plan import Plan, TaskPlan, Transport
from videoflow.worker import Part, Spending

_HOP = (Part.ENCODE, Part.PUBLISH, Part.RECEIVE, Part.DECODE, Part.SETTLE)
_WAITS = (Part.STARVED, Part.BLOCKED, Part.PAUSED)
_CLEAR_SHARE = 0.5
_CROWDED, _MUCH_SHARE = 3.0, 0.2
_PROCESSORS = "processors"


def make_profile(plan: Plan, spendings: Mapping[str, Spending], processors: float) -> ProfileReport:
    """Returns the profile of a run.

    Args:
        plan: What ran.
        spendings: Task → where its time went, over all replicas and incarnations.
        processors: How many there were to use.
    """
    spent = {task.name: spendings.get(task.name, Spending()) for task in plan.tasks}
    tasks = [_task(task, spent[task.name]) for task in plan.tasks]
    nodes = [
        NodeTimes(node=node.name, task=task.name, items=found.items, seconds=found.seconds)
        for node in plan.spec.nodes
        for task in (plan.task_of(node.name),)
        for found in (spent[task.name].of(Part.CALL, node.name),)
    ]
    sources = {node.name for node in plan.spec.nodes if node.kind is NodeKind.PRODUCER}
    items = max((node.items for node in nodes if node.node in sources), default=0)
    seconds = max((task.seconds / task.replicas for task in tasks), default=0.0)
    hops = _hops(plan, spent)
    limited = _Model(tasks, nodes, processors, seconds, items).bottleneck()
    limited.text += _waiting_for_processors(plan.engine, tasks, hops)
    return ProfileReport(
        seconds=seconds,
        items=items,
        processors=processors,
        tasks=tasks,
        nodes=nodes,
        hops=hops,
        bottleneck=limited,
    )


def _task(task: TaskPlan, spent: Spending) -> TaskTimes:
    busy = spent.of(Part.CALL).seconds + spent.of(Part.CHECKPOINT).seconds
    hop = sum(spent.of(part).seconds for part in _HOP)
    commit = spent.of(Part.COMMIT).seconds
    starved, blocked, paused = (spent.of(part).seconds for part in _WAITS)
    known = busy + hop + commit + starved + blocked + paused
    return TaskTimes(
        task=task.name,
        nodes=list(task.nodes),
        replicas=task.replicas,
        seconds=spent.seconds,
        busy_seconds=busy,
        hop_seconds=hop,
        commit_seconds=commit,
        other_seconds=max(0.0, spent.seconds - known),
        starved_seconds=starved,
        blocked_seconds=blocked,
        paused_seconds=paused,
        processor_seconds=spent.processor_seconds,
    )


def _hops(plan: Plan, spent: Mapping[str, Spending]) -> list[HopTimes]:
    read = {
        (str(PortRef(node=edge.parent, port=edge.port)), plan.task_of(edge.child).name): edge
        for edge in plan.edges
        if edge.transport is not Transport.FUSED
    }
    readers = Counter(port for port, _ in read)
    return [
        _hop(port, edge.child, task, spent[plan.task_of(edge.parent).name], spent[task], readers[port])
        for (port, task), edge in read.items()
    ]


def _hop(port: str, child: str, task: str, writer: Spending, reader: Spending, readers: int) -> HopTimes:
    """Returns what a hop took; the writing of a port is shared by so many readers."""
    encode, publish, blocked = (writer.of(part, port) for part in (Part.ENCODE, Part.PUBLISH, Part.BLOCKED))
    receive, decode, settle = (reader.of(part, port) for part in (Part.RECEIVE, Part.DECODE, Part.SETTLE))
    reading = receive.processor_seconds + decode.processor_seconds + settle.processor_seconds
    return HopTimes(
        parent=port,
        child=child,
        task=task,
        items=receive.items,
        encode_seconds=encode.seconds / readers,
        publish_seconds=publish.seconds / readers,
        receive_seconds=receive.seconds,
        decode_seconds=decode.seconds,
        settle_seconds=settle.seconds,
        blocked_seconds=blocked.seconds / readers,
        starved_seconds=reader.of(Part.STARVED, port).seconds,
        processor_seconds=(encode.processor_seconds + publish.processor_seconds) / readers + reading,
    )


def _waiting_for_processors(engine: str, tasks: Sequence[TaskTimes], hops: Sequence[HopTimes]) -> str:
    """Returns a sentence where hops, which never wait for anything else, took far longer than they worked."""
    took, worked = sum(hop.seconds for hop in hops), sum(hop.processor_seconds for hop in hops)
    if (
        took < _MUCH_SHARE * sum(task.work_seconds for task in tasks)
        or took < _CROWDED * worked
        or not worked
    ):
        return ""
    whom = (
        "threads wait for one interpreter, and --engine local has several"
        if engine == "threads"
        else "there are fewer processors than tasks, or they had other work"
    )
    return f" Handing over took {took / worked:.0f} times as long as it used a processor: {whom}."


@dataclass(frozen=True)
class _Model:
    """A flow as independent stages that share some processors: the slowest one sets the pace.

    Attributes:
        tasks: Where their time went.
        nodes: Their calls.
        processors: How many there are.
        seconds: How long the run took.
        items: What the largest source made.
    """

    tasks: Sequence[TaskTimes]
    nodes: Sequence[NodeTimes]
    processors: float
    seconds: float
    items: int

    def bottleneck(self) -> Bottleneck:
        """Returns what limits the run."""
        rate = self.items / self.seconds if self.seconds > 0 else 0.0
        stages = {task.task: task.work_seconds / task.replicas for task in self.tasks}
        shared = sum(task.processor_seconds for task in self.tasks) / self.processors
        limit = max([shared, *stages.values()], default=0.0)
        share = min(1.0, limit / self.seconds) if self.seconds > 0 else 0.0
        if share < _CLEAR_SHARE or not self.tasks:
            return self._none(share, rate)
        by_processors = shared >= max(stages.values())
        task = max(
            self.tasks, key=lambda t: t.processor_seconds if by_processors else t.work_seconds / t.replicas
        )
        kind, node, saved = self._culprit(task)
        used = min(1.0, task.processor_seconds / task.work_seconds) if task.work_seconds else 0.0
        shared -= saved * used / self.processors
        kind = _PROCESSORS if by_processors else kind
        stages[task.task] -= saved / task.replicas
        then = {**stages, _PROCESSORS: shared}
        next_limit = max(then, key=lambda name: then[name])
        mended = rate * limit / then[next_limit] if then[next_limit] > 0 else rate
        found = Bottleneck(
            kind=kind,
            node=node,
            share=share,
            rate=rate,
            mended_rate=mended,
            next_limit=next_limit,
            text="",
        )
        found.text = self._text(found, task)
        return found

    def _culprit(self, task: TaskTimes) -> tuple[str, str, float]:
        """Returns what to mend in a task: its kind, the node, and how many seconds that saves."""
        node = max((node for node in self.nodes if node.task == task.task), key=lambda node: node.seconds)
        around = task.hop_seconds + task.commit_seconds + task.other_seconds
        if around > task.busy_seconds:
            return "hand-over", node.node, task.hop_seconds
        return "node", node.node, node.seconds / 2

    def _none(self, share: float, rate: float) -> Bottleneck:
        text = (
            f"nothing limits it: the busiest part was at work {share:.0%} of the time. The source gives "
            "no more, or the run was too short to tell."
        )
        return Bottleneck(
            kind="none", node="", share=share, rate=rate, mended_rate=rate, next_limit="", text=text
        )

    def _text(self, found: Bottleneck, task: TaskTimes) -> str:
        gain = f"raise the flow from {found.rate:.3g} to {found.mended_rate:.3g} items/s at most"
        if found.next_limit in (task.task, found.kind):
            then = f"{'they' if found.kind == _PROCESSORS else 'it'} would still be the limit"
        elif found.next_limit == _PROCESSORS:
            then = "then the processors are the limit"
        else:
            then = f"then {found.next_limit} is the limit"
        if found.kind == "hand-over":
            around = task.share(task.hop_seconds + task.commit_seconds + task.other_seconds)
            return (
                f"what {task.task} does around its nodes is the bottleneck: {around:.0%} of its time, and "
                f"their code {task.share(task.busy_seconds):.0%}. Without its hops (fused with a neighbour) "
                f"it would {gain}; {then}."
            )
        if found.kind == _PROCESSORS:
            total = sum(each.processor_seconds for each in self.tasks)
            around = task.hop_seconds + task.commit_seconds + task.other_seconds > task.busy_seconds
            mended = f"{task.task} without its hops" if around else f"{found.node} twice as fast"
            return (
                f"the processors are the bottleneck: {total / self.seconds:.1f} of {self.processors:g} were "
                f"busy, {task.processor_seconds / total:.0%} of that in {task.task}. {mended} would {gain}; "
                f"{then}."
            )
        return (
            f"{found.node} is the bottleneck: its task was at work {found.share:.0%} of the time. Twice as "
            f"fast, it would {gain}; {then}."
        )
