"""The end of a run: its report, and the account to go on with where another run may.

Used by the handles of the engines that run here. It refuses nothing: an end that cannot be read leaves its
edge unknown, and what cannot be gone on with is said in the report.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from videoflow.backends.messaging import ChannelId, SubscriptionId
from videoflow.engines._accelerators import RunDevices
from videoflow.engines._account import account_of_edges, forget_unsaid
from videoflow.engines._continuity import Records
from videoflow.engines._costs import keep_costs
from videoflow.engines._ledger import InnerLedger
from videoflow.engines._past import Past
from videoflow.engines._report import RunFacts, make_report
from videoflow.engines._suspended import Suspended
from videoflow.graph.report import GapReport, RunReport
from videoflow.worker.core import TaskProgram


@dataclass(frozen=True)
class Ends:
    """What the account is made of.

    Attributes:
        announced: Reads the writers' end of a channel, of this run alone.
        settled: Reads the reader's end of a subscription, of this run alone.
        inner: Fates on edges inside tasks.
        programs: By task.
        deadline: Monotonic, for what is read.
    """

    announced: Callable[[ChannelId], Records]
    settled: Callable[[SubscriptionId], Records]
    inner: InnerLedger
    programs: Mapping[str, TaskProgram]
    deadline: float


def close_account(
    facts: RunFacts,
    past: Past,
    devices: RunDevices,
    ends: Ends,
    *,
    gaps: Sequence[GapReport] = (),
    forced: Sequence[str] = (),
) -> tuple[RunReport, Suspended | None]:
    """Returns the report of a run, and what another run needs to go on with it.

    Args:
        facts: What is known of the run; its edges, and what earlier ones kept, are filled in here.
        past: What lies before it.
        devices: Its accelerators.
        ends: What the account is made of.
        gaps: What the engine itself has to say.
        forced: Sources that were ended by killing.
    """
    announced = past.announced(ends.announced)
    forget_unsaid(facts.plan, facts.run_id, ends.inner, facts.runtime, announced, ends.deadline)
    settled = past.settled(ends.settled, ends.deadline)
    facts = replace(
        facts,
        edges=account_of_edges(
            facts.plan, facts.run_id, ends.programs, ends.inner, announced, settled, facts.now
        ),
        kept=past.kept(ends.deadline),
        called_again=past.called_again(),
        resumed_from=past.run_id,
    )
    report = make_report(facts)
    keep_costs(facts.plan, report)
    report.devices = devices.reports()
    report.gaps += [*devices.gaps(), *gaps]
    read = announced, past.settled(ends.settled, ends.deadline, whole=False)
    return report, past.suspended(report, forced, ends.inner, read, facts.figures)
