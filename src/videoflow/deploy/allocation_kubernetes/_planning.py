"""Plans: requests and a snapshot to the one solver, and its answer back; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from videoflow.backends.allocation import (
    Completeness,
    Constraint,
    DeviceIdentity,
    FeasiblePlan,
    HostSharing,
    Infeasible,
    InventorySnapshot,
    LayoutEntry,
    PlanOutcome,
    Sharing,
    WorkloadRequest,
    allocation_rejections,
    device_key,
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
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement
from videoflow.deploy.allocation_kubernetes._hosts import HostView
from videoflow.deploy.allocation_kubernetes._inventory import KubernetesSnapshot
from videoflow.deploy.allocation_kubernetes._mig_config import Cards
from videoflow.deploy.allocation_kubernetes._records import Terms
from videoflow.placement import (
    Answer,
    Card,
    CardModel,
    Demand,
    Host,
    Kind,
    Problem,
    Rule,
    Slice,
    explain,
    layout,
    solve,
)

FACTS = ("host", "sharing", "product", "memory_bytes")


@dataclass(frozen=True)
class KubernetesPlan(FeasiblePlan):
    """A plan with the terms on which each workload has its devices; without them it has them alone."""

    terms: Mapping[str, Terms] = field(default_factory=dict)


def plan_for(
    requests: Sequence[WorkloadRequest], snapshot: InventorySnapshot, capabilities: AllocationCapabilities
) -> PlanOutcome:
    """Returns devices for all requests, or why there are none."""
    if not isinstance(snapshot, KubernetesSnapshot):
        return Infeasible(("the snapshot is not of a cluster",))
    reasons = [*allocation_rejections(requests, capabilities), *_refusals(requests, snapshot, capabilities)]
    if reasons:
        return Infeasible((*reasons, *snapshot.notes))
    problem = Problem(
        hosts=tuple(_host(snapshot, host) for host in snapshot.hosts),
        demands=tuple(_demand(request) for request in requests),
        headroom_bytes=0,
    )
    answer = solve(problem, relax=False)
    said = (*uncertain_hosts(problem), *snapshot.notes)
    if answer.refusals:
        return Infeasible((*explain(problem, answer).text().splitlines(), *said))
    hosts = {host.name: host for host in snapshot.hosts}
    assignments = {request.workload_id: tuple(_devices(request, answer, hosts)) for request in requests}
    cards = {
        host.name: [device_key(host.card(ordinal)) for ordinal in range(len(host.cards))]
        for host in snapshot.hosts
    }
    geometry = geometry_of(answer, cards)
    return KubernetesPlan(
        assignments=assignments,
        geometry=geometry,
        snapshot_generation=snapshot.generation,
        plan_id=plan_name(snapshot.generation, assignments, geometry, tuple(requests)),
        notes=(f"placement: {answer.label}", *said, *(n for one in requests for n in defaults_of(one))),
        terms={request.workload_id: _terms(request) for request in requests},
    )


def cards_in(entries: Sequence[str], host: HostView) -> Cards:
    """Returns what all cards of a host are cut into where some have a new layout."""
    found: dict[int, list[str] | None] = {}
    for entry in map(LayoutEntry.parse, entries):
        ordinal = int(entry.card.rpartition("#")[2])
        if entry.profile == WHOLE_CARD:
            found[ordinal] = None
        else:
            cut = found.setdefault(ordinal, [])
            if cut is not None:
                cut.append(entry.profile)
    return tuple(
        (None if (cut := found[n]) is None else tuple(sorted(cut))) if n in found else before
        for n, before in enumerate(host.cards)
    )


def layouts_in(entries: Sequence[str]) -> dict[int, tuple[tuple[str, int], ...]]:
    """Returns ordinal → slices with their starts; none for a card that is to be whole."""
    found: dict[int, list[tuple[str, int]]] = {}
    for entry in map(LayoutEntry.parse, entries):
        placed = found.setdefault(int(entry.card.rpartition("#")[2]), [])
        if entry.profile != WHOLE_CARD:
            placed.append((entry.profile, entry.start))
    return {ordinal: tuple(placed) for ordinal, placed in found.items()}


# Before anything is planned -----------------------------------------------------------------------


def _refusals(
    requests: Sequence[WorkloadRequest], snapshot: KubernetesSnapshot, capabilities: AllocationCapabilities
) -> Iterator[str]:
    capped = capabilities.memory_enforcement is Enforcement.RUNTIME_CAP
    if snapshot.completeness is not Completeness.COMPLETE:
        yield "the inventory is partial, and a partial one admits nothing"
    names = [request.workload_id for request in requests]
    yield from (f"{name} is asked for twice" for name in sorted({n for n in names if names.count(n) > 1}))
    for request in requests:
        yield from (f"{request.workload_id} {why}" for lacks, why in _lacks(request, capped) if lacks)
        for rule in request.constraints:
            if rule.hard and (rule.key not in FACTS or rule.operator not in OPERATORS):
                yield f"{request.workload_id} needs {rule.key} {rule.operator}: nobody here can check that"


def _lacks(request: WorkloadRequest, capped: bool) -> list[tuple[bool, str]]:
    shares = KIND_OF[request.sharing] is Kind.SHARE
    return [
        (request.device_count < 1, f"asks for {request.device_count} devices, which are none"),
        (
            request.sharing is Sharing.ACCOUNTING_ONLY,
            "needs accounting_only: a device plugin keeps no accounts",
        ),
        (
            shares and request.declared_peak_memory_bytes is None,
            "shares a device and declares no peak of memory",
        ),
        (shares and request.device_count > 1, "needs several shares: they may be of one card"),
        (
            request.hard_memory_limit_bytes is not None and not (shares and capped),
            "needs hard_memory_limit_bytes: only MPS stops a process at a limit of its own",
        ),
        (request.host_cpu is not None, "needs host_cpu: the scheduler judges that, by what its pod asks for"),
        (
            request.host_memory is not None,
            "needs host_memory: the scheduler judges that, by what its pod asks for",
        ),
    ]


# Into the solver ----------------------------------------------------------------------------------


def _host(snapshot: KubernetesSnapshot, host: HostView) -> Host:
    users = snapshot.users(host)
    idle = not any((snapshot.used or {}).get(host.name, {}).values())
    if host.sharing in (HostSharing.TIME_SLICED, HostSharing.MPS):
        cards = [_shared(host, ordinal, users) for ordinal in range(len(host.cards))]
    else:
        cards = [_card(host, ordinal, users, idle) for ordinal in range(len(host.cards))]
        cards += [_loose(host, device, users) for device in host.loose()]
    return Host(
        name=host.name,
        cards=tuple(cards),
        sharing=host.sharing,
        excluded=host.excluded,
        facts={"host": host.name, "sharing": host.sharing},
    )


def _card(host: HostView, ordinal: int, users: Mapping[str, int], idle: bool) -> Card:
    cut, model = host.cards[ordinal], host.model()
    placed = None if model is None else layout(model, list(cut or ()))
    key = device_key(host.card(ordinal))
    slices = host.slices(ordinal)
    starts = _starts(placed, [str(piece.mig_profile) for piece in slices])
    busy = [users[device_key(piece)] > 0 for piece in slices]
    return Card(
        key=key,
        memory_bytes=host.memory_bytes,
        model=model if placed is not None else None,
        # A pod that runs has some card, and nobody says which: then none is cut.
        managed=host.managed and placed is not None and idle and not users[key] and not any(busy),
        partitioned=cut is not None,
        slices=tuple(
            Slice(str(piece.mig_profile), start, taken, device_key(piece), piece.memory_bytes)
            for piece, taken, start in zip(slices, busy, starts, strict=True)
        ),
        users=users[key] if cut is None else 0,
        facts=_facts(host),
    )


def _starts(placed: Sequence[tuple[str, int]] | None, profiles: Sequence[str]) -> list[int]:
    """Returns where slices of these profiles could begin; their numbers where nobody knows."""
    if placed is None:
        return list(range(len(profiles)))
    left = list(placed)
    return [left.pop(next(n for n, one in enumerate(left) if one[0] == name))[1] for name in profiles]


def _loose(host: HostView, device: DeviceIdentity, users: Mapping[str, int]) -> Card:
    """A slice of which nobody knows the card, as a card of its own that is not to be changed."""
    key = device_key(device)
    piece = Slice(str(device.mig_profile), 0, users[key] > 0, key, device.memory_bytes or 0)
    return Card(key=f"{key}/card", partitioned=True, slices=(piece,), facts=_facts(host))


def _shared(host: HostView, ordinal: int, users: Mapping[str, int]) -> Card:
    key = device_key(host.card(ordinal))
    left = max(host.shares - users[key], 0)
    share = None if host.memory_bytes is None else host.memory_bytes // host.shares
    return Card(
        key=key,
        memory_bytes=share,
        users=users[key],
        free_bytes=None if share is None else share * left,
        sharers_left=left,
        facts=_facts(host),
    )


def _facts(host: HostView) -> dict[str, str]:
    return {"product": host.product, "memory_bytes": str(host.memory_bytes or "")}


def _demand(request: WorkloadRequest) -> Demand:
    kind = KIND_OF[request.sharing]
    figures = (
        request.minimum_usable_memory_bytes,
        request.reserved_memory_bytes,
        request.declared_peak_memory_bytes,
    )
    return Demand(
        key=request.workload_id,
        kind=kind,
        count=request.device_count,
        memory_bytes=max((figure for figure in figures if figure is not None), default=0),
        peak_bytes=_terms(request).size_bytes,
        rules=tuple(_rule(rule) for rule in request.constraints if rule.operator in OPERATORS),
    )


def _terms(request: WorkloadRequest) -> Terms:
    if KIND_OF[request.sharing] is not Kind.SHARE:
        return Terms()
    size = max(request.declared_peak_memory_bytes or 0, request.reserved_memory_bytes or 0)
    return Terms(shared=True, size_bytes=size, limit_bytes=request.hard_memory_limit_bytes)


def _rule(rule: Constraint) -> Rule:
    # Labels spell a product with dashes where the driver has spaces.
    values = tuple(value.replace(" ", "-") for value in rule.values) if rule.key == "product" else rule.values
    return rule_of(replace(rule, values=values))


# Out of the solver --------------------------------------------------------------------------------


def _devices(
    request: WorkloadRequest, answer: Answer, hosts: Mapping[str, HostView]
) -> Iterator[DeviceIdentity]:
    placed = answer.assignments[request.workload_id]
    host = hosts[placed.host]
    known = {device_key(device): device for device in host.devices()}
    for device in placed.devices:
        if device.slice_key and device.card not in answer.layouts:
            yield known[device.slice_key]
        elif device.profile is None:
            yield known[device.card]
        else:
            yield _to_be_made(known[device.card], device.profile, host.model())


def _to_be_made(card: DeviceIdentity, profile: str, model: CardModel | None) -> DeviceIdentity:
    found = None if model is None else model.profile(profile)
    usable = None if found is None else found.usable_bytes
    return DeviceIdentity(card.node, card.ordinal, None, None, card.product, usable, profile)


def resources_of(devices: Sequence[DeviceIdentity], hosts: Mapping[str, HostView]) -> dict[str, int]:
    """Returns what the pod of a workload asks for: resource → how many."""
    found: dict[str, int] = {}
    for device in devices:
        resource = hosts[device.node].resource(device.mig_profile)
        found[resource] = found.get(resource, 0) + 1
    return found
