"""Judges what tasks, joins and backends need of an engine: reach, isolation, fusing, hosts, clocks."""

from videoflow.backends.capabilities import (
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    RuntimeCapabilities,
)
from videoflow.backends.outcomes import Known
from videoflow.planner._findings import Ask, Findings, Guarantee, yes
from videoflow.planner._requirements import CompositionRequirements, JoinRequirement, TaskRequirement
from videoflow.planner._words import list_text, size_text

_RUN = "the run"


class EngineJudge:
    """Judges an engine with its backends.

    Args:
        findings: Where it notes what it finds.
        wanted: What is asked.
        messaging: Who carries messages.
        payload: Who keeps payloads, or None where there are none.
        runtime: Who keeps the records of the run, or None.
    """

    def __init__(
        self,
        findings: Findings,
        wanted: CompositionRequirements,
        messaging: MessagingCapabilities,
        payload: PayloadCapabilities | None,
        runtime: RuntimeCapabilities | None,
    ) -> None:
        self._findings = findings
        self._wanted = wanted
        self._messaging = messaging
        self._payload = payload
        self._runtime = runtime

    def judge(self, execution: ExecutionCapabilities) -> None:
        """Judges the engine and its host."""
        self._judge_reach(execution)
        self._judge_isolation(execution)
        for task in self._wanted.tasks:
            self._judge_task(task, execution)
        self._judge_host(execution)
        for join in self._wanted.joins:
            self._judge_clocks(join, execution)

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
        needed_bytes = (
            sum(task.replicas * (task.memory_bytes or 0) for task in said) + self._wanted.buffer_bytes
        )
        self._settle_memory(f"task {list_text([task.task for task in said])}", needed_bytes, execution)

    def _settle_processors(self, ask: Ask, needed: float, execution: ExecutionCapabilities) -> None:
        self._findings.settle_seen(
            ask,
            execution.processors,
            lambda processors: processors >= needed,
            lambda processors: f"{processors:g} ({execution.engine})",
        )

    def _settle_memory(self, subject: str, needed: int, execution: ExecutionCapabilities) -> None:
        beside = self._wanted.buffer_bytes if not execution.crosses_hosts else 0
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
