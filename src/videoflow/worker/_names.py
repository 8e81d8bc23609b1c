"""The names of a plan's channels and subscriptions in one run.

Used by workers and engines, so that both name the same channels. It refuses nothing.
"""

from videoflow.backends.messaging import ChannelId, Layout, SubscriptionId, SubscriptionKind
from videoflow.planner.plan import ChannelRef, SubscriptionPlan


def channel_id(ref: ChannelRef, flow_id: str, run_id: str) -> ChannelId:
    """Returns the channel that a plan's reference names in one run."""
    layout = Layout(ref.reliability, ref.key, ref.partitions)
    return ChannelId(flow_id, run_id, ref.node, ref.port, layout)


def subscription_id(plan: SubscriptionPlan, flow_id: str, run_id: str, slot: int) -> SubscriptionId:
    """Returns the subscription of a replica that a plan names in one run.

    That is the partition of its slot, of markers its own, and of competing replicas the one that they share.
    """
    kind = SubscriptionKind.EXCLUSIVE if plan.exclusive else SubscriptionKind.COMPETING
    channel = channel_id(plan.channel, flow_id, run_id)
    if plan.broadcast:
        return SubscriptionId(channel, plan.reader, kind, None, slot)
    partition = slot if plan.channel.partitions > 1 else 0
    return SubscriptionId(channel, plan.reader, kind, partition if plan.exclusive else None)
