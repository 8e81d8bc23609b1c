"""The allocator of this host: the driver says what there is, the ledger who may use it.

Used by both one-machine engines and by `videoflow gpus`. A reservation is one compare-and-swap on the records
of the devices, checked by a second look at the driver before it is ready. It refuses to change geometry, to
enforce memory, and to promise anything against processes that do not ask it.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from videoflow import faults
from videoflow.adapters.nvml import IDLE_BYTES, DeviceReading, HostReading
from videoflow.backends.allocation import (
    EVIDENCE_ABORTED,
    EVIDENCE_CONFLICT,
    EVIDENCE_LOST,
    EVIDENCE_STALE,
    AcceleratorAllocationBackend,
    ClaimObservation,
    ClaimStatus,
    Completeness,
    DeliveredGrant,
    FeasiblePlan,
    InventorySnapshot,
    PlanOutcome,
    ReleaseObservation,
    ReleaseStatus,
    WorkloadBindings,
    WorkloadRequest,
    device_key,
)
from videoflow.backends.capabilities import AllocationCapabilities
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason, known, unknown
from videoflow.backends.runtime import StoreOutcome
from videoflow.clock import Clock
from videoflow.deploy.allocation_local._bindings import (
    bindings_of,
    granted,
    unobserved_bindings,
)
from videoflow.deploy.allocation_local._claims import (
    busy_devices,
    failed,
    observation,
    shares_of,
    still_fits,
)
from videoflow.deploy.allocation_local._guarantees import capabilities_of
from videoflow.deploy.allocation_local._inventory import (
    Seen,
    Survey,
    foreign_users,
    snapshot_of,
    survey_of,
    used_within,
    visible,
)
from videoflow.deploy.allocation_local._ledger import Book, Claim, Ledger
from videoflow.deploy.allocation_local._planning import LocalPlan, plan_requests
from videoflow.deploy.allocation_local._settings import LocalSettings, Policy
from videoflow.environment import GRANT_VARIABLE
from videoflow.errors import ContractBroken, UnknownName
from videoflow.ids import hash_id
from videoflow.processes import ProcessIdentity

_ATTEMPTS = 5


class LocalAllocation(AcceleratorAllocationBackend):
    """Accelerators of one host, between the runs of one user.

    Args:
        settings: Mask, policy, headroom.
        look: Asks the driver.
        ledger: Of this user on this host.
        holder: The process with which the claims made here end.
        clock: Time.
    """

    def __init__(
        self,
        settings: LocalSettings,
        look: Callable[[], Observation[HostReading]],
        ledger: Ledger,
        holder: ProcessIdentity,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self._look = look
        self._ledger = ledger
        self._holder = holder
        self._clock = clock

    def capabilities(self, environment: Mapping[str, str]) -> AllocationCapabilities:
        """Returns what one host without a daemon guarantees; no fact of the environment adds to it."""
        return capabilities_of(self.settings.policy)

    def inventory(self, scope: str) -> Observation[InventorySnapshot]:
        """Returns the visible devices, and who uses them.

        Args:
            scope: Not used: the mask that this process inherited is the scope.
        """
        seen = self._seen()
        if isinstance(seen, Unknown):
            return seen
        found = snapshot_of(seen.value, self.settings, self._holder)
        return found if isinstance(found, Unknown) else known(found.value, found.observed_at)

    def survey(self) -> Observation[Survey]:
        """Returns all GPUs of the host, those beyond the mask too, for people to look at."""
        seen = self._seen()
        return (
            seen
            if isinstance(seen, Unknown)
            else known(survey_of(seen.value, self.settings), seen.observed_at)
        )

    def plan(self, requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot) -> PlanOutcome:
        """Returns devices for all requests, or why there are none; pure."""
        return plan_requests(requests, snapshot, self.settings)

    def reserve(self, plan: FeasiblePlan, operation_id: str, expected_generation: str) -> ClaimObservation:
        """Claims what a plan assigns, all of it or nothing, once per operation id.

        Raises:
            ContractBroken: The operation id was used with another plan, or the plan is of another generation.
        """
        if plan.snapshot_generation != expected_generation:
            raise ContractBroken("a plan is reserved for another generation than it was made from")
        claim = self._claim(plan, operation_id)
        for _ in range(_ATTEMPTS):
            seen = self._seen()
            if isinstance(seen, Unknown):
                return failed(claim, EVIDENCE_ABORTED, f"the driver: {seen.reason}, {seen.detail}")
            if isinstance(seen.value.book, Unknown):
                unread = seen.value.book
                return failed(claim, EVIDENCE_ABORTED, f"the ledger: {unread.reason}, {unread.detail}")
            book = seen.value.book.value
            standing = book.claims.get(claim.claim_id)
            if standing is not None:
                return self._standing(book, standing, plan)
            snapshot = snapshot_of(seen.value, self.settings, self._holder)
            if isinstance(snapshot, Unknown) or snapshot.value.generation != expected_generation:
                return failed(claim, EVIDENCE_CONFLICT, "the inventory has moved since it was planned on")
            if snapshot.value.completeness is not Completeness.COMPLETE:
                return failed(claim, EVIDENCE_ABORTED, "who uses the devices could not be read")
            outcome = self._ledger.add(book, claim, shares_of(claim))
            if outcome is StoreOutcome.COMMITTED:
                faults.reach("claim.owned")
                return self._confirmed(claim)
            if outcome is StoreOutcome.CONFLICT:
                return failed(claim, EVIDENCE_CONFLICT, "another claimant was first")
        return failed(claim, EVIDENCE_ABORTED, "the ledger does not say whether the claim was written")

    def bindings(self, claim_id: str, workload_id: str) -> WorkloadBindings:
        """Returns the environment of a workload: the devices that it may see, and its grant.

        Raises:
            UnknownName: No such claim, or the claim has no such workload.
            ContractBroken: The claim holds nothing now, or the ledger cannot be read.
        """
        book = self._ledger.read()
        if isinstance(book, Unknown):
            raise ContractBroken("bindings are asked of a ledger that cannot be read", cause=book.detail)
        claim = book.value.claims.get(claim_id)
        if claim is None or workload_id not in claim.assignments:
            raise UnknownName(f"no claim {claim_id} with a workload {workload_id}")
        if claim.status is not ClaimStatus.READY:
            raise ContractBroken(f"claim {claim_id} is {claim.status}, and holds nothing")
        return bindings_of(granted(claim, workload_id))

    def granted(self, claim_id: str, workload_id: str) -> DeliveredGrant:
        """Returns what a workload was granted; see `bindings`."""
        said = self.bindings(claim_id, workload_id).env[GRANT_VARIABLE]
        return DeliveredGrant.from_dict(json.loads(said))

    def unobserved(self, grant: DeliveredGrant) -> WorkloadBindings:
        """Returns the environment of a workload whose launcher could not look, and went on."""
        return unobserved_bindings(grant)

    def observe(self, claim_id: str) -> Observation[ClaimObservation]:
        """Returns the state of a claim; writes nothing."""
        book = self._ledger.read()
        if isinstance(book, Unknown):
            return book
        found = self._observed(book.value, claim_id)
        if found is None:
            return unknown(UnknownReason.MISSING, book.observed_at, f"the ledger holds no claim {claim_id}")
        return known(found, book.observed_at)

    def claims(self, scope: str) -> Observation[tuple[ClaimObservation, ...]]:
        """Returns every claim of the ledger, in order of id; writes nothing.

        Args:
            scope: Not used: the ledger is that of this host.
        """
        book = self._ledger.read()
        if isinstance(book, Unknown):
            return book
        ids = sorted({*book.value.claims, *book.value.dead})
        seen = (self._observed(book.value, claim_id) for claim_id in ids)
        return known(tuple(found for found in seen if found is not None), book.observed_at)

    def reconcile(
        self, claim_id: str, desired: Sequence[WorkloadRequest], expected_generation: str
    ) -> ClaimObservation:
        """Carries on with a claim that was interrupted; nothing else about it can change here.

        Raises:
            UnknownName: No such claim.
            ContractBroken: A workload is asked to change its number of devices, or the ledger cannot be read.
        """
        book = self._ledger.read()
        if isinstance(book, Unknown):
            raise ContractBroken("a ledger that cannot be read reconciles nothing", cause=book.detail)
        claim = book.value.claims.get(claim_id)
        if claim is None:
            raise UnknownName(f"no claim {claim_id}")
        if claim.generation != expected_generation:
            return observation(claim, (EVIDENCE_STALE, f"the claim is of generation {claim.generation}"))
        for request in desired:
            if request.device_count != len(claim.assignments.get(request.workload_id, ())):
                raise ContractBroken(f"{request.workload_id} is fixed, and asked to change its devices")
        if {request.workload_id for request in desired} != set(claim.assignments):
            return failed(claim, EVIDENCE_CONFLICT, "a claim cannot change its workloads here")
        asked = {request.workload_id: request for request in desired}
        changed = [name for name, request in asked.items() if request not in claim.requests]
        if changed and not all(still_fits(claim, asked[name]) for name in changed):
            return failed(claim, EVIDENCE_CONFLICT, f"what {', '.join(changed)} holds does not fit any more")
        return observation(claim) if claim.status is ClaimStatus.READY else self._confirmed(claim)

    def release(
        self, claim_id: str, operation_id: str, expected_generation: str, keep_workloads: bool = False
    ) -> ReleaseObservation:
        """Gives a claim back; what its workloads still use stays theirs until they are gone."""
        for _ in range(_ATTEMPTS):
            book = self._ledger.read()
            if isinstance(book, Unknown):
                return ReleaseObservation(
                    claim_id, ReleaseStatus.PENDING_RECOVERY, reason=f"the ledger: {book.detail}"
                )
            claim = book.value.claims.get(claim_id)
            if claim is None:  # the dead hold nothing
                return ReleaseObservation(claim_id, ReleaseStatus.RELEASED)
            if claim.generation != expected_generation:
                reason = f"the claim is of generation {claim.generation}"
                return ReleaseObservation(claim_id, ReleaseStatus.STALE, reason=reason)
            devices = tuple(device_key(d) for assigned in claim.assignments.values() for d in assigned)
            if keep_workloads:
                return ReleaseObservation(
                    claim_id, ReleaseStatus.PENDING_RECOVERY, devices, "its workloads are kept"
                )
            busy = busy_devices(self._look(), claim)
            if isinstance(busy, Unknown):
                reason = f"whether its devices are idle: {busy.reason}, {busy.detail}"
                return ReleaseObservation(claim_id, ReleaseStatus.PENDING_RECOVERY, devices, reason)
            if busy.value:
                reason = "its workloads still use them"
                return ReleaseObservation(claim_id, ReleaseStatus.PENDING_RECOVERY, busy.value, reason)
            if self._ledger.remove(book.value, claim) is StoreOutcome.COMMITTED:
                return ReleaseObservation(claim_id, ReleaseStatus.RELEASED)
        reason = "the ledger does not say whether the claim was removed"
        return ReleaseObservation(claim_id, ReleaseStatus.PENDING_RECOVERY, reason=reason)

    def usage(
        self, workloads: Mapping[str, tuple[int, DeliveredGrant]]
    ) -> Observation[dict[tuple[str, str], int | None]]:
        """Returns (workload, device key) → bytes in use now, None where that cannot be told.

        Args:
            workloads: Name → its process, and what it was granted.
        """
        seen = self._look()
        if isinstance(seen, Unknown):
            return seen
        there = {device_key(device.identity): device for device in seen.value.devices}
        found = {
            (name, key): used_within(there[key], pid, alone=grant.exclusive) if key in there else None
            for name, (pid, grant) in workloads.items()
            for key in map(device_key, grant.devices)
        }
        return known(found, seen.observed_at)

    # One claim ----------------------------------------------------------------------------------

    def _claim(self, plan: FeasiblePlan, operation_id: str) -> Claim:
        requests = plan.requests if isinstance(plan, LocalPlan) else ()
        policy = plan.policy if isinstance(plan, LocalPlan) else self.settings.policy
        runs = sorted({request.run_id for request in requests if request.run_id})
        return Claim(
            claim_id=hash_id("claim", operation_id),
            operation_id=operation_id,
            plan_id=plan.plan_id,
            owner=", ".join(runs) or operation_id,
            generation=plan.snapshot_generation,
            status=ClaimStatus.ALLOCATED,
            holder=self._holder,
            policy=policy,
            assignments={name: tuple(devices) for name, devices in plan.assignments.items()},
            requests=requests,
        )

    def _standing(self, book: Book, claim: Claim, plan: FeasiblePlan) -> ClaimObservation:
        """Returns what a repeated reservation finds; one that was interrupted is carried on with."""
        if claim.plan_id != plan.plan_id:
            raise ContractBroken(f"operation {claim.operation_id} reserved another plan before")
        if claim.status is ClaimStatus.ALLOCATED:
            return self._confirmed(claim)
        return self._observed(book, claim.claim_id) or observation(claim)

    def _confirmed(self, claim: Claim) -> ClaimObservation:
        """Looks at the devices again, now that they are ours; makes the claim ready, or undoes it."""
        seen = self._seen()
        why = self._why_not(seen, claim)
        for _ in range(_ATTEMPTS):
            book = self._ledger.read()
            if isinstance(book, Unknown):
                continue
            standing = book.value.claims.get(claim.claim_id)
            if standing is None:
                return failed(claim, EVIDENCE_ABORTED, why or "the claim is not in the ledger any more")
            if standing.status is ClaimStatus.READY:
                return observation(standing)
            if why:
                outcome = self._ledger.remove(book.value, standing)
            else:
                outcome = self._ledger.move(book.value, standing, ClaimStatus.READY)
            if outcome is StoreOutcome.COMMITTED and why:
                return failed(claim, EVIDENCE_ABORTED, why)
        return observation(claim, ("the ledger does not say whether the claim is ready",))

    def _why_not(self, seen: Observation[Seen], claim: Claim) -> str:
        """Returns why devices that were just claimed cannot be used, or ""."""
        if isinstance(seen, Unknown):
            return f"the devices could not be looked at again: {seen.reason}, {seen.detail}"
        found = visible(seen.value, self.settings)
        if isinstance(found, Unknown) or isinstance(seen.value.book, Unknown):
            return "the devices could not be looked at again"
        book = seen.value.book.value
        if claim.claim_id not in book.claims:
            return "it was given back in the meantime"
        there = {device_key(device.identity): device for device in found.value[0]}
        return next(
            (
                why
                for name, devices in claim.assignments.items()
                for device in devices
                if (why := self._why_not_one(there.get(device_key(device)), book, claim, name))
            ),
            "",
        )

    def _why_not_one(self, device: DeviceReading | None, book: Book, claim: Claim, workload: str) -> str:
        if device is None:
            return f"a device of {workload} is not there any more"
        key = device_key(device.identity)
        if device.problems:
            return f"{key}: {device.problems[0]}"
        if claim.policy == Policy.SHARED:
            return ""
        share = next(
            s for s in book.shares.get(key, ()) if (s.claim, s.workload) == (claim.claim_id, workload)
        )
        if share.exclusive:
            strangers = foreign_users(device, book, self._holder)
            if strangers or (not device.users and (device.used_bytes or 0) > IDLE_BYTES):
                return f"{key}: another process came while it was claimed"
            return ""
        total, used = device.identity.memory_bytes or 0, device.used_bytes or 0
        if used + share.peak_bytes + self.settings.headroom_bytes > total:
            return f"{key}: {total - used} bytes are free now, and {workload} may use {share.peak_bytes}"
        return ""

    def _observed(self, book: Book, claim_id: str) -> ClaimObservation | None:
        if claim_id in book.dead:
            return failed(
                book.dead[claim_id], EVIDENCE_LOST, "its holder has died, and its devices are free again"
            )
        claim = book.claims.get(claim_id)
        if claim is None:
            return None
        held = {key for key, shares in book.shares.items() if any(s.claim == claim_id for s in shares)}
        wanted = {device_key(device) for devices in claim.assignments.values() for device in devices}
        if wanted - held:
            return failed(claim, EVIDENCE_LOST, f"{', '.join(sorted(wanted - held))} went to somebody else")
        return observation(claim)

    def _seen(self) -> Observation[Seen]:
        book = self._ledger.read()
        host = self._look()
        if isinstance(host, Unknown):
            return host
        return known(Seen(host.value, book, host.observed_at), host.observed_at)
