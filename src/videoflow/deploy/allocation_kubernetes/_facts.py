"""Facts of a cluster that gated features rest on, read from what installs the GPU software."""

from collections.abc import Mapping

from videoflow.adapters.kubernetes import CLUSTER_POLICIES, NODES, KubernetesApi
from videoflow.backends.outcomes import Observation, known, unknown
from videoflow.clock import Clock, RealClock
from videoflow.deploy.allocation_kubernetes._hosts import labels_of
from videoflow.deploy.allocation_kubernetes._session import Session
from videoflow.deploy.allocation_kubernetes._settings import (
    MIG_MANAGER_FACT,
    MPS_FACT,
    KubernetesSettings,
    Strategy,
)
from videoflow.deploy.kubernetes_records import Unanswered

_MPS_CAPABLE = "nvidia.com/mps.capable"
UNTOLD = "unknown version"


def probed_facts(
    api: KubernetesApi, settings: KubernetesSettings, clock: Clock | None = None
) -> Observation[Mapping[str, str]]:
    """Returns `mig-manager` and `mps`, each with the version of what provides it, where it is there.

    What manages geometry is asked for only where a strategy in use needs the right to. A manager that is
    switched off, or that has no configuration, is none. Where anything cannot be read, all is Unknown: a fact
    that is missing takes a feature away, and must not do so for want of an answer.
    """
    session = Session(api, settings, clock or RealClock())
    try:
        asks = settings.uses(Strategy.STATIC_MIG, Strategy.MANAGED_MIG)
        policy = session.found(CLUSTER_POLICIES, settings.cluster_policy) if asks else None
        nodes = session.listed(NODES)
    except Unanswered as error:
        return unknown(error.reason, session.now(), str(error))
    spec = (policy or {}).get("spec") or {}
    manager, plugin = spec.get("migManager") or {}, spec.get("devicePlugin") or {}
    facts = {}
    if manager.get("enabled", True) and (manager.get("config") or {}).get("name"):
        facts[MIG_MANAGER_FACT] = str(manager.get("version") or UNTOLD)
    if any(labels_of(node).get(_MPS_CAPABLE) == "true" for node in nodes):
        facts[MPS_FACT] = str(plugin.get("version") or UNTOLD)
    return known(facts, session.now())
