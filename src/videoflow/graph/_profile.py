"""The profile of a run: where its time went, what limits it, and what mending that would gain.

Made by the engines where a run is profiled, part of its report. All times are sums over replicas, in
seconds of the clock on the wall unless they are said to be of a processor. It refuses nothing.
"""

import msgspec


class TaskTimes(msgspec.Struct, kw_only=True):
    """Where the time of a task went; the parts exclude each other and add up to `seconds`.

    Attributes:
        task: Its name.
        nodes: What runs in it.
        replicas: Running copies.
        seconds: From when its nodes were open to its end.
        busy_seconds: In the code of its nodes.
        hop_seconds: Receiving, decoding, encoding, publishing and settling.
        commit_seconds: Writing the records of the run.
        other_seconds: What the framework does beside that.
        starved_seconds: Waiting for input.
        blocked_seconds: Waiting for room downstream.
        paused_seconds: Waiting before another attempt.
        processor_seconds: Of a processor, over all its threads in the local engine.
    """

    task: str
    nodes: list[str]
    replicas: int
    seconds: float
    busy_seconds: float
    hop_seconds: float
    commit_seconds: float
    other_seconds: float
    starved_seconds: float
    blocked_seconds: float
    paused_seconds: float
    processor_seconds: float

    @property
    def work_seconds(self) -> float:
        """What it did not wait."""
        return self.busy_seconds + self.hop_seconds + self.commit_seconds + self.other_seconds

    def share(self, seconds: float) -> float:
        """Returns a part of its time, 0 to 1."""
        return seconds / self.seconds if self.seconds > 0 else 0.0


class NodeTimes(msgspec.Struct, kw_only=True):
    """The calls of one node.

    Attributes:
        node: Its name.
        task: Where it runs.
        items: Inputs done, or items produced.
        seconds: In its code.
    """

    node: str
    task: str
    items: int
    seconds: float


class HopTimes(msgspec.Struct, kw_only=True):
    """What it took to hand items from a port to a task; of several readers each has its share of the writing.

    Attributes:
        parent: The port.
        child: The node that reads it.
        task: The task of that node.
        items: As the reader received them, skips included.
        encode_seconds: Values into messages, large arrays into the payload store.
        publish_seconds: Messages into the channel.
        receive_seconds: Messages out of the channel.
        decode_seconds: Values out of messages.
        settle_seconds: Saying that an item is done.
        blocked_seconds: What the writer waited for room, which is no cost of the hop.
        starved_seconds: What the reader waited for input, when this is where it came from.
        processor_seconds: What of the five was time of a processor: what does not depend on how busy the
            machine is beside this.
    """

    parent: str
    child: str
    task: str
    items: int
    encode_seconds: float
    publish_seconds: float
    receive_seconds: float
    decode_seconds: float
    settle_seconds: float
    blocked_seconds: float
    starved_seconds: float
    processor_seconds: float

    @property
    def seconds(self) -> float:
        """What it took together, at both ends."""
        writing = self.encode_seconds + self.publish_seconds
        return writing + self.receive_seconds + self.decode_seconds + self.settle_seconds


class Bottleneck(msgspec.Struct, kw_only=True):
    """What limits a run, and what mending it would gain.

    Attributes:
        kind: `node` (its own code), `hand-over` (what the framework does in its task), `processors`, or
            `none` where nothing was busy for most of the time.
        node: The node to mend.
        share: How busy what limits was, 0 to 1.
        rate: Source items per second, as it was.
        mended_rate: The same with the node twice as fast (or with no hand-over), as a model of independent
            stages says; it is what can be had at most.
        next_limit: What would limit it then: a task, or `processors`.
        text: All of that as sentences.
    """

    kind: str
    node: str
    share: float
    rate: float
    mended_rate: float
    next_limit: str
    text: str


class ProfileReport(msgspec.Struct, kw_only=True):
    """The profile of a run.

    Attributes:
        seconds: How long its longest task was at work.
        items: What its largest source made.
        processors: How many there were to use.
        tasks: In the order of the plan.
        nodes: In the order of the flow.
        hops: By edge between tasks.
        bottleneck: What limits it.
    """

    seconds: float
    items: int
    processors: float
    tasks: list[TaskTimes]
    nodes: list[NodeTimes]
    hops: list[HopTimes]
    bottleneck: Bottleneck
