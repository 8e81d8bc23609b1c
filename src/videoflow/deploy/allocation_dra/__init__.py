"""Who may use which GPUs of a cluster, where a driver of dynamic resource allocation gives them out.

Used by the Kubernetes engine and by platform engineers. Requests become claims and templates of
`resource.k8s.io/v1` with selectors on what the driver publishes. It refuses by name what the gates that are
on do not provide, and it takes no label of a MIG profile for a size.
"""

from videoflow.deploy.allocation_dra._access import open_dra, probed_facts, rbac_manifests, rights
from videoflow.deploy.allocation_dra._backend import DraAllocation
from videoflow.deploy.allocation_dra._capabilities import DISTINCT, SAME
from videoflow.deploy.allocation_dra._gates import (
    DriverGate,
    Gate,
    GateMatrix,
    Gates,
    gate_matrix,
)
from videoflow.deploy.allocation_dra._inventory import DraSnapshot
from videoflow.deploy.allocation_dra._operation import BARRIERS
from videoflow.deploy.allocation_dra._planning import DraPlan
from videoflow.deploy.allocation_dra._rendering import Rendering, render
from videoflow.deploy.allocation_dra._settings import (
    CLAIM,
    GROUP,
    KIND,
    PCIE_ROOT,
    POD_CLAIM,
    DraSettings,
)
from videoflow.environment import GRANT_VARIABLE

__all__ = [
    "BARRIERS",
    "CLAIM",
    "DISTINCT",
    "GRANT_VARIABLE",
    "GROUP",
    "KIND",
    "PCIE_ROOT",
    "POD_CLAIM",
    "SAME",
    "DraAllocation",
    "DraPlan",
    "DraSettings",
    "DraSnapshot",
    "DriverGate",
    "Gate",
    "GateMatrix",
    "Gates",
    "Rendering",
    "gate_matrix",
    "open_dra",
    "probed_facts",
    "rbac_manifests",
    "render",
    "rights",
]
