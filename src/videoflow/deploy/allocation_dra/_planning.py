"""Plans: requests and a snapshot to the one solver, and its answer back; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from videoflow.backends.allocation import (
    Completeness,
    DeviceIdentity,
    FeasiblePlan,
    Infeasible,
    InventorySnapshot,
    LayoutEntry,
    PlanOutcome,
    WorkloadRequest,
    device_key,
    memory_key,
)
from videoflow.backends.allocation.planning import (
    KIND_OF,
    OPERATORS,
    WHOLE_CARD,
    defaults_of,
    geometry_of,
    plan_name,
    rule_of,
    uncertain_hosts,
)
from videoflow.deploy.allocation_dra._capabilities import (
    DISTINCT,
    SAME,
    group_of,
    is_placing,
    refusals,
)
from videoflow.deploy.allocation_dra._cel import PROFILE_KEY, TEXTS, VERSIONS
from videoflow.deploy.allocation_dra._gates import Gates
from videoflow.deploy.allocation_dra._inventory import DraSnapshot
from videoflow.deploy.allocation_dra._pools import HostView, Published, model_of
from videoflow.deploy.allocation_dra._rendering import share_bytes
from videoflow.deploy.allocation_dra._settings import PCIE_ROOT, DraSettings
from videoflow.placement import (
    Answer,
    Card,
    Demand,
    Host,
    Kind,
    Problem,
    Slice,
    explain,
    solve,
)


@dataclass(frozen=True)
class DraPlan(FeasiblePlan):
    """A plan with the requests that it answers; without them each device is to be had alone."""

    requests: tuple[WorkloadRequest, ...] = ()


def plan_for(
    requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot, settings: DraSettings, gates: Gates
) -> PlanOutcome:
    """Returns devices for all requests, or why there are none."""
    if not isinstance(snapshot, DraSnapshot):
        return Infeasible(("the snapshot is not of a cluster with dynamic resource allocation",))
    reasons = [*refusals(requests, settings, gates), *_refusals(snapshot)]
    if reasons:
        return Infeasible((*reasons, *snapshot.notes))
    leaders = leaders_of(requests)
    problem = Problem(
        hosts=tuple(_host(snapshot, host) for host in snapshot.hosts),
        demands=tuple(_demand(r, requests) for r in requests if leaders[r.workload_id] is r),
        headroom_bytes=0,
    )
    answer = solve(problem, relax=False)
    said = (*uncertain_hosts(problem), *snapshot.notes)
    if answer.refusals:
        return Infeasible((*explain(problem, answer).text().splitlines(), *said))
    hosts = {host.name: host for host in snapshot.hosts}
    assignments = {
        request.workload_id: tuple(_devices(leaders[request.workload_id], answer, hosts))
        for request in requests
    }
    cards = {host.name: [device_key(card.identity) for card in host.cards] for host in snapshot.hosts}
    geometry = geometry_of(answer, cards)
    return DraPlan(
        assignments=assignments,
        geometry=geometry,
        snapshot_generation=snapshot.generation,
        plan_id=plan_name(snapshot.generation, assignments, geometry, tuple(requests)),
        notes=(f"placement: {answer.label}", *said, *(n for one in requests for n in defaults_of(one))),
        requests=tuple(requests),
    )


def leaders_of(requests: Sequence[WorkloadRequest]) -> dict[str, WorkloadRequest]:
    """Returns workload → the request by which its devices are found: of a group, the first one's."""
    first: dict[str, WorkloadRequest] = {}
    return {
        request.workload_id: first.setdefault(group, request) if (group := group_of(request)) else request
        for request in requests
    }


