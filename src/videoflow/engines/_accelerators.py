"""The accelerators of one run: reserved before anything starts, told to the workers, measured, given back.

Used by the engines, which hold one object of this for each run. Where a flow asks for none, nothing is looked
at and nothing is imported. It refuses, by name, what cannot be given now: a run never waits for a device.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from videoflow import registry
from videoflow.backends.allocation import (
    EVIDENCE_CONFLICT,
    ClaimObservation,
    ClaimStatus,
    DeliveredGrant,
    Discovery,
    Infeasible,
    ReleaseStatus,
    Sharing,
    WorkloadRequest,
    device_key,
)
from videoflow.backends.capabilities import AllocationCapabilities
from videoflow.backends.outcomes import Known, Unknown
from videoflow.clock import Clock
from videoflow.engines._home import home_folder, inherited
from videoflow.errors import AcceleratorFault, UnobservableState, UsageError
from videoflow.graph.report import DeviceReport, GapReport
from videoflow.graph.spec import FlowSpec
from videoflow.planner import accelerator_requests
from videoflow.planner.plan import Plan

if TYPE_CHECKING:
    from videoflow.deploy.allocation_local import LocalAllocation

_LOG = logging.getLogger("videoflow.engines")
_CONFLICTS = 100
_SAMPLE_SECONDS = 1.0
_LAST_LOOK_SECONDS = 2.0
_SHARED = "shared"
Processes = Callable[[], Mapping[str, int]]
"""Returns the process of each workload that lives now."""


@dataclass
class _Use:
    highest: int | None = None
    samples: int = 0
    unseen: str = ""


@dataclass
class RunDevices:
    """What one run was granted; empty where its flow asks for nothing.

    Attributes:
        grants: Workload (`task/replica`) → what it was granted.
        environments: Workload → what its process is told.
        requests: Workload → what it asked for.
    """

    grants: Mapping[str, DeliveredGrant] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    requests: Mapping[str, WorkloadRequest] = field(default_factory=dict)
    _allocator: "LocalAllocation | None" = None
    _uses: dict[tuple[str, str], _Use] = field(default_factory=dict)

    def environment(self, task: str, slot: int) -> Mapping[str, str]:
        """Returns what the process of a replica is told beyond what it inherits."""
        return self.environments.get(f"{task}/{slot}", MappingProxyType({}))

    @contextmanager
    def measured(self, processes: Processes) -> Iterator[None]:
        """Looks once a second, while this lasts, how much of its devices each workload uses.

        Args:
            processes: Asked for the process of each workload, in a thread of its own.
        """
        if self._allocator is None or not self.grants:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(
            target=self._measure, args=(processes, ended), name="videoflow-gpu-memory", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_LAST_LOOK_SECONDS)

    def _measure(self, processes: Processes, ended: threading.Event) -> None:
        assert self._allocator is not None
        while True:
            living = {
                name: (pid, self.grants[name]) for name, pid in processes().items() if name in self.grants
            }
            seen = self._allocator.usage(living)
            for name, (_, grant) in living.items():
                for key in map(device_key, grant.devices):
                    use = self._uses.setdefault((name, key), _Use())
                    if isinstance(seen, Unknown):
                        use.unseen = f"{seen.reason}: {seen.detail}"
                    elif (found := seen.value[name, key]) is None:
                        use.unseen = "the driver does not say whose the memory is"
                    else:
                        use.highest, use.samples = max(use.highest or 0, found), use.samples + 1
            if ended.wait(_SAMPLE_SECONDS):
                return

    def reports(self) -> list[DeviceReport]:
        """Returns the account of every device of every workload."""
        found = []
        for name, grant in self.grants.items():
            request = self.requests[name]
            for device in grant.devices:
                use = self._uses.get((name, device_key(device)), _Use())
                found.append(
                    DeviceReport(
                        workload=name,
                        device=device_key(device),
                        product=device.product,
                        sharing=str(request.sharing),
                        exclusive=grant.exclusive,
                        policy=grant.policy,
                        memory_bytes=device.memory_bytes,
                        declared_peak_bytes=request.declared_peak_memory_bytes,
                        highest_used_bytes=use.highest,
                        samples=use.samples,
                        detail=use.unseen,
                    )
                )
        return found

    def gaps(self) -> list[GapReport]:
        """Returns what is in doubt: devices that could not be seen, and peaks that were passed."""
        gaps = [
            GapReport(
                where=name, what="its accelerators could not be seen", cause="the policy shared went on"
            )
            for name, grant in self.grants.items()
            if grant.host == Discovery.UNOBSERVED
        ]
        gaps += [
            GapReport(
                where=report.workload,
                what=f"it used {report.highest_used_bytes} bytes of {report.device}, and declared "
                f"{report.declared_peak_bytes}",
                cause="peaks are counted here and not enforced",
            )
            for report in self.reports()
            if report.declared_peak_bytes is not None
            and (report.highest_used_bytes or 0) > report.declared_peak_bytes
        ]
        return gaps


def asks_for_accelerators(spec: FlowSpec) -> bool:
    """Returns whether any node of a flow does."""
    return any(node.options.resources.gpus for node in spec.nodes)


def allocation_on(spec: FlowSpec, policy: str, clock: Clock) -> AllocationCapabilities | None:
    """Returns what the allocator of this host guarantees; None where a flow asks for nothing."""
    if not asks_for_accelerators(spec):
        return None
    with _opened(policy, clock) as allocator:
        return allocator.capabilities({})


def unsaid_sharing(policy: str) -> Sharing:
    """Returns how a device is shared where a node does not say."""
    return Sharing.ACCOUNTING_ONLY if policy == _SHARED else Sharing.EXCLUSIVE


def with_devices_shown(plan: Plan, policy: str, clock: Clock) -> Plan:
    """Returns a plan with notes on where its requests would go now; a snapshot, and no reservation."""
    if not asks_for_accelerators(plan.spec):
        return plan
    requests = accelerator_requests(plan, "", unsaid_sharing(policy))
    with _opened(policy, clock) as allocator:
        seen = allocator.inventory("")
        outcome = allocator.plan(requests, seen.value) if isinstance(seen, Known) else None
    if isinstance(seen, Unknown):
        told = [f"which GPUs there are could not be read ({seen.reason}: {seen.detail})"]
    elif isinstance(outcome, Infeasible):
        told = ["as things are now, the GPUs that are asked for cannot be given:", *outcome.reasons]
    else:
        assert outcome is not None
        told = [
            f"{name} would have {', '.join(map(device_key, devices))}, as things are now"
            for name, devices in outcome.assignments.items()
        ]
        told += outcome.notes
    return msgspec.structs.replace(plan, notes=(*plan.notes, *told))


def in_one_process(plan: Plan, policy: str) -> Plan:
    """Returns a plan for tasks that share a process, with a note that nothing keeps them to their devices.

    Raises:
        UsageError: A device of its own is asked for, and other tasks of the process use devices too.
    """
    requests = accelerator_requests(plan, "", unsaid_sharing(policy))
    if not requests:
        return plan
    alone = [r.workload_id for r in requests if r.sharing in (Sharing.EXCLUSIVE, Sharing.ISOLATED_MIG)]
    if alone and len(requests) > 1:
        raise UsageError(
            f"the threads engine cannot give {alone[0]} a device of its own",
            cause=f"{len(requests)} tasks use accelerators in this process, and nothing keeps them apart",
            effect="nothing was started",
            remedy="run with --engine local, or share: vf.Gpu(sharing='cooperative', peak_memory_bytes=...)",
        )
    note = (
        "threads bind no device: this process sees all that it inherited, and a node must use those of "
        "ctx.devices; other runs are kept away from them"
    )
    return msgspec.structs.replace(plan, notes=(*plan.notes, note))


@contextmanager
def reserved(plan: Plan, run_id: str, policy: str, clock: Clock) -> Iterator[RunDevices]:
    """Reserves what a plan asks of accelerators, and gives it back at the end.

    Args:
        plan: Admitted for the allocator.
        run_id: ULID of the run; the operation id of the claim.
        policy: `strict` or `shared`.
        clock: Time.

    Raises:
        AcceleratorFault: It cannot be given now.
        UnobservableState: Which devices there are could not be read, and the policy is strict.
    """
    requests = accelerator_requests(plan, run_id, unsaid_sharing(policy))
    if not requests:
        yield RunDevices()
        return
    asked = {request.workload_id: request for request in requests}
    with ExitStack() as held:
        allocator = held.enter_context(_opened(policy, clock, make=True))
        claim = _claimed(allocator, requests, run_id, policy)
        if claim is None:
            grants = {name: _unseen(request, policy) for name, request in asked.items()}
            environments = {name: allocator.unobserved(grant).env for name, grant in grants.items()}
            yield RunDevices(grants, environments, asked)
            return
        held.callback(_give_back, allocator, claim)
        environments = {name: allocator.bindings(claim.claim_id, name).env for name in asked}
        grants = {name: allocator.granted(claim.claim_id, name) for name in asked}
        yield RunDevices(grants, environments, asked, allocator)


def _claimed(
    allocator: "LocalAllocation", requests: Sequence[WorkloadRequest], run_id: str, policy: str
) -> ClaimObservation | None:
    """Returns a claim that is ready; None where nothing could be seen and the policy goes on."""
    claim: ClaimObservation | None = None
    for _ in range(_CONFLICTS):
        seen = allocator.inventory("")
        if isinstance(seen, Unknown):
            if policy == _SHARED:
                return None
            raise UnobservableState(
                "which accelerators there are could not be read",
                cause=f"{seen.reason}: {seen.detail}",
                effect="nothing was started; that none could be seen does not mean that there are none",
                remedy="see `videoflow gpus`; --run-gpu-policy shared goes on without looking",
            )
        outcome = allocator.plan(requests, seen.value)
        if isinstance(outcome, Infeasible):
            raise _refused(outcome.reasons)
        claim = allocator.reserve(outcome, run_id, seen.value.generation)
        if claim.status is ClaimStatus.READY:
            return claim
        if claim.evidence[:1] != (EVIDENCE_CONFLICT,):
            break
    raise _refused(() if claim is None else claim.evidence)


def _refused(reasons: Sequence[str]) -> AcceleratorFault:
    return AcceleratorFault(
        "the accelerators that this flow asks for cannot be given now",
        cause="\n".join(reasons),
        effect="nothing was started",
        remedy="wait for who holds them (`videoflow gpus`, `videoflow runs`), ask for less, or share them",
    )


def _unseen(request: WorkloadRequest, policy: str) -> DeliveredGrant:
    return DeliveredGrant(
        request.workload_id, (), False, request.device_count, policy, host=Discovery.UNOBSERVED
    )


def _give_back(allocator: "LocalAllocation", claim: ClaimObservation) -> None:
    released = allocator.release(claim.claim_id, f"{claim.claim_id}/end", claim.desired_generation)
    if released.status is not ReleaseStatus.RELEASED:
        _LOG.warning("accelerators are given back when this process ends: %s", released.reason)


@contextmanager
def _opened(policy: str, clock: Clock, *, make: bool = False) -> "Iterator[LocalAllocation]":
    open_local = registry.load(registry.ALLOCATORS, "local")
    with open_local(home_folder(), inherited(), clock, policy, make=make) as allocator:
        yield allocator
