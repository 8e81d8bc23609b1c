"""Judges what tasks, joins and the run as a whole need: reach, records, hosts, limits, room, devices."""

from collections.abc import Sequence

from videoflow.backends.allocation import allocation_rejections
from videoflow.backends.capabilities import (
    AllocationCapabilities,
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    Profile,
    RuntimeCapabilities,
)
from videoflow.backends.outcomes import Durability, Known
from videoflow.planner._findings import Ask, Findings, Guarantee, yes
from videoflow.planner._judging_channels import (
    copies_remedy,
    copies_text,
    settle_copies,
    settle_effects,
    settle_lasting,
    settle_survival,
)
from videoflow.planner._requirements import (
    ChannelRequirement,
    CompositionRequirements,
    JoinRequirement,
    TaskRequirement,
)
from videoflow.planner._words import list_text, size_text

_RUN = "the run"
_DURABLE = (Profile.DURABLE_CONTROL, Profile.REPLAY_ARCHIVE)
_LARGEST = 3


class RunJudge:
    """Judges everything but single channels.

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

    def judge(
        self, allocation: AllocationCapabilities | None, execution: ExecutionCapabilities | None
    ) -> None:
        """Judges the whole."""
        self._judge_run()
        for sink in self._wanted.exactly_once:
            horizon = self._wanted.horizon_seconds
            settle_effects(self._findings, f"sink {sink.sink}", "exactly_once_effects", sink, horizon)
        self._judge_records()
        self._judge_limits()
        self._judge_room()
        self._judge_workloads(allocation)
        if execution is not None:
            self._judge_reach(execution)
            self._judge_isolation(execution)
            for task in self._wanted.tasks:
                self._judge_task(task, execution)
            self._judge_host(execution)
            for join in self._wanted.joins:
                self._judge_clocks(join, execution)

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
        needed = self._buffers()
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

    def _judge_reach(self, execution: ExecutionCapabilities) -> None:
        messaging, payload, runtime = self._messaging, self._payload, self._runtime
        parts = [
            ("messages", "messaging", messaging.adapter, messaging.crosses_processes, messaging.crosses_hosts)
        ]
        if payload is not None:
            parts.append(
                ("payloads", "payload", payload.adapter, payload.crosses_processes, payload.crosses_hosts)
            )
        if runtime is not None:
            parts.append(("run records", "runtime", runtime.adapter, runtime.shared, runtime.crosses_hosts))
        for subject, record, adapter, reaches_processes, reaches_hosts in parts:
            if execution.crosses_hosts:
                wanted, is_given, name = "other hosts", reaches_hosts, "crosses_hosts"
            elif execution.crosses_processes:
                wanted, is_given = "other processes of one host", reaches_processes
                name = "shared" if record == "runtime" else "crosses_processes"
            else:
                continue
            remedy = f"choose an adapter that reaches {wanted}, or an engine that stays nearer (threads)"
            ask = Ask(
                subject, f"{execution.engine} engine", Guarantee.REACH, wanted, f"{record}.{name}", remedy
            )
            self._findings.settle(ask, is_given, f"{yes(is_given)} ({adapter})")

    def _judge_isolation(self, execution: ExecutionCapabilities) -> None:
        if not self._wanted.isolated:
            return
        remedy = "run with an engine that has processes (--engine local), or drop the requirement"
        for guarantee, is_given, rests_on in (
            (Guarantee.ISOLATION, execution.isolates_crash, "execution.isolates_crash"),
            (Guarantee.INTERRUPTION, execution.can_interrupt, "execution.can_interrupt"),
        ):
            ask = Ask(_RUN, "isolated", guarantee, "yes", rests_on, remedy)
            self._findings.settle(ask, is_given, f"{yes(is_given)} ({execution.engine})")

    def _judge_task(self, task: TaskRequirement, execution: ExecutionCapabilities) -> None:
        subject = f"task {task.task}"
        if task.is_outbox and self._runtime is not None:
            remedy = "choose a run store that commits several records at once"
            ask = Ask(subject, "outbox", Guarantee.ATOMIC_COMMIT, "yes", "runtime.atomic_commit", remedy)
            is_given = self._runtime.atomic_commit
            self._findings.settle(ask, is_given, f"{yes(is_given)} ({self._runtime.adapter})")
        if len(task.nodes) > 1:
            remedy = "take the fuse label away, or choose an engine that fuses"
            ask = Ask(subject, "fuse", Guarantee.FUSION, list_text(task.nodes), "execution.fuses", remedy)
            self._findings.settle(ask, execution.fuses, f"{yes(execution.fuses)} ({execution.engine})")
        limit = execution.maximum_batch_items
        if task.batch_items > 1:
            remedy = "make batch smaller or leave it out, or choose an engine that batches as many"
            wanted = str(task.batch_items)
            ask = Ask(subject, "batch", Guarantee.BATCH, wanted, "execution.maximum_batch_items", remedy)
            found = "as many as a node asks for" if limit is None else f"at most {limit}"
            is_given = limit is None or task.batch_items <= limit
            self._findings.settle(ask, is_given, f"{found} ({execution.engine})")
        if task.cpus:
            remedy = "lower cpus in Resources, or run it on a larger host"
            wanted = f"{task.cpus:g}"
            ask = Ask(subject, "resources", Guarantee.PROCESSORS, wanted, "execution.processors", remedy)
            self._settle_processors(ask, task.cpus, execution)

    def _judge_host(self, execution: ExecutionCapabilities) -> None:
        tasks = self._wanted.tasks
        if self._wanted.dedicated_cpus and not execution.crosses_hosts:
            needed = sum(task.replicas * task.cpus for task in tasks)
            remedy = (
                "lower cpus or replicas, use a larger host, or drop dedicated_cpus: tasks then share them"
            )
            ask = Ask(
                _RUN,
                "dedicated_cpus",
                Guarantee.ALL_PROCESSORS,
                f"{needed:g}",
                "execution.processors",
                remedy,
            )
            self._settle_processors(ask, needed, execution)
        said = [task for task in tasks if task.memory_bytes is not None]
        if not said:
            return
        if execution.crosses_hosts:
            for task in said:
                self._settle_memory(f"task {task.task}", task.memory_bytes or 0, execution)
            return
        needed_bytes = sum(task.replicas * (task.memory_bytes or 0) for task in said) + self._buffers()
        self._settle_memory(f"task {list_text([task.task for task in said])}", needed_bytes, execution)

    def _buffers(self) -> int:
        rooms = (c.bounds.size_bytes * c.partitions for c in self._channels if c.bounds is not None)
        return sum(rooms) + sum(task.replicas * task.step_bytes for task in self._wanted.tasks)

    def _settle_processors(self, ask: Ask, needed: float, execution: ExecutionCapabilities) -> None:
        self._findings.settle_seen(
            ask,
            execution.processors,
            lambda processors: processors >= needed,
            lambda processors: f"{processors:g} ({execution.engine})",
        )

    def _settle_memory(self, subject: str, needed: int, execution: ExecutionCapabilities) -> None:
        beside = self._buffers() if not execution.crosses_hosts else 0
        wanted = size_text(needed) + (f", {size_text(beside)} of it for items in flight" if beside else "")
        remedy = "lower memory_bytes in Resources or the number of replicas, or free memory"
        ask = Ask(subject, "resources", Guarantee.MEMORY, wanted, "execution.memory_bytes", remedy)
        self._findings.settle_seen(
            ask,
            execution.memory_bytes,
            lambda available: available >= needed,
            lambda available: f"{size_text(available)} ({execution.engine})",
        )

    def _judge_clocks(self, join: JoinRequirement, execution: ExecutionCapabilities) -> None:
        remedy = "raise tolerance_seconds, or let the clocks agree better"
        sources, hosts = join.uncertainty_seconds, execution.clock_uncertainty_seconds
        ask = Ask(
            f"join {join.node}",
            "ByTime",
            Guarantee.CLOCKS,
            f"at most {join.tolerance_seconds:g} s apart",
            "execution.clock_uncertainty_seconds",
            remedy,
        )
        if not isinstance(sources, Known):
            from_sources = Ask(
                ask.subject, ask.profile, ask.guarantee, ask.wanted, "the clocks of its sources", remedy
            )
            self._findings.settle_seen(from_sources, sources, lambda _: True, str)
            return
        apart = sources.value
        self._findings.settle_seen(
            ask,
            hosts,
            lambda uncertain: join.tolerance_seconds >= apart + uncertain,
            lambda uncertain: (
                f"{apart + uncertain:g} s ({apart:g} by its sources, {uncertain:g} between hosts)"
            ),
        )
