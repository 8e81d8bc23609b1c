"""The names of a plan's channels and subscriptions in one run."""

from videoflow.backends.messaging import ChannelId, Layout, Reliability, SubscriptionId, SubscriptionKind
from videoflow.planner.plan import ChannelRef, SubscriptionPlan


def channel_id(ref: ChannelRef, flow_id: str, run_id: str) -> ChannelId:
    """Returns the channel that a plan's reference names in one run."""
    return ChannelId(flow_id, run_id, ref.node, ref.port, Layout(Reliability(ref.reliability)))


def subscription_id(plan: SubscriptionPlan, flow_id: str, run_id: str) -> SubscriptionId:
    """Returns the subscription that a plan names in one run."""
    kind = SubscriptionKind.EXCLUSIVE if plan.exclusive else SubscriptionKind.COMPETING
    channel = channel_id(plan.channel, flow_id, run_id)
    return SubscriptionId(channel, plan.reader, kind, 0 if plan.exclusive else None)
