"""Requests as `resource.k8s.io/v1` claims and templates. Pure: nothing here reads a cluster.

Every replica has a claim of its own, made from its own template; only a declared group shares one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from videoflow.backends.allocation import (
    Constraint,
    Feature,
    Infeasible,
    Sharing,
    WorkloadBindings,
    WorkloadRequest,
)
from videoflow.backends.allocation.planning import defaults_of
from videoflow.deploy.allocation_dra._capabilities import (
    DISTINCT,
    HOST,
    SAME,
    SHARED,
    attribute_name,
    group_of,
    is_placing,
    refusals,
)
from videoflow.deploy.allocation_dra._cel import (
    MIB,
    PROFILE_KEY,
    memory_at_least,
    quantity,
    selector,
    text_is,
)
from videoflow.deploy.allocation_dra._gates import Gate, Gates
from videoflow.deploy.allocation_dra._settings import (
    CLAIM,
    POD_CLAIM,
    REQUEST,
    WORKLOAD,
    DraSettings,
)
from videoflow.ids import hash_id
from videoflow.placement import load_catalogue

API_VERSION = "resource.k8s.io/v1"
# The server takes no more alternatives of one request.
MOST_ALTERNATIVES = 8
Spec = dict[str, Any]


@dataclass(frozen=True)
class Rendering:
    """Rendered requests.

    Attributes:
        bindings: Workload → what its pod and container need, and the manifests to be created beside them.
        notes: Preferences that a claim cannot tell, and figures that nobody gave.
    """

    bindings: Mapping[str, WorkloadBindings]
    notes: tuple[str, ...]

    def manifests(self) -> tuple[Mapping[str, Any], ...]:
        """Returns every manifest once, also one that several workloads share."""
        found = {
            (one["kind"], one["metadata"]["name"]): one
            for bound in self.bindings.values()
            for one in bound.claim_manifests
        }
        return tuple(found.values())


def render(
    requests: Sequence[WorkloadRequest], settings: DraSettings, environment: Mapping[str, str]
) -> Rendering | Infeasible:
    """Returns claims for all requests, or why there are none, each by name.

    Args:
        requests: One for each replica.
        settings: Names.
        environment: Facts of the cluster, as `Gates.of` reads them.
    """
    gates = Gates.of(environment)
    if reasons := refusals(requests, settings, gates):
        return Infeasible(tuple(reasons))
    bindings, notes = {}, list[str]()
    for request in requests:
        spec, said = claim_spec(request, settings, gates)
        notes += [*said, *defaults_of(request)]
        bindings[request.workload_id] = _bound(request, spec, settings)
    return Rendering(bindings, tuple(notes))


def claim_spec(
    request: WorkloadRequest, settings: DraSettings, gates: Gates, pinned: Sequence[str] = ()
) -> tuple[Spec, list[str]]:
    """Returns the `spec` of the claim of a request that is not refused, and what it cannot tell.

    Args:
        request: What is asked for.
        settings: Names.
        gates: What may be used.
        pinned: Expressions that name the devices of a plan, which leaves nothing to be preferred.
    """
    hard, soft = _placing(request, settings, hard=True), _placing(request, settings, hard=False)
    notes = [
        f"{request.workload_id} prefers {rule.key} {rule.operator}: a claim cannot prefer that"
        for rule in request.constraints
        if not rule.hard and (not is_placing(rule) or selector(settings.driver, rule) is None)
        if rule.key != HOST
    ]
    base = [*_needs(request, settings, gates), *hard, *pinned]
    choices = [[*base, *one] for one in _profiles(request, settings, most=3 if soft else 7, pinned=pinned)]
    if soft and not pinned:
        choices = [[*one, *soft] for one in choices] + choices
    listed = gates.has(Gate.PRIORITIZED_LIST)
    if len(choices) > 1 and not listed:
        notes.append(
            f"{request.workload_id}: {gates.lacking(Gate.PRIORITIZED_LIST)}, so nothing is preferred"
        )
        choices = choices[-1:]
    asked = [_exactly(request, expressions, settings) for expressions in choices[:MOST_ALTERNATIVES]]
    wanted: Spec = {"name": REQUEST}
    if len(asked) == 1:
        wanted["exactly"] = asked[0]
    else:
        wanted["firstAvailable"] = [{"name": f"choice-{n}", **one} for n, one in enumerate(asked)]
    devices: Spec = {"requests": [wanted]}
    if constraints := _constraints(request, settings):
        devices["constraints"] = constraints
    if config := _config(request, settings):
        devices["config"] = config
    return {"devices": devices}, notes


# Parts of a claim -----------------------------------------------------------------------------------


def _placing(request: WorkloadRequest, settings: DraSettings, *, hard: bool) -> list[str]:
    rules = [rule for rule in request.constraints if rule.hard is hard and is_placing(rule)]
    found = [selector(settings.driver, rule) for rule in rules]
    return [expression for expression in found if expression is not None]


def _needs(request: WorkloadRequest, settings: DraSettings, gates: Gates) -> list[str]:
    """Returns what every device of a request fulfils; a device that is to be had alone is given out once."""
    found = []
    figures = [request.minimum_usable_memory_bytes, request.reserved_memory_bytes]
    if request.sharing in SHARED:
        figures.append(request.declared_peak_memory_bytes)
    needed = max((figure for figure in figures if figure is not None), default=0)
    if needed:
        found.append(memory_at_least(settings.driver, needed))
    if gates.has(Gate.CONSUMABLE_CAPACITY):
        several = request.sharing in SHARED and not group_of(request)
        found.append(f"{'' if several else '!'}device.allowMultipleAllocations")
    return found


def _profiles(
    request: WorkloadRequest, settings: DraSettings, *, most: int, pinned: Sequence[str]
) -> list[list[str]]:
    """Returns alternatives, the narrowest slices first, so that no whole card's slice serves a small need.

    A profile's label is no size: the memory that each device publishes still decides, beside its profile.
    """
    needed = request.minimum_usable_memory_bytes
    named = any(rule.key == PROFILE_KEY and rule.hard for rule in request.constraints)
    if request.sharing is not Sharing.ISOLATED_MIG or needed is None or named or pinned:
        return [[]]
    fitting = sorted(
        {
            (found.usable_bytes, found.compute, found.name)
            for card in load_catalogue().cards
            for found in card.profiles
            if found.usable_bytes >= needed and not found.media
        }
    )
    names = list(dict.fromkeys(name for _, _, name in fitting))[:most]
    return [*([text_is(settings.driver, "profile", (name,))] for name in names), []]


def _exactly(request: WorkloadRequest, expressions: Sequence[str], settings: DraSettings) -> Spec:
    is_slice = request.sharing is Sharing.ISOLATED_MIG
    asked: Spec = {
        "deviceClassName": settings.mig_class if is_slice else settings.gpu_class,
        "allocationMode": "ExactCount",
        "count": request.device_count,
    }
    if expressions:
        asked["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    if request.sharing in SHARED and not group_of(request):
        asked["capacity"] = {"requests": {"memory": quantity(share_bytes(request))}}
    return asked


def share_bytes(request: WorkloadRequest) -> int:
    """Returns what a sharer takes of a device: its peak, in the steps of 1 MiB that the driver publishes."""
    needed = max(request.declared_peak_memory_bytes or 0, request.reserved_memory_bytes or 0, 1)
    return -(-needed // MIB) * MIB


def _constraints(request: WorkloadRequest, settings: DraSettings) -> list[Spec]:
    names = {SAME: "matchAttribute", DISTINCT: "distinctAttribute"}
    return [
        {"requests": [REQUEST], names[rule.operator]: attribute_name(settings.driver, rule.key)}
        for rule in request.constraints
        if rule.hard and rule.operator in names
    ]


def _config(request: WorkloadRequest, settings: DraSettings) -> list[Spec]:
    if request.sharing not in SHARED or not group_of(request):
        return []
    sharing: Spec = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Default"}}
    if Feature.MPS in request.features:
        sharing = {"strategy": "MPS"}
        if request.hard_memory_limit_bytes is not None:
            limit = f"{request.hard_memory_limit_bytes // MIB}Mi"
            sharing["mpsConfig"] = {"defaultPinnedDeviceMemoryLimit": limit}
    parameters = {"apiVersion": settings.config_version, "kind": "GpuConfig", "sharing": sharing}
    return [{"requests": [REQUEST], "opaque": {"driver": settings.driver, "parameters": parameters}}]


# Around a claim -------------------------------------------------------------------------------------


def _bound(request: WorkloadRequest, spec: Spec, settings: DraSettings) -> WorkloadBindings:
    group = group_of(request)
    name = f"videoflow-{hash_id(request.flow_id, request.run_id, group or request.workload_id)[:20]}"
    labels = {CLAIM: name} if group else {CLAIM: name, WORKLOAD: hash_id(request.workload_id)}
    labels = {"app.kubernetes.io/managed-by": "videoflow", **labels}
    metadata = {"name": name, "namespace": settings.namespace, "labels": labels}
    if group:
        kind, made, by = "ResourceClaim", spec, "resourceClaimName"
    else:
        kind, by = "ResourceClaimTemplate", "resourceClaimTemplateName"
        made = {"metadata": {"labels": labels}, "spec": spec}
    manifest: Spec = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": made}
    entry = {"name": POD_CLAIM, by: name}
    affinity = affinity_of(request.constraints)
    pod = {"resourceClaims": [entry], **({"affinity": {"nodeAffinity": affinity}} if affinity else {})}
    return WorkloadBindings(
        pod_fragment={"metadata": {"labels": {CLAIM: name}}, "spec": pod},
        container_fragment={"resources": {"claims": [{"name": POD_CLAIM}]}},
        claim_manifests=(manifest,),
        node_constraints={"nodeAffinity": affinity} if affinity else {},
    )


def affinity_of(constraints: Sequence[Constraint]) -> Spec:
    """Returns the constraints on the host as node affinity, which no claim could tell."""
    found: Spec = {}
    hosts = [rule for rule in constraints if rule.key == HOST and rule.values]
    for rule in hosts:
        fields = [{"key": "metadata.name", "operator": rule.operator, "values": [v]} for v in rule.values]
        # A field takes one value: of several terms one will do, and of one term all fields must.
        apart = [{"matchFields": [field]} for field in fields]
        terms = [{"matchFields": fields}] if rule.operator == "NotIn" else apart
        if not rule.hard:
            preferred = [{"weight": 1, "preference": term} for term in terms]
            found.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).extend(preferred)
            continue
        before = found.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
        joined = [
            {"matchFields": [*old["matchFields"], *new["matchFields"]]}
            for old in before or [{"matchFields": []}]
            for new in terms
        ]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": joined}
    return found
