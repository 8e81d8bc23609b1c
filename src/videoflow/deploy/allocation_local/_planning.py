"""From requests and a snapshot to a plan, or to why there is none; pure.

Used by the allocator. Strict planning is the one solver's; shared planning wraps around over what there is
and says so. It refuses what nobody here can give or check, by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from videoflow.backends.allocation import (
    Completeness,
    Constraint,
    DeviceIdentity,
    FeasiblePlan,
    Feature,
    HostSharing,
    Infeasible,
    InventorySnapshot,
    PlanOutcome,
    Provenance,
    Sharing,
    WorkloadRequest,
    allocation_rejections,
    device_key,
    memory_key,
)
from videoflow.backends.allocation.planning import KIND_OF, OPERATORS
from videoflow.deploy.allocation_local._guarantees import capabilities_of
from videoflow.deploy.allocation_local._inventory import LocalSnapshot
from videoflow.deploy.allocation_local._settings import LocalSettings, Policy
from videoflow.ids import hash_id
from videoflow.placement import (
    Card,
    Demand,
    Host,
    Kind,
    Operator,
    Problem,
    Rule,
    Slice,
    explain,
    fulfils,
    solve,
)

_PROFILE = "mig_profile"


@dataclass(frozen=True)
class LocalPlan(FeasiblePlan):
    """A plan with the requests that it serves, which a reservation enters in the ledger."""

    requests: tuple[WorkloadRequest, ...] = ()
    policy: Policy = Policy.STRICT


def plan_requests(
    requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot, settings: LocalSettings
) -> PlanOutcome:
    """Returns devices for all requests, or why there are none."""
    local = _as_local(snapshot)
    if snapshot.completeness is not Completeness.COMPLETE:
        return Infeasible(("the inventory is partial, and a partial one admits nothing", *local.notes))
    refused = allocation_rejections(requests, capabilities_of(settings.policy))
    refused += [reason for request in requests for reason in _refusals(request, local, settings.policy)]
    names = [request.workload_id for request in requests]
    refused += [
        f"{name}: two requests have this name" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if refused:
        return Infeasible(tuple(refused))
    if not local.devices and requests:
        handed = local.sharing.get(settings.host, HostSharing.UNKNOWN)
        return Infeasible((f"{settings.host} ({handed}) has no GPU that may be given", *local.notes))
    if settings.policy is Policy.SHARED:
        return _wrapped(requests, local)
    return _solved(requests, local, settings)


def _refusals(request: WorkloadRequest, snapshot: LocalSnapshot, policy: Policy) -> Iterator[str]:
    """Yields what of a request nobody here can give or check."""
    known = {_PROFILE, *(key for facts in snapshot.facts.values() for key in facts)}
    lacks = [
        (request.device_count < 1, f"{request.device_count} devices are none"),
        (
            request.sharing is Sharing.ISOLATED_MIG and request.device_count > 1,
            "CUDA shows one MIG slice to a process, and no more",
        ),
        (request.hard_memory_limit_bytes is not None, "nobody here stops it at a hard_memory_limit_bytes"),
        (
            policy is Policy.STRICT
            and request.sharing is Sharing.COOPERATIVE
            and request.declared_peak_memory_bytes is None,
            "a sharer is admitted by declared_peak_memory_bytes, and it declares none",
        ),
        (request.host_cpu is not None, "host_cpu is for the engine to judge, and is not known here"),
        (request.host_memory is not None, "host_memory is for the engine to judge, and is not known here"),
    ]
    yield from (f"{request.workload_id}: {why}" for is_lack, why in lacks if is_lack)
    for constraint in request.constraints:
        if constraint.hard and constraint.operator not in OPERATORS:
            yield f"{request.workload_id}: nobody here can check {constraint.key} {constraint.operator}"
        elif constraint.hard and constraint.key not in known:
            yield f"{request.workload_id}: nobody here can check {constraint.key}"


def _solved(
    requests: Sequence[WorkloadRequest], snapshot: LocalSnapshot, settings: LocalSettings
) -> PlanOutcome:
    problem = Problem(
        hosts=(_host(snapshot, settings.host),),
        demands=tuple(_demand(request) for request in requests),
        headroom_bytes=settings.headroom_bytes,
    )
    answer = solve(problem)
    if answer.refusals:
        told = explain(problem, answer).text().splitlines()[1:]
        return Infeasible((*told, *_held(snapshot), *snapshot.notes))
    by_key = {device_key(device): device for device in snapshot.devices}
    assignments = {
        name: tuple(by_key[device.slice_key or device.card] for device in placed.devices)
        for name, placed in answer.assignments.items()
    }
    return _planned(requests, snapshot, assignments, Policy.STRICT, (f"placement: {answer.label}",))


def _planned(
    requests: Sequence[WorkloadRequest],
    snapshot: LocalSnapshot,
    assignments: Mapping[str, tuple[DeviceIdentity, ...]],
    policy: Policy,
    notes: tuple[str, ...],
) -> LocalPlan:
    said = [f"{name}={','.join(map(device_key, devices))}" for name, devices in sorted(assignments.items())]
    return LocalPlan(
        assignments=dict(assignments),
        geometry={},
        snapshot_generation=snapshot.generation,
        plan_id=hash_id(snapshot.generation, policy, *said, *(repr(request) for request in requests)),
        notes=(*notes, *_defaults(requests), *snapshot.notes),
        requests=tuple(requests),
        policy=policy,
    )


def _defaults(requests: Sequence[WorkloadRequest]) -> Iterator[str]:
    for request in requests:
        for name, source in request.provenance.items():
            if source != Provenance.EXPLICIT:
                said = getattr(request, name)
                yield f"{request.workload_id}: {name} is {said if said is not None else 'unsaid'}, a {source}"


def _host(snapshot: LocalSnapshot, name: str) -> Host:
    whole, cut = list[Card](), dict[str, list[Slice]]()
    for device in snapshot.devices:
        key = device_key(device)
        users, facts = snapshot.occupancy.get(key, 0), snapshot.facts[key]
        if device.mig_uuid is not None:
            cut.setdefault(device.uuid or "", []).append(
                Slice(
                    device.mig_profile or "",
                    start=len(cut.get(device.uuid or "", ())),
                    busy=users > 0,
                    key=key,
                    usable_bytes=device.memory_bytes or 0,
                )
            )
            continue
        used = snapshot.occupancy.get(memory_key(device), 0)
        whole.append(
            Card(
                key,
                memory_bytes=device.memory_bytes,
                users=users,
                locked=any(share.exclusive for share in snapshot.shares.get(key, ())),
                free_bytes=None if device.memory_bytes is None else max(0, device.memory_bytes - used),
                facts=facts,
            )
        )
    facts_of = {device.uuid or "": snapshot.facts[device_key(device)] for device in snapshot.devices}
    cards = [
        *whole,
        *(
            Card(key, partitioned=True, slices=tuple(slices), facts=facts_of[key])
            for key, slices in cut.items()
        ),
    ]
    keys = {card.key for card in cards}
    return Host(
        name,
        tuple(cards),
        sharing=str(snapshot.sharing.get(name, HostSharing.UNKNOWN)),
        links=tuple(link for link in snapshot.links if {link.first, link.second} <= keys),
    )


def _demand(request: WorkloadRequest) -> Demand:
    profiles = [
        c.values for c in request.constraints if c.key == _PROFILE and c.hard and c.operator == Operator.IN
    ]
    checkable = [c for c in request.constraints if c.operator in OPERATORS]
    peak = max(request.declared_peak_memory_bytes or 0, request.reserved_memory_bytes or 0)
    kind = KIND_OF[request.sharing]
    return Demand(
        key=request.workload_id,
        kind=kind,
        count=request.device_count,
        memory_bytes=request.minimum_usable_memory_bytes or 0,
        peak_bytes=peak if kind is Kind.SHARE else 0,
        profiles=profiles[0] if profiles else (),
        peer=Feature.PEER_ACCESS in request.features,
        rules=tuple(_rule(c) for c in checkable if not (profiles and c.key == _PROFILE)),
    )


def _rule(constraint: Constraint) -> Rule:
    return Rule(constraint.key, Operator(constraint.operator), constraint.values, constraint.hard)


def _held(snapshot: LocalSnapshot) -> list[str]:
    """Says of each device who is on it, for whoever asks why it is not free."""
    told = []
    for device in snapshot.devices:
        key = device_key(device)
        held = snapshot.shares.get(key, ())
        owners = sorted({f"{share.workload} of run {share.owner}" for share in held})
        others = snapshot.occupancy.get(key, 0) - len(held)
        if others:
            owners.append(f"{others} process{'es' if others > 1 else ''} of others")
        if owners:
            told.append(f"{device.product} {key} is used by {', '.join(owners)}")
    return told


def _wrapped(requests: Sequence[WorkloadRequest], snapshot: LocalSnapshot) -> PlanOutcome:
    """Gives every request the devices that the fewest are on; two of one request are two devices."""
    load = {device_key(device): snapshot.occupancy.get(device_key(device), 0) for device in snapshot.devices}
    host = Host("", ())
    assignments, refused = dict[str, tuple[DeviceIdentity, ...]](), list[str]()
    for request in requests:
        rules = [_rule(constraint) for constraint in request.constraints if constraint.hard]
        fitting = [
            device
            for device in snapshot.devices
            if not any(share.exclusive for share in snapshot.shares.get(device_key(device), ()))
            and (device.memory_bytes or 0) >= (request.minimum_usable_memory_bytes or 0)
            and all(fulfils(rule, host, Card("", facts=snapshot.facts[device_key(device)])) for rule in rules)
        ]
        chosen = sorted(fitting, key=lambda device: load[device_key(device)])[: request.device_count]
        if len(chosen) < request.device_count:
            refused.append(
                f"{request.workload_id}: it needs {request.device_count} devices that nobody has alone, of "
                f"at least {request.minimum_usable_memory_bytes or 0} bytes, and {len(fitting)} would do"
            )
        for device in chosen:
            load[device_key(device)] += 1
        assignments[request.workload_id] = tuple(chosen)
    if refused:
        return Infeasible((*refused, *_held(snapshot), *snapshot.notes))
    crowded = [f"{key} is shared by {count}" for key, count in load.items() if count > 1]
    notes = ("policy shared: no device is anybody's own, and no memory is kept for anybody", *crowded)
    return _planned(requests, snapshot, assignments, Policy.SHARED, notes)


def _as_local(snapshot: InventorySnapshot) -> LocalSnapshot:
    """Returns a snapshot with what is not known of it left empty."""
    if isinstance(snapshot, LocalSnapshot):
        return snapshot
    return LocalSnapshot(
        **{name: getattr(snapshot, name) for name in InventorySnapshot.__dataclass_fields__},
        facts={device_key(device): {"product": device.product} for device in snapshot.devices},
        links=(),
        shares={},
        notes=(),
    )
