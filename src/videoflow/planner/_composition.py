"""Admits a composition of backends for stated guarantees, or rejects it by name; never gives less.

Used by `plan_flow`, which every engine calls before anything is provisioned, and by who certifies adapters.
It reads capability records and nothing else. What is definitely missing is an `IncompatibleProfile` that
lists all of it; what could not be read is an `UnobservableState`, since unknown is neither yes nor no.
"""

from collections.abc import Iterator, Sequence

from videoflow.backends.capabilities import (
    AllocationCapabilities,
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    Profile,
    RuntimeCapabilities,
)
from videoflow.planner._admitted import AdmittedChannel, CompositionPlan, Distance, Ground
from videoflow.planner._findings import Ask, Findings, Guarantee
from videoflow.planner._judging_channels import ChannelJudge, copies_needed
from videoflow.planner._judging_engine import EngineJudge
from videoflow.planner._judging_run import RunJudge
from videoflow.planner._requirements import ChannelRequirement, CompositionRequirements, Effects
from videoflow.planner._words import list_text


def plan_composition(
    requirements: CompositionRequirements,
    messaging: MessagingCapabilities,
    payload: PayloadCapabilities | None = None,
    runtime: RuntimeCapabilities | None = None,
    allocation: AllocationCapabilities | None = None,
    execution: ExecutionCapabilities | None = None,
    payload_refs_in_use: bool = False,
) -> CompositionPlan:
    """Admits or rejects a composition; pure, and before anything is provisioned.

    Args:
        requirements: What is wanted.
        messaging: The messaging adapter, as configured.
        payload: The payload store, or None where there is none.
        runtime: The run store, or None where there is none.
        allocation: The allocator of accelerators, or None where there is none.
        execution: The engine and its host; None: distances, tasks and joins are not judged, and what rests
            on an engine alone is refused where it is asked for.
        payload_refs_in_use: Whether channels carry references into the payload store.

    Raises:
        IncompatibleProfile: Guarantees are definitely missing; every one is listed.
        UnobservableState: Nothing is definitely missing, and something could not be read.
    """
    findings = Findings()
    kept = payload if payload_refs_in_use else None
    channels = list(dict.fromkeys(requirements.channels))
    if payload_refs_in_use and payload is None:
        remedy = "choose a payload store, or keep items small enough for messages"
        ask = Ask("payloads", "references", Guarantee.PAYLOAD_STORE, "one", "the engine", remedy)
        findings.settle(ask, False, "none")
    _judge_statements(findings, channels, messaging)
    crosses = execution is not None and execution.crosses_processes
    judge = ChannelJudge(findings, messaging, kept, crosses_processes=crosses)
    for wanted in channels:
        judge.judge(wanted)
    RunJudge(findings, requirements, channels, messaging, kept, runtime).judge(allocation)
    if execution is None:
        _refuse_unjudged(findings, requirements)
    else:
        EngineJudge(findings, requirements, messaging, kept, runtime).judge(execution)
    findings.conclude()
    subjects = {f"channel {channel.channel}" for channel in channels}
    return CompositionPlan(
        channels=tuple(_admitted(channel, messaging, execution, findings.grounds) for channel in channels),
        grounds=tuple(g for g in findings.grounds if g.subject.partition(" into ")[0] not in subjects),
        notes=tuple(_split_notes(channels)),
    )


def _judge_statements(
    findings: Findings, channels: Sequence[ChannelRequirement], messaging: MessagingCapabilities
) -> None:
    """Judges statements about one port together: one each, and one retention for one channel."""
    identities = [channel.identity for channel in channels]
    for identity in dict.fromkeys(identities):
        if identities.count(identity) > 1:
            remedy = "state all that is wanted of it once"
            ask = Ask(f"channel {identity[0]}", identity[1], Guarantee.STATED_ONCE, "one", "the flow", remedy)
            findings.settle(ask, False, f"{identities.count(identity)} that differ")
    for name, profiles in _retentions(channels):
        if len(profiles) > 1:
            remedy = "read it in one way only, or choose a messaging adapter that writes a port twice"
            wanted = list_text(profiles)
            ask = Ask(
                f"channel {name}",
                "retention",
                Guarantee.OWN_CHANNEL,
                wanted,
                "messaging.splits_retention",
                remedy,
            )
            found = "each has its own" if messaging.splits_retention else "one for all"
            findings.settle(ask, messaging.splits_retention, f"{found} ({messaging.adapter})")


def _refuse_unjudged(findings: Findings, requirements: CompositionRequirements) -> None:
    """Refuses what only an engine can give, where none is named: it was not read, so it is not given."""
    asked = (
        (requirements.isolated, "the run", "isolated", Guarantee.ISOLATION),
        (requirements.dedicated_cpus, "the run", "dedicated_cpus", Guarantee.ALL_PROCESSORS),
        *((True, f"join {join.node}", "ByTime", Guarantee.CLOCKS) for join in requirements.joins),
        *((True, f"task {task.task}", "resources", Guarantee.PROCESSORS) for task in requirements.tasks),
    )
    for is_asked, subject, profile, guarantee in asked:
        if is_asked:
            ask = Ask(subject, profile, guarantee, "an engine that gives it", "execution", "name an engine")
            findings.settle(ask, False, "no engine is named")


def _retentions(channels: Sequence[ChannelRequirement]) -> Iterator[tuple[str, list[str]]]:
    for name in dict.fromkeys(channel.channel for channel in channels):
        yield name, list(dict.fromkeys(c.profile for c in channels if c.channel == name))


def _split_notes(channels: Sequence[ChannelRequirement]) -> Iterator[str]:
    for name, profiles in _retentions(channels):
        if len(profiles) > 1:
            yield f"{name} is written once for each of {list_text(profiles)}: one log cannot keep to both"


def _admitted(
    wanted: ChannelRequirement,
    messaging: MessagingCapabilities,
    execution: ExecutionCapabilities | None,
    grounds: Sequence[Ground],
) -> AdmittedChannel:
    subject = f"channel {wanted.channel}"
    return AdmittedChannel(
        channel=wanted.channel,
        profile=Profile(wanted.profile),
        partitions=wanted.partitions,
        key=wanted.key,
        bound_items=None if wanted.bounds is None else wanted.bounds.items,
        bound_bytes=None if wanted.bounds is None else wanted.bounds.size_bytes,
        copies=copies_needed(wanted.tolerated_failures),
        exactly_once_effects=wanted.effects is Effects.EXACTLY_ONCE,
        carried_by=messaging.adapter,
        distance=None if execution is None else _distance(execution),
        grounds=tuple(
            ground
            for ground in dict.fromkeys(grounds)
            if ground.subject.partition(" into ")[0] == subject
            and ground.profile in (wanted.profile, "retention")
        ),
    )


def _distance(execution: ExecutionCapabilities) -> Distance:
    if execution.crosses_hosts:
        return Distance.HOSTS
    return Distance.HOST if execution.crosses_processes else Distance.PROCESS
