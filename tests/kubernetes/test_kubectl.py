"""The fake API server as `kubectl` sees it: a second client, which shares no code with the first.

Where kubectl is not installed nothing of this is collected, as the header of the run says; in continuous
integration it is collected all the same, and fails.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dra.kinds import KINDS
from videoflow.deploy.allocation_dra import DraSettings, Rendering, render
from videoflow.deploy.allocation_dra import rbac_manifests as rbac_of_claims
from videoflow.deploy.allocation_kubernetes import KubernetesSettings, Strategy, rbac_manifests
from videoflow.testing.kubernetes import FakeApiServer, FakeCluster, Object

BINARY = shutil.which("kubectl")


class Kubectl:
    """`kubectl` against one server."""

    def __init__(self, server: FakeApiServer, folder: Path) -> None:
        config = folder / "kubeconfig"
        config.write_text(server.kubeconfig("vf"))
        self._environment = {"KUBECONFIG": str(config), "HOME": str(folder), "PATH": os.environ["PATH"]}

    def __call__(self, *arguments: str, text: str = "", fails: bool = False) -> str:
        assert BINARY is not None, "kubectl is not installed: apt-get install kubernetes-client"
        done = subprocess.run(
            [BINARY, *arguments],
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.add({"kind": "Node", "metadata": {"name": "a", "labels": {"zone": "1"}}, "spec": {}})
    return cluster


@pytest.fixture
def kubectl(cluster: FakeCluster, tmp_path: Path) -> Iterator[Kubectl]:
    with FakeApiServer(cluster) as server:
        yield Kubectl(server, tmp_path)


def manifest(**data: str) -> str:
    found: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    return json.dumps(found)


def test_it_reads_labels_and_deletes(kubectl: Kubectl, cluster: FakeCluster) -> None:
    assert "node/a" in kubectl("get", "nodes", "-l", "zone in (1, 2)", "-o", "name")
    assert kubectl("get", "nodes", "-l", "zone!=1", "-o", "name") == ""
    kubectl("label", "node", "a", "nvidia.com/mig.config=all-1g.10gb")
    assert (cluster.find("nodes", "a") or {})["metadata"]["labels"]["nvidia.com/mig.config"] == "all-1g.10gb"
    kubectl("create", "-f", "-", "--validate=false", text=manifest(a="1"))
    kubectl("delete", "configmap", "c", "--wait=false")
    assert cluster.find("configmaps", "c", "vf") is None


def test_its_patch_fails_where_a_test_does(kubectl: Kubectl, cluster: FakeCluster) -> None:
    test = {"op": "test", "path": "/metadata/labels/zone", "value": "2"}
    add = {"op": "add", "path": "/metadata/labels/owner", "value": "me"}
    said = kubectl("patch", "node", "a", "--type=json", "-p", json.dumps([test, add]), fails=True)
    assert "testing value /metadata/labels/zone failed" in said
    kubectl("patch", "node", "a", "--type=json", "-p", json.dumps([{**test, "value": "1"}, add]))
    assert (cluster.find("nodes", "a") or {})["metadata"]["labels"]["owner"] == "me"


def test_its_server_side_apply_meets_the_owner_of_a_field(kubectl: Kubectl, cluster: FakeCluster) -> None:
    apply = ("apply", "--server-side", "--validate=false", "-f", "-")
    kubectl(*apply, "--field-manager=one", text=manifest(a="1"))
    said = kubectl(*apply, "--field-manager=two", text=manifest(a="2"), fails=True)
    assert 'conflict with "one": .data.a' in said
    kubectl(*apply, "--field-manager=two", "--force-conflicts", text=manifest(a="2"))
    assert (cluster.find("configmaps", "c", "vf") or {})["data"] == {"a": "2"}


def test_it_accepts_every_manifest_that_is_rendered(kubectl: Kubectl, cluster: FakeCluster) -> None:
    strategies = frozenset({Strategy.WHOLE, Strategy.MANAGED_MIG})
    manifests = rbac_manifests(KubernetesSettings(process="p", strategies=strategies))
    listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    apply = ("apply", "--server-side", "--validate=false", "-f", "-")
    said = kubectl(*apply, text=json.dumps(listed))
    assert said.count("serverside-applied") == len(manifests)
    # Again, as an operator does: nothing changes.
    version = cluster.store.version
    kubectl(*apply, text=json.dumps(listed))
    assert cluster.store.version == version


def test_it_accepts_every_claim_that_is_rendered(kubectl: Kubectl, cluster: FakeCluster) -> None:
    items = [*rbac_of_claims(DraSettings())]
    for kind, (request, environment) in KINDS.items():
        found = render([replace(request, workload_id=kind)], DraSettings(), environment)
        assert isinstance(found, Rendering), kind
        items += map(dict, found.manifests())
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    said = kubectl("apply", "--server-side", "--validate=false", "-f", "-", text=json.dumps(listed))
    assert said.count("serverside-applied") == len(items)
    made = cluster.every("resourceclaims") + cluster.every("resourceclaimtemplates")
    assert len(made) == len({one["metadata"]["name"] for one in items if "Claim" in one["kind"]})
    told = kubectl("get", "resourceclaimtemplates", "-n", "videoflow", "-o", "json")
    specs = [one["spec"] for one in items if one["kind"] == "ResourceClaimTemplate"]
    assert all(one["spec"] in specs for one in json.loads(told)["items"])