def layouts_in(entries: Sequence[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Returns card → slices with their starts; none for a card that is to be whole."""
    found: dict[str, list[tuple[str, int]]] = {}
    for entry in map(LayoutEntry.parse, entries):
        placed = found.setdefault(entry.card, [])
        if entry.profile != WHOLE_CARD:
            placed.append((entry.profile, entry.start))
    return {card: tuple(placed) for card, placed in found.items()}


def _refusals(snapshot: DraSnapshot) -> Iterator[str]:
    if snapshot.completeness is not Completeness.COMPLETE:
        yield "the inventory is partial, and a partial one admits nothing"


# Into the solver ----------------------------------------------------------------------------------


def _host(snapshot: DraSnapshot, host: HostView) -> Host:
    return Host(
        name=host.name,
        cards=tuple(_card(snapshot, host, card) for card in host.cards),
        sharing=host.sharing,
        excluded=host.excluded,
        facts={"host": host.name, "sharing": host.sharing},
    )


def _card(snapshot: DraSnapshot, host: HostView, card: Published) -> Card:
    key, slices = device_key(card.identity), host.on(card.identity.uuid)
    users, model = snapshot.occupancy.get(key, 0), model_of(card)
    users = users or int(bool(card.withheld))
    memory = card.identity.memory_bytes
    free = None
    if card.several and memory is not None:
        free = memory - snapshot.occupancy.get(memory_key(card.identity), 0)
    return Card(
        key=key,
        memory_bytes=memory if card.most_bytes is None else card.most_bytes,
        model=model,
        # The driver cuts a card when a slice of it is given out, around those that are in use.
        managed=card.counted and model is not None and not users,
        partitioned=bool(slices) or card.kind == "card",
        slices=tuple(_slice(snapshot, piece) for piece in slices),
        users=users,
        locked=bool(users) and (not card.several or bool(card.withheld)),
        free_bytes=free,
        facts=_facts(card),
    )


def _slice(snapshot: DraSnapshot, piece: Published) -> Slice:
    key = device_key(piece.identity)
    return Slice(
        profile=str(piece.identity.mig_profile),
        start=piece.start,
        busy=snapshot.occupancy.get(key, 0) > 0 or bool(piece.withheld),
        key=key,
        usable_bytes=piece.identity.memory_bytes,
    )


def _facts(card: Published) -> dict[str, str]:
    told = dict(card.facts)
    named = {key: told[name] for key, name in {**TEXTS, **VERSIONS}.items() if name in told}
    named |= {"product": card.identity.product, "uuid": card.identity.uuid or ""}
    if PCIE_ROOT in told:
        named[PCIE_ROOT] = told[PCIE_ROOT]
    return named | {"memory_bytes": str(card.identity.memory_bytes or "")}


def _demand(request: WorkloadRequest, everybody: Sequence[WorkloadRequest]) -> Demand:
    group = group_of(request)
    # A group has its card for itself, and all of it have to find room there together.
    kind = Kind.WHOLE if group else KIND_OF[request.sharing]
    figures = [request.minimum_usable_memory_bytes]
    if group:
        figures.append(sum(share_bytes(one) for one in everybody if group_of(one) == group))
    elif kind is Kind.SHARE:
        # A policy may give one claim less than the whole device.
        figures.append(share_bytes(request))
    else:
        figures += [request.reserved_memory_bytes, request.declared_peak_memory_bytes]
    return Demand(
        key=request.workload_id,
        kind=kind,
        count=request.device_count,
        memory_bytes=max((figure for figure in figures if figure is not None), default=0),
        peak_bytes=share_bytes(request) if kind is Kind.SHARE else 0,
        profiles=_profiles(request),
        alike=_keys(request, everybody, SAME),
        apart=_keys(request, everybody, DISTINCT),
        rules=tuple(
            rule_of(rule)
            for rule in request.constraints
            if (is_placing(rule) or rule.key == "host")
            if rule.operator in OPERATORS and rule.key != PROFILE_KEY
        ),
    )


def _keys(request: WorkloadRequest, everybody: Sequence[WorkloadRequest], operator: str) -> tuple[str, ...]:
    """Returns in what the devices of a request, or of its whole group, have to agree or to differ."""
    group = group_of(request)
    asking = [one for one in everybody if group and group_of(one) == group] or [request]
    rules = (rule for one in asking for rule in one.constraints if rule.hard and rule.operator == operator)
    return tuple(dict.fromkeys(rule.key for rule in rules))


def _profiles(request: WorkloadRequest) -> tuple[str, ...]:
    return next(
        (r.values for r in request.constraints if r.hard and r.key == PROFILE_KEY and r.operator == "In"), ()
    )


# Out of the solver --------------------------------------------------------------------------------


def _devices(
    request: WorkloadRequest, answer: Answer, hosts: Mapping[str, HostView]
) -> Iterator[DeviceIdentity]:
    placed = answer.assignments[request.workload_id]
    host = hosts[placed.host]
    there = {device_key(one.identity): one.identity for one in (*host.cards, *host.slices)}
    for device in placed.devices:
        if device.slice_key and device.slice_key in there:
            yield there[device.slice_key]
        elif device.profile is None:
            yield there[device.card]
        else:
            yield _to_be_made(there[device.card], device.profile, host)


def _to_be_made(card: DeviceIdentity, profile: str, host: HostView) -> DeviceIdentity:
    usable = next(
        (
            one.identity.memory_bytes
            for one in host.possible
            if (one.identity.uuid, one.identity.mig_profile) == (card.uuid, profile)
        ),
        None,
    )
    return DeviceIdentity(card.node, card.ordinal, card.uuid, None, card.product, usable, profile)
