"""What the planner is told beside the flow: capabilities, memory, probed sizes, defaults of sizing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from videoflow.backends.allocation import Sharing
from videoflow.backends.capabilities import (
    AllocationCapabilities,
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    RuntimeCapabilities,
)
from videoflow.backends.outcomes import Observation
from videoflow.planner._costs import FlowCosts

MIB = 1 << 20


@dataclass(frozen=True)
class SizingDefaults:
    """The figures that sizing starts from, before a flow raises or lowers them.

    Attributes:
        prefetch: Messages that a competing replica keeps leased beyond those in work.
        small_prefetch: The same where they are small, and no other replica could have them.
        small_bytes: What they come to at most, then.
        credit_items: Items that a subscription may have leased and unsettled.
        credit_bytes: The same in bytes; whichever is used up first.
        item_bytes: The largest item of a port of which nothing is known.
        publish_window: Publications that one replica may have in flight.
        interleave_items: Bound of the channels on which joined streams of several sources may drift apart.
        latest_keys: Keys that a live edge with a key is given room for.
    """

    prefetch: int = 4
    small_prefetch: int = 64
    small_bytes: int = MIB
    credit_items: int = 256
    credit_bytes: int = 64 * MIB
    item_bytes: int = 16 * MIB
    publish_window: int = 32
    interleave_items: int = 8
    latest_keys: int = 16

    def prefetch_of(self, item_bytes: int, replicas: int) -> int:
        """Returns what each replica keeps leased of items of at most so many bytes, beyond those in work."""
        small = min(self.small_prefetch, self.small_bytes // item_bytes) if replicas == 1 else 0
        return max(self.prefetch, small)


@dataclass(frozen=True)
class PlanFacts:
    """What was observed before planning.

    Attributes:
        engine: For which engine.
        execution: What the engine guarantees.
        messaging: What its messages guarantee.
        payload: What its payload store guarantees.
        runtime: What its run store guarantees.
        memory_budget_bytes: What all buffers together may use.
        available_bytes: What the machine and the container leave.
        max_item_bytes: Node → largest item, where it was read from the source's header.
        cpus: Processors that the run may use.
        fuse: False: labels and costs are ignored and each node is a task, to compare.
        costs: What a profiled run of the flow has measured, or None where there was none.
        defaults: Where sizing starts.
        allocation: What its allocator of accelerators guarantees, or None where it has none.
        gpu_sharing: How accelerators are shared where a node does not say.
    """

    engine: str
    execution: ExecutionCapabilities
    messaging: MessagingCapabilities
    payload: PayloadCapabilities
    runtime: RuntimeCapabilities
    memory_budget_bytes: int
    available_bytes: Observation[int]
    max_item_bytes: Mapping[str, int] = field(default_factory=dict)
    cpus: float = 1.0
    fuse: bool = True
    costs: FlowCosts | None = None
    defaults: SizingDefaults = SizingDefaults()
    allocation: AllocationCapabilities | None = None
    gpu_sharing: Sharing = Sharing.EXCLUSIVE
