"""The public faces of what Kubernetes needs: frozen lists, each name documented."""

import inspect
from types import ModuleType

import pytest

from videoflow.adapters import kubernetes as adapter
from videoflow.deploy import allocation_dra, allocation_kubernetes, kubernetes_records, kubernetes_rights
from videoflow.testing import kubernetes as fake
from videoflow.testing.kubernetes import expressions

FACES = {
    adapter: """
        ACCESS_REVIEWS CLUSTER_POLICIES CONFIG_MAPS Change ClientSettings KubernetesApi LightkubeApi Listing
        NODES Object PODS RESOURCE_CLAIMS RESOURCE_SLICES Refusal Refused ResourceKind read_yaml
    """,
    allocation_kubernetes: """
        BARRIERS CLAIM FENCE GRANT_VARIABLE KIND KubernetesAllocation KubernetesPlan KubernetesSettings
        KubernetesSnapshot MANAGED OWNER Right Strategy TAINT is_allowed missing_rights open_kubernetes
        probed_facts rbac_manifests rights
    """,
    kubernetes_rights: "Right is_allowed manifests_of missing_of require require_known",
    kubernetes_records: """
        ConfigMapJournal JournalRecord MOST_TRIES RECORD Reads Unanswered config_map version_of
    """,
    allocation_dra: """
        BARRIERS CLAIM DISTINCT DraAllocation DraPlan DraSettings DraSnapshot
        DriverGate GRANT_VARIABLE GROUP Gate GateMatrix Gates KIND PCIE_ROOT
        POD_CLAIM Rendering SAME gate_matrix open_dra
        probed_facts rbac_manifests render rights
    """,
    expressions: """ExpressionInvalid Expressions read_quantity""",
    fake: """
        ClaimTemplates Claims Decide DevicePlugin DirectApi Ending FakeApiServer FakeCluster FakeGpu
        FakeGpuHost KINDS Kubelet Orphans Kind Matches MigManager Object Request Response Scheduler used_on
    """,
}


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_the_names_are_these_and_each_is_documented(face: ModuleType) -> None:
    assert sorted(face.__all__) == sorted(FACES[face].split())
    for name in face.__all__:
        found = getattr(face, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__doc__, name
