"""What the driver and the server, with the gates that are on, guarantee; and what is refused by name."""

from collections.abc import Iterator, Sequence

from videoflow.backends.allocation import (
    Constraint,
    Feature,
    Sharing,
    WorkloadRequest,
    allocation_rejections,
)
from videoflow.backends.capabilities import AllocationCapabilities, Enforcement
from videoflow.deploy.allocation_dra._cel import selector
from videoflow.deploy.allocation_dra._gates import FEATURE_GATES, DriverGate, Gate, Gates
from videoflow.deploy.allocation_dra._settings import GROUP, DraSettings

SAME, DISTINCT, HOST = "Same", "Distinct", "host"
SHARED = frozenset({Sharing.COOPERATIVE, Sharing.ACCOUNTING_ONLY})


def capabilities_of(gates: Gates) -> AllocationCapabilities:
    """Returns what a cluster with these gates guarantees."""
    consumable = gates.has(*FEATURE_GATES[Feature.CONSUMABLE_CAPACITY])
    capped = gates.has(DriverGate.MPS)
    shares = consumable or capped or gates.has(DriverGate.TIME_SLICING)
    if consumable:
        enforcement = Enforcement.ACCOUNTING
    elif capped:
        enforcement = Enforcement.RUNTIME_CAP
    else:
        enforcement = Enforcement.NONE if shares else Enforcement.HARDWARE
    return AllocationCapabilities(
        adapter="dra",
        authority="kubernetes",
        exclusive_device=True,
        isolated_mig=True,
        cooperative_sharing=shares,
        memory_enforcement=enforcement,
        multi_device=True,
        topology_verification=False,
        elastic=False,
        admission_boundary="cluster",
        version_matrix=gates.version_matrix(),
    )


def group_of(request: WorkloadRequest) -> str:
    """Returns the group whose claim a workload shares, or empty: it has its own."""
    return next((rule.values[0] for rule in request.constraints if rule.key == GROUP and rule.values), "")


def is_placing(rule: Constraint) -> bool:
    """Returns whether a constraint is about one device each, and neither group, host nor a set of devices."""
    return rule.key not in (GROUP, HOST) and rule.operator not in (SAME, DISTINCT)


def refusals(requests: Sequence[WorkloadRequest], settings: DraSettings, gates: Gates) -> list[str]:
    """Returns why these requests cannot be rendered at all, each by its name; empty: they can."""
    found = allocation_rejections(requests, capabilities_of(gates))
    names = [request.workload_id for request in requests]
    found += [f"{name} is asked for twice" for name in sorted({n for n in names if names.count(n) > 1})]
    for request in requests:
        found += [f"{request.workload_id} {why}" for lacks, why in _lacks(request, gates) if lacks]
        found += [f"{request.workload_id} {why}" for why in _unknown(request, settings, gates)]
    return [*found, *_groups(requests)]


def _lacks(request: WorkloadRequest, gates: Gates) -> list[tuple[bool, str]]:
    shares, grouped = request.sharing in SHARED, bool(group_of(request))
    mps = Feature.MPS in request.features
    sharer = DriverGate.MPS if mps else DriverGate.TIME_SLICING
    consumable = FEATURE_GATES[Feature.CONSUMABLE_CAPACITY]
    elsewhere = "the scheduler judges that, by what its pod asks for"
    return [
        (request.device_count < 1, f"asks for {request.device_count} devices, which are none"),
        (
            shares and not grouped and not gates.has(*consumable),
            f"shares a device with whoever comes, which needs {gates.lacking(*consumable)};"
            f" or declare who shares it by a constraint {GROUP} In (name,)",
        ),
        (
            shares and grouped and not gates.has(sharer),
            f"shares a claim, which needs {gates.lacking(sharer)}",
        ),
        (
            shares and request.declared_peak_memory_bytes is None,
            "shares a device and declares no peak of memory",
        ),
        (shares and request.device_count > 1, "needs several shares: they may be of one card"),
        (grouped and not shares, f"declares the group {group_of(request)}, but shares nothing"),
        (
            request.hard_memory_limit_bytes is not None and not (shares and grouped and mps),
            "needs hard_memory_limit_bytes: only MPS in a declared group stops a process at a limit",
        ),
        (request.host_cpu is not None, f"needs host_cpu: {elsewhere}"),
        (request.host_memory is not None, f"needs host_memory: {elsewhere}"),
    ]


def _unknown(request: WorkloadRequest, settings: DraSettings, gates: Gates) -> Iterator[str]:
    for rule in request.constraints:
        if not rule.hard:
            continue
        if rule.key == GROUP:
            if rule.operator != "In" or len(rule.values) != 1:
                yield f"needs {rule.key} {rule.operator}: a group is declared by In and one name"
        elif rule.key == HOST:
            if rule.operator not in ("In", "NotIn") or not rule.values:
                yield f"needs {rule.key} {rule.operator}: nobody here can check that"
        elif rule.operator in (SAME, DISTINCT):
            if attribute_name(settings.driver, rule.key) is None:
                yield f"needs {rule.key} {rule.operator}: the driver publishes no such attribute"
            elif rule.operator == DISTINCT and not gates.has(Gate.CONSUMABLE_CAPACITY):
                yield f"needs {rule.key} {rule.operator}: {gates.lacking(Gate.CONSUMABLE_CAPACITY)}"
        elif selector(settings.driver, rule) is None:
            yield f"needs {rule.key} {rule.operator}: nobody here can check that"


def attribute_name(driver: str, key: str) -> str | None:
    """Returns the attribute behind the key of a constraint, with its domain; None: there is none."""
    there = selector(driver, Constraint(key, "Exists", ()))
    if there is None:
        return None
    name, _, rest = there.partition(" in device.attributes[")
    return f"{rest.strip(']').strip(chr(34))}/{name.strip(chr(34))}"


def _groups(requests: Sequence[WorkloadRequest]) -> Iterator[str]:
    first: dict[str, WorkloadRequest] = {}
    for request in requests:
        group = group_of(request)
        if group and _shape(first.setdefault(group, request)) != _shape(request):
            yield f"{request.workload_id} shares a claim with {first[group].workload_id} and asks otherwise"


def _shape(request: WorkloadRequest) -> tuple[object, ...]:
    memory = (request.minimum_usable_memory_bytes, request.hard_memory_limit_bytes)
    return request.sharing, request.device_count, request.features, request.constraints, memory
