"""Judges what the run as a whole needs of its backends: records, limits, room, devices, effects."""

from collections.abc import Sequence

from videoflow.backends.allocation import allocation_rejections
from videoflow.backends.capabilities import (
    AllocationCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    Profile,
    RuntimeCapabilities,
)
from videoflow.backends.outcomes import Durability
from videoflow.planner._findings import Ask, Findings, Guarantee, yes
from videoflow.planner._judging_channels import (
    copies_remedy,
    copies_text,
    settle_copies,
    settle_effects,
    settle_lasting,
    settle_survival,
)
from videoflow.planner._requirements import ChannelRequirement, CompositionRequirements
from videoflow.planner._words import list_text, size_text

_RUN = "the run"
_DURABLE = (Profile.DURABLE_CONTROL, Profile.REPLAY_ARCHIVE)
_LARGEST = 3


class RunJudge:
    """Judges a run, its channels and its engine apart.

    Args:
        findings: Where it notes what it finds.
        wanted: What is asked.
        channels: Its channels, each once.
        messaging: Who carries them.
        payload: Who keeps their payloads, or None where they carry none.
        runtime: Who keeps the records of the run, or None.
    """

    def __init__(
        self,
        findings: Findings,
        wanted: CompositionRequirements,
        channels: Sequence[ChannelRequirement],
        messaging: MessagingCapabilities,
        payload: PayloadCapabilities | None,
        runtime: RuntimeCapabilities | None,
    ) -> None:
        self._findings = findings
        self._wanted = wanted
        self._channels = channels
        self._messaging = messaging
        self._payload = payload
        self._runtime = runtime

    def judge(self, allocation: AllocationCapabilities | None) -> None:
        """Judges the whole."""
        self._judge_run()
        for sink in self._wanted.exactly_once:
            horizon = self._wanted.horizon_seconds
            settle_effects(self._findings, f"sink {sink.sink}", "exactly_once_effects", sink, horizon)
        self._judge_records()
        self._judge_limits()
        self._judge_room()
        self._judge_workloads(allocation)

    def _judge_run(self) -> None:
        if not self._wanted.restart_safe:
            return
        settle_survival(self._findings, self._messaging, _RUN, "restart_safe", Durability.STREAM)
        if self._payload is not None:
            settle_lasting(self._findings, self._payload, _RUN, "restart_safe")

    def _judge_records(self) -> None:
        """Judges the run store: durable and shared where anything durable is wanted, atomic for outboxes."""
        for subject, profile in self._needing_records():
            remedy = "choose a run store of that kind (the local engine has one), or drop the requirement"
            if self._runtime is None:
                ask = Ask(subject, profile, Guarantee.RUN_STORE, "durable and shared", "the engine", remedy)
                self._findings.settle(ask, False, "none")
                continue
            adapter = self._runtime.adapter
            for guarantee, is_given, rests_on in (
                (Guarantee.SHARED_RECORDS, self._runtime.shared, "runtime.shared"),
                (Guarantee.LASTING_RECORDS, self._runtime.survives_process, "runtime.survives_process"),
            ):
                ask = Ask(subject, profile, guarantee, "yes", rests_on, remedy)
                self._findings.settle(ask, is_given, f"{yes(is_given)} ({adapter})")
        failures = max((channel.tolerated_failures for channel in self._channels), default=0)
        if failures and self._runtime is not None:
            ask = Ask(
                _RUN,
                "tolerated_failures",
                Guarantee.RECORD_COPIES,
                copies_text(failures),
                "runtime.copies",
                copies_remedy(failures),
            )
            settle_copies(self._findings, ask, self._runtime.copies, failures, self._runtime.adapter)

    def _needing_records(self) -> list[tuple[str, str]]:
        wanted = self._wanted
        asked = {"durable_control": wanted.durable_control, "restart_safe": wanted.restart_safe}
        found = [(_RUN, name) for name, is_asked in asked.items() if is_asked]
        found += [(f"channel {c.channel}", c.profile) for c in self._channels if c.profile in _DURABLE]
        if self._runtime is None:
            found += [(f"task {task.task}", "outbox") for task in wanted.tasks if task.is_outbox]
        return found

    def _judge_limits(self) -> None:
        channels = [channel for channel in self._channels if not channel.is_direct]
        for guarantee, wanted, limit, rests_on in (
            (
                Guarantee.CHANNELS,
                len(channels),
                self._messaging.maximum_channels,
                "messaging.maximum_channels",
            ),
            (
                Guarantee.SUBSCRIPTIONS,
                sum(channel.subscriptions for channel in channels),
                self._messaging.maximum_subscriptions,
                "messaging.maximum_subscriptions",
            ),
        ):
            if limit is None:
                continue
            remedy = "fuse nodes or take replicas away so that there are fewer, or split the flow in two"
            ask = Ask("the flow", "its size", guarantee, str(wanted), rests_on, remedy)
            self._findings.settle(ask, wanted <= limit, f"at most {limit} ({self._messaging.adapter})")

    def _judge_room(self) -> None:
        payload = self._payload
        bounds = [
            (channel.channel, channel.bounds.size_bytes * channel.partitions)
            for channel in self._channels
            if channel.bounds is not None
        ]
        if payload is None or not bounds:
            return
        needed = self._wanted.buffer_bytes
        largest = sorted(bounds, key=lambda bound: -bound[1])[:_LARGEST]
        shown = list_text([f"{name} {size_text(size_bytes)}" for name, size_bytes in largest])
        remedy = f"a larger store, smaller frames or fewer replicas; the largest buffers are {shown}"
        ask = Ask(
            "the flow",
            "its buffers",
            Guarantee.PAYLOAD_ROOM,
            size_text(needed),
            "payload.free_bytes",
            remedy,
        )
        self._findings.settle_seen(
            ask,
            payload.free_bytes,
            lambda free: free >= needed,
            lambda free: f"{size_text(free)} ({payload.adapter})",
        )

    def _judge_workloads(self, allocation: AllocationCapabilities | None) -> None:
        for request in self._wanted.workloads:
            subject = f"workload {request.workload_id}"
            if allocation is None:
                remedy = "choose an engine that allocates accelerators, or ask for none"
                ask = Ask(subject, "its devices", Guarantee.ALLOCATOR, "one", "the engine", remedy)
                self._findings.settle(ask, False, "none")
                continue
            reasons = allocation_rejections([request], allocation)
            remedy = "ask for what it grants, or choose an allocator that grants this"
            for reason in reasons:
                need, _, lack = reason.removeprefix(f"{request.workload_id} needs ").partition(": ")
                ask = Ask(subject, "its devices", Guarantee.ACCELERATORS, need, "allocation", remedy)
                self._findings.settle(ask, False, lack)
            if not reasons:
                wanted = f"{request.device_count}, {request.sharing}"
                ask = Ask(subject, "its devices", Guarantee.ACCELERATORS, wanted, "allocation", remedy)
                self._findings.settle(ask, True, f"granted by {allocation.adapter}")
