"""The account of a simulated run, made by the engines' own code.

Used by the judge of a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import ChannelId, Kind, SubscriptionId
from videoflow.backends.outcomes import Known, Observation
from videoflow.backends.runtime import Committed
from videoflow.engines.accounting import (
    RunFacts,
    Suspended,
    account_of_edges,
    forget_unsaid,
    make_report,
)
from videoflow.graph.report import RunReport
from videoflow.graph.running import RunOptions
from videoflow.planner.plan import InputMode, Plan
from videoflow.simulation._record import Record
from videoflow.simulation._run import SimulatedRun
from videoflow.simulation._subject import RUN_ID
from videoflow.worker import NodeFigures, channel_id

Records = Observation[tuple[OriginRecord, ...]]


@dataclass
class Outcome:
    """What a simulated run came to.

    Attributes:
        record: What was seen of its nodes.
        report: As an engine makes it.
        state: (task, key) → what was committed last.
        letters: What was put aside: (node, input id) → error.
        kinds: Task → kinds of the terminators of its replicas.
        announced: Channel → the writers' end of its ledger.
        failed_task: That of the node that failed the run, or None.
        renumbered: Live sources that began another epoch.
        left: Objects that are still claimed when everybody is gone.
        violations: What was seen while it ran that may not be.
        quit: It was ended without draining.
        keeps: Something is kept for another run, and in flight therefore.
        suspended: What another run can go on with, or None.
    """

    record: Record
    report: RunReport
    state: dict[tuple[str, str], bytes]
    letters: dict[tuple[str, str], str]
    kinds: dict[str, list[Kind | None]]
    announced: dict[str, tuple[OriginRecord, ...]]
    failed_task: str | None
    renumbered: frozenset[str]
    left: list[str]
    violations: list[str]
    quit: bool = False
    keeps: bool = False
    suspended: Suspended | None = None


def outcome_of(run: SimulatedRun) -> Outcome:
    """Accounts for a run that has ended."""
    plan, runtime = run.subject.plan, run.runtime
    now = run.clock.monotonic()
    deadline = now + 1.0
    announced: dict[ChannelId, Records] = {}

    def read_announced(channel: ChannelId) -> Records:
        if channel not in announced:
            announced[channel] = run.observer.announced(channel, deadline=deadline)
        return announced[channel]

    def read_settled(subscription: SubscriptionId) -> Records:
        return run.observer.settled(subscription, deadline=deadline)

    past = run.past
    announced_in_all = read_announced if past is None else past.announced(read_announced)
    forget_unsaid(plan, RUN_ID, run.inner_ledger, runtime, announced_in_all, deadline)
    settled_in_all = read_settled if past is None else past.settled(read_settled, deadline)
    edges = account_of_edges(
        plan, RUN_ID, run.subject.programs, run.inner_ledger, announced_in_all, settled_in_all, now
    )
    figures = _figures(run)
    facts = RunFacts(
        plan=plan,
        run_id=RUN_ID,
        options=RunOptions(),
        runtime=runtime,
        edges=edges,
        figures=figures if past is None else past.figures(figures),
        restarts=_restarts(run),
        began_wall=0.0,
        seconds=now,
        now=now,
        quit=run.quit,
        lost=run.lost,
        kept={} if past is None else past.kept(deadline),
        called_again={} if past is None else past.called_again(),
        resumed_from="" if past is None else past.run_id,
    )
    report = make_report(facts)
    suspended = None
    if past is not None:
        ends = announced_in_all, past.settled(read_settled, deadline, whole=False)
        suspended = past.suspended(report, (), run.inner_ledger, ends, facts.figures)
    letters = runtime.dead_letters(deadline=deadline)
    committed = {
        (task.name, slot): runtime.load(task.name, slot, deadline=deadline)
        for task in plan.tasks
        for slot in range(task.replicas)
    }
    _leave_markers(run)
    run.pool.sweep(now)
    return Outcome(
        record=run.record,
        report=report,
        state={
            (task, f"{slot}/{key}"): value
            for (task, slot), found in committed.items()
            for key, value in found.state.items()
        },
        letters={(letter.node, letter.input_id): letter.error for letter in letters},
        kinds={task.name: [s.kind for s in run.stations if s.task is task] for task in plan.tasks},
        announced={
            f"{channel.ref.node}.{channel.ref.port}": _known(
                announced_in_all(channel_id(channel.ref, plan.spec.flow_id, RUN_ID))
            )
            for channel in plan.channels
        },
        failed_task=run.failed_task,
        renumbered=_renumbered(plan, committed),
        left=[
            f"{item.ref.content_id}: {sorted(item.claims) or 'held'}" for item in run.pool.objects.values()
        ],
        violations=run.violations,
        quit=run.quit,
        keeps=bool(facts.kept),
        suspended=suspended,
    )


def _leave_markers(run: SimulatedRun) -> None:
    """Lets go of the markers that nobody took: they are left, and gone with the channels of the run."""
    for spec in run.subject.subscriptions:
        if spec.subscription.slot is None:
            continue
        channel = run.broker.channel(spec.subscription.channel)
        for cell in channel.subscriptions[spec.subscription].cells.values():
            channel.unhold(cell.entry)


def _known(records: Records) -> tuple[OriginRecord, ...]:
    return records.value if isinstance(records, Known) else ()


def _renumbered(plan: Plan, committed: Mapping[tuple[str, int], Committed]) -> frozenset[str]:
    tasks = [task for task in plan.tasks if task.mode is InputMode.SOURCE]
    positions = {task.nodes[0]: committed[task.name, 0].source for task in tasks}
    return frozenset(name for name, position in positions.items() if position and position.epoch > 0)


def _restarts(run: SimulatedRun) -> dict[str, int]:
    found: dict[str, int] = {}
    for station in run.stations:
        found[station.task.name] = found.get(station.task.name, 0) + station.restarts
    return found


def _figures(run: SimulatedRun) -> dict[str, dict[str, NodeFigures]]:
    """Returns the figures of tasks none of whose replicas died: those of others are not exact."""
    found: dict[str, dict[str, NodeFigures]] = {}
    for station in run.stations:
        if station.figures_of is not None:
            task = found.setdefault(station.task.name, {})
            for name, figures in station.figures_of.snapshot().items():
                task.setdefault(name, NodeFigures()).add(figures)
    return found
