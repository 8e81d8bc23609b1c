"""Opens the allocator of a cluster as a launcher uses it: rights first, then facts."""

from videoflow.adapters.kubernetes import KubernetesApi
from videoflow.clock import Clock
from videoflow.deploy.allocation_kubernetes._access import rights
from videoflow.deploy.allocation_kubernetes._backend import KubernetesAllocation
from videoflow.deploy.allocation_kubernetes._facts import probed_facts
from videoflow.deploy.allocation_kubernetes._settings import KubernetesSettings
from videoflow.deploy.kubernetes_rights import require, require_known


def open_kubernetes(
    api: KubernetesApi, settings: KubernetesSettings, clock: Clock | None = None
) -> KubernetesAllocation:
    """Returns the allocator of a cluster, with what was probed of it.

    Raises:
        AcceleratorFault: A right is missing that a strategy in use needs.
        UnobservableState: The rights or the facts cannot be read.
    """
    require(api, rights(settings), clock)
    facts = require_known(probed_facts(api, settings, clock), "what manages the GPUs of the cluster")
    return KubernetesAllocation(api, settings, environment=facts, clock=clock)
