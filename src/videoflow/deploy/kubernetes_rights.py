"""Rights in a cluster: rendered as manifests, and asked for one by one before anything is begun.

Used by the allocators of a cluster, each of which says what it needs, and by whoever installs them. It
refuses to take a server that does not answer for one that allows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from videoflow.adapters.kubernetes import ACCESS_REVIEWS, KubernetesApi, Object, Refused, ResourceKind
from videoflow.backends.outcomes import Known, Observation, Unknown, known, unknown
from videoflow.clock import Clock, RealClock
from videoflow.errors import AcceleratorFault, UnobservableState

T = TypeVar("T")
_RBAC = "rbac.authorization.k8s.io"
__all__ = ["Right", "is_allowed", "manifests_of", "missing_of", "require", "require_known"]


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


def manifests_of(
    rights: Sequence[Right], namespace: str, service_account: str, role: str
) -> tuple[Object, ...]:
    """Returns a service account, its roles and their bindings: the rights, and no more.

    Args:
        rights: Which.
        namespace: Of the service account.
        service_account: Its name.
        role: Name of the roles and bindings.
    """
    by_place: dict[str, list[Right]] = {}
    for right in rights:
        by_place.setdefault(right.namespace, []).append(right)
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    manifests: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": service_account, "namespace": namespace},
        }
    ]
    for place, listed in sorted(by_place.items()):
        kind = "Role" if place else "ClusterRole"
        metadata = {"name": role, **({"namespace": place} if place else {})}
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


def missing_of(
    api: KubernetesApi, rights: Sequence[Right], clock: Clock | None = None
) -> Observation[tuple[str, ...]]:
    """Asks the server for each right; returns a sentence for each missing one, Unknown where it is silent.

    It is to be asked before a run starts, so that nothing is begun that cannot be given back.
    """
    now = (clock or RealClock()).monotonic()
    found = []
    for right in rights:
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


def require(api: KubernetesApi, rights: Sequence[Right], clock: Clock | None = None) -> None:
    """Asks for every right before anything is begun, since what is begun has to be given back.

    Raises:
        AcceleratorFault: A right is missing; each is named, with what it is for.
        UnobservableState: The server does not say.
    """
    missing = require_known(missing_of(api, rights, clock), "which rights there are")
    if missing:
        raise AcceleratorFault(
            "accelerators of the cluster cannot be asked for",
            cause="; ".join(missing),
            effect="nothing was begun",
            remedy="apply the rendered roles, and bind them to the account of this process",
        )


def require_known(found: Observation[T], what: str) -> T:
    """Returns what is known; raises UnobservableState where it is not."""
    if isinstance(found, Unknown):
        raise UnobservableState(f"{what} cannot be read", cause=f"{found.reason}: {found.detail}")
    return found.value


def _rules(listed: list[Right]) -> list[Object]:
    verbs: dict[ResourceKind, list[str]] = {}
    for right in listed:
        verbs.setdefault(right.kind, []).append(right.verb)
    return [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": sorted(found)}
        for kind, found in verbs.items()
    ]
