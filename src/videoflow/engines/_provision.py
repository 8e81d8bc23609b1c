"""A plan as channels and subscriptions to provision, whichever backend carries them.

Used by the engines before anything starts, and to read both ends at the end. It refuses nothing: the plan
was admitted.
"""

from collections.abc import Mapping, Sequence

from videoflow.backends.capabilities import Profile
from videoflow.backends.messaging import (
    Bounds,
    ChannelSpec,
    LiveSubscriptionSpec,
    OwnerLabels,
    Reliability,
    ReliableSubscriptionSpec,
    SubscriptionId,
    SubscriptionSpec,
)
from videoflow.planner.plan import ChannelPlan, ChannelRef, Plan, SubscriptionPlan, TaskPlan
from videoflow.worker import channel_id, subscription_id


def subscriptions_of(plan: Plan, run_id: str) -> list[tuple[TaskPlan, SubscriptionPlan, SubscriptionId]]:
    """Returns every subscription of a plan, one for each partition: who reads, as planned, and its name."""
    return [
        (task, subscription, subscription_id(subscription, plan.spec.flow_id, run_id, partition))
        for task in plan.tasks
        for given in task.inputs
        for subscription in given.subscriptions
        for partition in range(subscription.channel.partitions)
    ]


def markers_of(plan: Plan, run_id: str) -> list[tuple[TaskPlan, SubscriptionPlan, SubscriptionId]]:
    """Returns every subscription to markers of a plan, one for each replica that reads them."""
    return [
        (task, subscription, subscription_id(subscription, plan.spec.flow_id, run_id, slot))
        for task in plan.tasks
        for control in task.controls
        for subscription in control.subscriptions
        for slot in range(task.replicas)
    ]


def channel_specs(plan: Plan, run_id: str) -> list[ChannelSpec]:
    """Returns the channels of a plan in one run."""
    readers: dict[tuple[str, ChannelRef], list[SubscriptionId]] = {}
    for _, subscription, name in (*subscriptions_of(plan, run_id), *markers_of(plan, run_id)):
        readers.setdefault((subscription.reader, subscription.channel), []).append(name)
    return [_channel_spec(channel, plan, run_id, readers) for channel in plan.channels]


def _channel_spec(
    channel: ChannelPlan,
    plan: Plan,
    run_id: str,
    readers: Mapping[tuple[str, ChannelRef], Sequence[SubscriptionId]],
) -> ChannelSpec:
    live = channel.ref.reliability is Reliability.LIVE
    name = channel_id(channel.ref, plan.spec.flow_id, run_id)
    return ChannelSpec(
        channel=name,
        profile=Profile.LIVE_LATEST if live else Profile.RELIABLE_WORK,
        slots=channel.slots,
        bounds=Bounds(channel.bound_items, channel.bound_bytes),
        subscriptions=tuple(name for reader in channel.readers for name in readers[reader, channel.ref]),
        labels=OwnerLabels(plan.spec.flow_id, run_id),
    )


def subscription_specs(plan: Plan, run_id: str) -> list[SubscriptionSpec]:
    """Returns the subscriptions of a plan in one run."""
    labels = OwnerLabels(plan.spec.flow_id, run_id)
    return [
        _subscription_spec(task, subscription, name, labels)
        for task, subscription, name in (*subscriptions_of(plan, run_id), *markers_of(plan, run_id))
    ]


def _subscription_spec(
    task: TaskPlan, plan: SubscriptionPlan, name: SubscriptionId, labels: OwnerLabels
) -> SubscriptionSpec:
    credit = Bounds(plan.credit_items, plan.credit_bytes)
    sharing = 1 if plan.broadcast else task.replicas // task.partitions
    if plan.latest is None:
        return ReliableSubscriptionSpec(
            subscription=name, credit=credit, spread=plan.spread, replicas=sharing, labels=labels
        )
    return LiveSubscriptionSpec(
        subscription=name,
        credit=credit,
        replicas=sharing,
        latest_key=plan.latest.key,
        capacity=plan.latest.capacity,
        max_age_seconds=plan.latest.max_age_seconds,
        spread=plan.spread,
        labels=labels,
    )
