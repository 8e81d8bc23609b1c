"""The public faces of what Kubernetes needs: frozen lists, each name documented."""

import inspect
from types import ModuleType

import pytest

from videoflow.adapters import kubernetes as adapter
from videoflow.deploy import allocation_kubernetes
from videoflow.testing import kubernetes as fake

FACES = {
    adapter: """
        ACCESS_REVIEWS CLUSTER_POLICIES CONFIG_MAPS Change ClientSettings KubernetesApi LightkubeApi Listing
        NODES Object PODS RESOURCE_CLAIMS RESOURCE_SLICES Refusal Refused ResourceKind read_yaml
    """,
    allocation_kubernetes: """
        BARRIERS CLAIM FENCE GRANT_VARIABLE KIND KubernetesAllocation KubernetesPlan KubernetesSettings
        KubernetesSnapshot MANAGED OWNER Right Strategy TAINT is_allowed missing_rights probed_facts
        rbac_manifests rights
    """,
    fake: """
        ClaimTemplates Decide DevicePlugin DirectApi Ending FakeApiServer FakeCluster FakeGpu FakeGpuHost
        KINDS Kind Matches MigManager Object Request Response Scheduler used_on
    """,
}


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_the_names_are_these_and_each_is_documented(face: ModuleType) -> None:
    assert sorted(face.__all__) == sorted(FACES[face].split())
    for name in face.__all__:
        found = getattr(face, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__doc__, name
