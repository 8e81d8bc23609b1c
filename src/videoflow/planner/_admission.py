"""Refuses a flow whose backends cannot give what it needs, naming the part and the missing guarantee."""

from videoflow.backends.capabilities import Profile
from videoflow.errors import IncompatibleProfile, Miss
from videoflow.planner._facts import PlanFacts
from videoflow.planner._ports import describe_ports
from videoflow.planner._wiring import Wiring
from videoflow.planner._words import size_text
from videoflow.planner.plan import CommitOrder


def admit(wiring: Wiring, facts: PlanFacts) -> None:
    """Compares what a flow needs with what the backends guarantee; sizes apart.

    Raises:
        IncompatibleProfile: Something is not guaranteed; every miss is listed.
    """
    misses = [*_messaging_misses(wiring, facts), *_process_misses(facts), *_payload_misses(wiring, facts)]
    runtime = facts.runtime
    misses += [
        _miss(f"task {task.name}", "outbox", "atomic_commit", f"no ({runtime.adapter})")
        for task in wiring.tasks
        if task.order is CommitOrder.OUTBOX and not runtime.atomic_commit
    ]
    if misses:
        raise IncompatibleProfile(misses)


def _messaging_misses(wiring: Wiring, facts: PlanFacts) -> list[Miss]:
    messaging, misses = facts.messaging, []
    for channel in wiring.writers:
        profile = Profile.LIVE_LATEST if channel.reliability == "live" else Profile.RELIABLE_WORK
        if profile not in messaging.profiles:
            subject = f"channel {channel.node}.{channel.port}"
            misses.append(_miss(subject, profile, "profile", messaging.adapter))
    limit = messaging.maximum_channels
    if limit is not None and len(wiring.writers) > limit:
        misses.append(_miss("the flow", "messaging", f"{len(wiring.writers)} channels", f"at most {limit}"))
    return misses


def _payload_misses(wiring: Wiring, facts: PlanFacts) -> list[Miss]:
    limit, ports = facts.payload.maximum_object_bytes, describe_ports(wiring, facts)
    found = f"at most {size_text(limit)} ({facts.payload.adapter})"
    remedy = "smaller frames, or max_item_bytes on the class if its outputs are smaller"
    return [
        Miss(f"port {port}", facts.engine, "object size", size_text(described.item_bytes), found, remedy)
        for port, described in ports.items()
        if described.item_bytes > limit and any(port == reading.parent for reading in wiring.readings)
    ]


def _process_misses(facts: PlanFacts) -> list[Miss]:
    if not facts.execution.crosses_processes:
        return []
    messaging, payload, runtime = facts.messaging, facts.payload, facts.runtime
    parts = (
        ("messages", "crosses_processes", messaging.crosses_processes, messaging.adapter),
        ("payloads", "crosses_processes", payload.crosses_processes, payload.adapter),
        ("run state", "shared", runtime.shared, runtime.adapter),
    )
    return [
        _miss(subject, facts.engine, guarantee, f"no ({adapter})")
        for subject, guarantee, is_given, adapter in parts
        if not is_given
    ]


def _miss(subject: str, profile: str, guarantee: str, found: str) -> Miss:
    return Miss(subject, profile, guarantee, "yes", found, "choose an engine or an adapter that gives it")
