"""Rights and facts of a cluster with such a driver, and the allocator that is opened with them."""

import re
from collections.abc import Mapping
from typing import Final

from videoflow.adapters.kubernetes import (
    CONFIG_MAPS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    KubernetesApi,
    Object,
)
from videoflow.backends.outcomes import Observation, known, unknown
from videoflow.clock import Clock, RealClock
from videoflow.deploy.allocation_dra._backend import DraAllocation
from videoflow.deploy.allocation_dra._gates import (
    DRIVER_FACT,
    DRIVER_GATES_FACT,
    KUBERNETES_FACT,
    DriverGate,
)
from videoflow.deploy.allocation_dra._settings import DraSettings
from videoflow.deploy.kubernetes_records import Reads, Unanswered
from videoflow.deploy.kubernetes_rights import Right, manifests_of, require, require_known

_VERSION: Final = re.compile(r"v(\d+)\.(\d+)")
UNTOLD: Final = "of unknown version"


def rights(settings: DraSettings) -> tuple[Right, ...]:
    """Returns exactly the rights that the allocator needs."""
    own = settings.namespace
    return (
        Right(RESOURCE_SLICES, "list", "", "which devices there are"),
        Right(NODES, "list", "", "which hosts belong to another allocator"),
        Right(RESOURCE_CLAIMS, "list", "", "who has devices"),
        *(Right(RESOURCE_CLAIMS, verb, own, "claims of workloads") for verb in ("get", "create", "delete")),
        *(Right(PODS, verb, own, "holders of claims") for verb in ("list", "get", "create", "delete")),
        *(
            Right(CONFIG_MAPS, verb, own, "records of claims")
            for verb in ("list", "get", "create", "update", "delete")
        ),
    )


def rbac_manifests(settings: DraSettings, service_account: str = "videoflow") -> tuple[Object, ...]:
    """Returns a service account, its roles and their bindings: the rights, and no more."""
    return manifests_of(rights(settings), settings.namespace, service_account, "videoflow-allocation-dra")


def probed_facts(
    api: KubernetesApi, settings: DraSettings, clock: Clock | None = None
) -> Observation[Mapping[str, str]]:
    """Returns the facts that can be seen: the oldest kubelet, and the gates that show in what is published.

    Slices that draw on counters are there only with DynamicMIG, and devices that are given out several times
    only with ConsumableShares. MPS and time slicing leave no trace: whoever switched them on has to say so.
    """
    session = Reads(api, settings.process, settings.namespace, clock or RealClock())
    try:
        slices, nodes = session.listed(RESOURCE_SLICES), session.listed(NODES)
    except Unanswered as error:
        return unknown(error.reason, session.now(), str(error))
    specs = [one["spec"] for one in slices if one["spec"]["driver"] == settings.driver]
    devices = [device for spec in specs for device in spec.get("devices") or ()]
    facts = {}
    told = [((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "") for node in nodes]
    versions = [tuple(map(int, found.groups())) for text in told if (found := _VERSION.match(text))]
    if versions:
        facts[KUBERNETES_FACT] = ".".join(map(str, min(versions)))
    if specs:
        facts[DRIVER_FACT] = UNTOLD
    gates = []
    if any(device.get("consumesCounters") for device in devices):
        gates.append(DriverGate.DYNAMIC_MIG)
    if any(device.get("allowMultipleAllocations") for device in devices):
        gates.append(DriverGate.CONSUMABLE_SHARES)
    if gates:
        facts[DRIVER_GATES_FACT] = ",".join(gates)
    return known(facts, session.now())


def open_dra(
    api: KubernetesApi,
    settings: DraSettings,
    *,
    said: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> DraAllocation:
    """Returns the allocator of a cluster, with what was probed of it.

    Args:
        api: The way to the API server.
        settings: Names.
        said: Facts that cannot be seen, such as gates that were switched on; they are added to, or replace,
            those that can.
        clock: For the times of observations.

    Raises:
        AcceleratorFault: A right is missing.
        UnobservableState: The rights or the facts cannot be read.
    """
    require(api, rights(settings), clock)
    facts = require_known(probed_facts(api, settings, clock), "what the driver publishes")
    return DraAllocation(api, settings, environment={**facts, **(said or {})}, clock=clock)
