"""The rights that an allocator needs, by strategy: as manifests, and asked for one by one beforehand."""

from dataclasses import dataclass
from typing import Any

from videoflow.adapters.kubernetes import (
    ACCESS_REVIEWS,
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    NODES,
    PODS,
    RESOURCE_SLICES,
    KubernetesApi,
    Object,
    Refused,
    ResourceKind,
)
from videoflow.backends.outcomes import Known, Observation, known, unknown
from videoflow.clock import Clock, RealClock
from videoflow.deploy.allocation_kubernetes._settings import KubernetesSettings, Strategy

_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Right:
    """One right.

    Attributes:
        kind: To what.
        verb: To do what.
        namespace: Where; empty: in the whole cluster.
        why: What it is needed for.
    """

    kind: ResourceKind
    verb: str
    namespace: str
    why: str


def rights(settings: KubernetesSettings) -> tuple[Right, ...]:
    """Returns exactly the rights that the strategies in use need."""
    own, mig = settings.namespace, settings.mig_namespace
    found = [
        Right(NODES, "list", "", "which hosts there are"),
        Right(NODES, "get", "", "whether a host is still ours"),
        Right(PODS, "list", "", "who uses devices"),
        Right(RESOURCE_SLICES, "list", "", "which hosts belong to another allocator"),
        *(
            Right(CONFIG_MAPS, verb, own, "claims and the ledgers of hosts")
            for verb in ("list", "get", "create", "update", "delete")
        ),
    ]
    if settings.uses(Strategy.STATIC_MIG, Strategy.MANAGED_MIG):
        found.append(Right(CLUSTER_POLICIES, "get", "", "where the layouts of the MIG manager are"))
        found.append(Right(CONFIG_MAPS, "get", mig, "what cards are cut into"))
    if settings.uses(Strategy.MANAGED_MIG):
        found.append(Right(CONFIG_MAPS, "update", mig, "to ask for a layout"))
        found.append(Right(NODES, "patch", "", "to stamp and taint a host, and ask for a layout"))
    return tuple(found)


def rbac_manifests(settings: KubernetesSettings, service_account: str = "videoflow") -> tuple[Object, ...]:
    """Returns a service account, its roles and their bindings: the rights, and no more.

    Args:
        settings: Whose strategies and namespaces count.
        service_account: Its name, in the namespace of the settings.
    """
    by_place: dict[str, list[Right]] = {}
    for right in rights(settings):
        by_place.setdefault(right.namespace, []).append(right)
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": settings.namespace}
    manifests: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": service_account, "namespace": settings.namespace},
        }
    ]
    for namespace, listed in sorted(by_place.items()):
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": "videoflow-allocation", **({"namespace": namespace} if namespace else {})}
        manifests.append(
            {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": _rules(listed)}
        )
        manifests.append(
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
                "subjects": [account],
            }
        )
    return tuple(manifests)


def missing_rights(
    api: KubernetesApi, settings: KubernetesSettings, clock: Clock | None = None
) -> Observation[tuple[str, ...]]:
    """Asks the server for each right; returns a sentence for each missing one, Unknown where it is silent.

    It is to be asked before a run starts, so that nothing is begun that cannot be given back.
    """
    now = (clock or RealClock()).monotonic()
    found = []
    for right in rights(settings):
        attributes: dict[str, Any] = {
            "verb": right.verb,
            "group": right.kind.group,
            "resource": right.kind.plural,
            **({"namespace": right.namespace} if right.namespace else {}),
        }
        answer = api.create(
            ACCESS_REVIEWS,
            {
                "apiVersion": ACCESS_REVIEWS.api_version,
                "kind": ACCESS_REVIEWS.kind,
                "metadata": {},
                "spec": {"resourceAttributes": attributes},
            },
        )
        if isinstance(answer, Refused):
            return unknown(answer.reason, now, f"rights cannot be asked for: {answer.said}")
        if not (answer.get("status") or {}).get("allowed"):
            where = f" in {right.namespace}" if right.namespace else ""
            found.append(f"may not {right.verb} {right.kind.plural}{where}: needed for {right.why}")
    return known(tuple(found), now)


def is_allowed(asked: Observation[tuple[str, ...]]) -> bool:
    """Returns whether every right was asked for and is there."""
    return isinstance(asked, Known) and not asked.value


def _rules(listed: list[Right]) -> list[Object]:
    verbs: dict[ResourceKind, list[str]] = {}
    for right in listed:
        verbs.setdefault(right.kind, []).append(right.verb)
    return [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": sorted(found)}
        for kind, found in verbs.items()
    ]
