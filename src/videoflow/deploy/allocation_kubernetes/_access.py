"""The rights that an allocator needs, by strategy: as manifests, and asked for one by one beforehand."""

from videoflow.adapters.kubernetes import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    NODES,
    PODS,
    RESOURCE_SLICES,
    KubernetesApi,
    Object,
)
from videoflow.backends.outcomes import Observation
from videoflow.clock import Clock
from videoflow.deploy.allocation_kubernetes._settings import KubernetesSettings, Strategy
from videoflow.deploy.kubernetes_rights import Right, manifests_of, missing_of


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
    return manifests_of(rights(settings), settings.namespace, service_account, "videoflow-allocation")


def missing_rights(
    api: KubernetesApi, settings: KubernetesSettings, clock: Clock | None = None
) -> Observation[tuple[str, ...]]:
    """Asks the server for each right; returns a sentence for each missing one, Unknown where it is silent."""
    return missing_of(api, rights(settings), clock)
