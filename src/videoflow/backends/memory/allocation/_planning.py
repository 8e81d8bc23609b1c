"""Plans: requests and a snapshot to the one solver, and its answer back; pure.

A card is cut anew only as a whole and only where nothing of it is in use, since a snapshot does not say where
a slice begins.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from videoflow.backends.allocation import (
    Completeness,
    DeviceIdentity,
    FeasiblePlan,
    Feature,
    Infeasible,
    InventorySnapshot,
    PlanOutcome,
    WorkloadRequest,
    allocation_rejections,
    device_key,
    memory_key,
)
from videoflow.backends.allocation.planning import (
    KIND_OF,
    OPERATORS,
    defaults_of,
    geometry_of,
    plan_name,
    rule_of,
)
from videoflow.backends.capabilities import AllocationCapabilities
from videoflow.backends.memory.allocation._holding import HEADROOM_BYTES
from videoflow.backends.memory.allocation._hosts import STAMP
from videoflow.backends.memory.allocation._records import Terms
from videoflow.placement import (
    Answer,
    Card,
    CardModel,
    Demand,
    Host,
    Kind,
    Problem,
    Slice,
    explain,
    layout,
    load_catalogue,
    solve,
)


@dataclass(frozen=True)
class MemoryPlan(FeasiblePlan):
    """A plan with the terms on which each workload has its devices; without them it has them alone."""

    terms: Mapping[str, Terms] = field(default_factory=dict)


def plan_for(
    requests: Sequence[WorkloadRequest],
    snapshot: InventorySnapshot,
    capabilities: AllocationCapabilities,
    managed: Collection[str],
) -> PlanOutcome:
    """Returns devices for all requests, or why there are none."""
    reasons = _refusals(requests, snapshot, capabilities)
    if reasons:
        return Infeasible(tuple(reasons))
    seen = _seen(snapshot)
    problem = Problem(
        hosts=tuple(_host(snapshot, node, cards, managed) for node, cards in seen.items()),
        demands=tuple(_demand(request) for request in requests),
        headroom_bytes=HEADROOM_BYTES,
    )
    answer = solve(problem, relax=False)
    if answer.refusals:
        return Infeasible(tuple(explain(problem, answer).text().splitlines()))
    assignments = {request.workload_id: _devices(request, answer, seen) for request in requests}
    geometry = geometry_of(answer, seen)
    return MemoryPlan(
        assignments=assignments,
        geometry=geometry,
        snapshot_generation=snapshot.generation,
        plan_id=plan_name(snapshot.generation, assignments, geometry),
        notes=(
            *_excluded(problem, answer),
            *(note for request in requests for note in defaults_of(request)),
        ),
        terms={request.workload_id: _terms(request) for request in requests},
    )


# Before anything is planned -----------------------------------------------------------------------


def _refusals(
    requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot, capabilities: AllocationCapabilities
) -> list[str]:
    reasons = allocation_rejections(requests, capabilities)
    if snapshot.completeness is not Completeness.COMPLETE:
        reasons.append("the inventory is partial: who uses the devices could not be read")
    names = [request.workload_id for request in requests]
    reasons += [f"{name} is asked for twice" for name in sorted({n for n in names if names.count(n) > 1})]
    facts = {"host", "sharing", "product", "uuid", "memory_bytes"}
    for request in requests:
        for rule in request.constraints:
            if rule.hard and (rule.key not in facts or rule.operator not in OPERATORS):
                reasons.append(
                    f"{request.workload_id} needs {rule.key} {rule.operator}: nobody here can check that"
                )
        if KIND_OF[request.sharing] is Kind.SHARE:
            if request.declared_peak_memory_bytes is None:
                reasons.append(f"{request.workload_id} shares a device and declares no peak of memory")
            if request.hard_memory_limit_bytes is not None:
                reasons.append(
                    f"{request.workload_id} needs hard_memory_limit_bytes: shared memory is accounted for,"
                    " and no limit is enforced"
                )
    return reasons


def _excluded(problem: Problem, answer: Answer) -> list[str]:
    """Returns why each host that serves nothing could not: what it fails for the first demand."""
    serving = {placed.host for placed in answer.assignments.values()}
    notes = []
    for host in problem.hosts:
        alone = replace(problem, hosts=(host,))
        found = None if host.name in serving else solve(alone, relax=False)
        if found is not None and not found.assignments and problem.demands:
            verdict = explain(alone, found).rows[0].verdicts[0]
            notes.append(
                f"{host.name}: {verdict.test}: needs {verdict.needed}, free {verdict.free} {verdict.unit}"
            )
    return notes


# Into the solver ----------------------------------------------------------------------------------

_Cards = dict[str, list[DeviceIdentity]]


def _seen(snapshot: InventorySnapshot) -> dict[str, _Cards]:
    """Returns host → key of card → the card, then its slices."""
    found: dict[str, _Cards] = {}
    for device in snapshot.devices:
        if device.mig_uuid is None:
            found.setdefault(device.node, {})[device_key(device)] = [device]
    for device in snapshot.devices:
        if device.mig_uuid is not None and device.uuid is not None:
            found[device.node][device.uuid].append(device)
    return found


def _host(snapshot: InventorySnapshot, node: str, cards: _Cards, managed: Collection[str]) -> Host:
    sharing = snapshot.sharing.get(node, "unknown")
    stamps = snapshot.owners.get(node, "").split(",")
    foreign = [stamp for stamp in stamps if stamp and not stamp.startswith(STAMP)]
    excluded = f"owned by {foreign[0]}" if foreign else ""
    if sharing == "unknown":
        excluded = excluded or "nothing says how its devices are shared"
    return Host(
        name=node,
        cards=tuple(_card(snapshot, key, devices, node in managed) for key, devices in cards.items()),
        sharing=sharing,
        excluded=excluded,
        facts={"host": node, "sharing": sharing},
    )


def _card(snapshot: InventorySnapshot, key: str, devices: list[DeviceIdentity], managed: bool) -> Card:
    card, slices = devices[0], devices[1:]
    users = snapshot.occupancy.get(key, 0)
    busy = [snapshot.occupancy.get(device_key(piece), 0) > 0 for piece in slices]
    model = load_catalogue().card(card.product)
    free = card.memory_bytes and card.memory_bytes - snapshot.occupancy.get(memory_key(card), 0)
    facts = {"product": card.product, "uuid": card.uuid or "", "memory_bytes": str(card.memory_bytes)}
    starts = _starts(model, slices)
    return Card(
        key=key,
        memory_bytes=card.memory_bytes,
        model=model if starts is not None else None,
        managed=managed and starts is not None and not users and not any(busy),
        partitioned=bool(slices),
        slices=tuple(
            Slice(str(piece.mig_profile), start, taken, str(piece.mig_uuid), piece.memory_bytes)
            for piece, taken, start in zip(slices, busy, starts or range(len(slices)), strict=True)
        ),
        users=users,
        free_bytes=free,
        facts=facts,
    )


def _starts(model: CardModel | None, slices: Sequence[DeviceIdentity]) -> list[int] | None:
    """Returns slots at which slices of these profiles could begin together; None: nobody knows."""
    placed = None if model is None else layout(model, [str(piece.mig_profile) for piece in slices])
    if placed is None:
        return None
    left = list(placed)
    return [left.pop(next(i for i, one in enumerate(left) if _same(one[0], piece)))[1] for piece in slices]


def _same(profile: str, piece: DeviceIdentity) -> bool:
    return profile.replace(".me", "+me") == str(piece.mig_profile).replace(".me", "+me")


def _demand(request: WorkloadRequest) -> Demand:
    kind = KIND_OF[request.sharing]
    figures = [request.minimum_usable_memory_bytes]
    if kind is not Kind.SHARE:
        figures += [request.reserved_memory_bytes, request.declared_peak_memory_bytes]
    return Demand(
        key=request.workload_id,
        kind=kind,
        count=request.device_count,
        memory_bytes=max((figure for figure in figures if figure is not None), default=0),
        peak_bytes=_terms(request).size_bytes or 0,
        peer=Feature.PEER_ACCESS in request.features,
        rules=tuple(rule_of(rule) for rule in request.constraints if rule.operator in OPERATORS),
        millicores=int((request.host_cpu or 0) * 1000),
        host_memory_bytes=request.host_memory or 0,
    )


def _terms(request: WorkloadRequest) -> Terms:
    if KIND_OF[request.sharing] is not Kind.SHARE:
        return Terms(None)
    return Terms(max(request.declared_peak_memory_bytes or 0, request.reserved_memory_bytes or 0))


# Out of the solver --------------------------------------------------------------------------------


def _devices(
    request: WorkloadRequest, answer: Answer, seen: Mapping[str, _Cards]
) -> tuple[DeviceIdentity, ...]:
    placed = answer.assignments[request.workload_id]
    found = []
    for device in placed.devices:
        card, *slices = seen[placed.host][device.card]
        kept = [piece for piece in slices if piece.mig_uuid == device.slice_key]
        if device.profile is None:
            found.append(card)
        elif kept and device.card not in answer.layouts:
            found.append(kept[0])
        else:
            model = load_catalogue().card(card.product)
            profile = None if model is None else model.profile(device.profile)
            usable = None if profile is None else profile.usable_bytes
            found.append(
                DeviceIdentity(card.node, card.ordinal, card.uuid, None, card.product, usable, device.profile)
            )
    return tuple(found)
