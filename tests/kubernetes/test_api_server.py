"""The fake API server as lightkube sees it: versions, preconditions, selectors, pages, watches, faults."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from videoflow.adapters.kubernetes import (
    CONFIG_MAPS,
    NODES,
    Change,
    ClientSettings,
    LightkubeApi,
    Listing,
    Refusal,
    Refused,
)
from videoflow.backends.outcomes import UnknownReason
from videoflow.errors import ContractBroken
from videoflow.testing.kubernetes import DirectApi, Ending, FakeApiServer, FakeCluster, Object

Api = LightkubeApi | DirectApi


def node(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}


def config_map(**data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "vf"},
        "data": data,
    }


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(node("a", zone="1"), node("b", zone="2"), node("c", zone="2", gpu="yes"))
    return cluster


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[FakeApiServer]:
    with FakeApiServer(cluster) as server:
        yield server


@pytest.fixture(params=["lightkube", "direct"])
def api(request: pytest.FixtureRequest, server: FakeApiServer, tmp_path: Path) -> Iterator[Api]:
    if request.param == "direct":
        yield DirectApi(server.cluster)
        return
    api = lightkube(server, tmp_path)
    yield api
    api.close()


def lightkube(server: FakeApiServer, tmp_path: Path, timeout_seconds: float = 5.0) -> LightkubeApi:
    path = tmp_path / "kubeconfig"
    path.write_text(server.kubeconfig())
    return LightkubeApi(ClientSettings(kubeconfig=str(path), timeout_seconds=timeout_seconds))


def good(answer: Object | Refused) -> Object:
    assert not isinstance(answer, Refused), answer
    return answer


def why(answer: object) -> Refusal:
    assert isinstance(answer, Refused), answer
    return answer.why


def test_a_write_over_another_version_is_a_conflict_and_changes_nothing(
    api: Api, cluster: FakeCluster
) -> None:
    first = good(api.create(CONFIG_MAPS, config_map(a="1")))
    assert why(api.create(CONFIG_MAPS, config_map(a="2"))) is Refusal.CONFLICT
    second = good(api.replace(CONFIG_MAPS, {**first, "data": {"a": "2"}}))
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    assert why(api.replace(CONFIG_MAPS, {**first, "data": {"a": "3"}})) is Refusal.CONFLICT
    assert good(api.get(CONFIG_MAPS, "c", "vf"))["data"] == {"a": "2"}
    assert why(api.get(CONFIG_MAPS, "d", "vf")) is Refusal.MISSING


def test_a_json_patch_is_applied_whole_or_not_at_all(api: Api, cluster: FakeCluster) -> None:
    label = {"op": "add", "path": "/metadata/labels/owner", "value": "me"}
    failing = {"op": "test", "path": "/metadata/labels/zone", "value": "9"}
    assert why(api.patch(NODES, "a", [label, failing])) is Refusal.CONFLICT
    assert "owner" not in good(api.get(NODES, "a"))["metadata"]["labels"]
    version = good(api.get(NODES, "a"))["metadata"]["resourceVersion"]
    fenced = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    taint = {"op": "add", "path": "/spec/taints", "value": [{"key": "k", "effect": "NoSchedule"}]}
    done = good(api.patch(NODES, "a", [fenced, label, taint]))
    assert (done["metadata"]["labels"]["owner"], len(done["spec"]["taints"])) == ("me", 1)
    assert why(api.patch(NODES, "a", [fenced, label])) is Refusal.CONFLICT


def test_a_deletion_looks_at_the_uid_and_the_version(api: Api) -> None:
    made = good(api.create(CONFIG_MAPS, config_map()))["metadata"]
    assert why(api.delete(CONFIG_MAPS, "c", "vf", uid="another")) is Refusal.CONFLICT
    stale = api.delete(CONFIG_MAPS, "c", "vf", uid=made["uid"], version="1")
    assert why(stale) is Refusal.CONFLICT
    assert api.delete(CONFIG_MAPS, "c", "vf", uid=made["uid"], version=made["resourceVersion"]) is None
    assert why(api.delete(CONFIG_MAPS, "c", "vf", uid=made["uid"])) is Refusal.MISSING


@pytest.mark.parametrize(
    ("labels", "fields", "names"),
    [
        ("", "", ["a", "b", "c"]),
        ("zone=2", "", ["b", "c"]),
        ("zone=2,gpu", "", ["c"]),
        ("", "metadata.name=b", ["b"]),
        ("zone=7", "", []),
    ],
)
def test_selectors(api: Api, labels: str, fields: str, names: list[str]) -> None:
    listing = api.list(NODES, labels=labels, fields=fields)
    assert isinstance(listing, Listing)
    assert [item["metadata"]["name"] for item in listing.items] == names


def test_an_applied_field_has_an_owner_and_another_may_take_it_only_by_force(api: Api) -> None:
    good(api.apply(CONFIG_MAPS, config_map(a="1", b="1"), "one"))
    assert why(api.apply(CONFIG_MAPS, config_map(a="2"), "two")) is Refusal.CONFLICT
    good(api.apply(CONFIG_MAPS, config_map(a="1"), "two"))
    # What one owner no longer wants goes away unless another does.
    left = good(api.apply(CONFIG_MAPS, config_map(), "one"))
    assert left.get("data") == {"a": "1"}
    taken = good(api.apply(CONFIG_MAPS, config_map(a="3"), "three", force=True))
    assert taken["data"] == {"a": "3"}
    assert why(api.apply(CONFIG_MAPS, config_map(a="1"), "two")) is Refusal.CONFLICT


def test_a_long_list_comes_in_pages_and_is_whole(api: Api, cluster: FakeCluster) -> None:
    cluster.add(*(node(f"n{number:03}") for number in range(600)))
    listing = api.list(NODES)
    assert isinstance(listing, Listing)
    assert len({item["metadata"]["name"] for item in listing.items}) == 603


WRITES = {
    Ending.ANSWERED: (None, True),
    Ending.LOST: (Refusal.AMBIGUOUS, True),
    Ending.UNHEARD: (Refusal.AMBIGUOUS, False),
    Ending.BROKEN: (Refusal.AMBIGUOUS, False),
    Ending.BROKEN_AFTER: (Refusal.AMBIGUOUS, True),
    Ending.BUSY: (Refusal.UNHEARD, False),
    Ending.DENIED: (Refusal.DENIED, False),
}


@pytest.mark.parametrize(("ending", "expected"), WRITES.items(), ids=map(str, WRITES))
def test_what_a_fault_does_to_a_write(
    api: Api, cluster: FakeCluster, ending: Ending, expected: tuple[Refusal | None, bool]
) -> None:
    cluster.decide = lambda request: ending
    answer = api.create(CONFIG_MAPS, config_map())
    refusal, done = expected
    assert (answer.why if isinstance(answer, Refused) else None) is refusal
    assert (cluster.find("configmaps", "c", "vf") is not None) is done


@pytest.mark.parametrize("ending", list(Ending)[1:], ids=str)
def test_no_fault_makes_a_shorter_list(
    server: FakeApiServer, cluster: FakeCluster, tmp_path: Path, ending: Ending
) -> None:
    cluster.decide = lambda request: ending
    for api in (lightkube(server, tmp_path, 0.2), DirectApi(cluster)):
        answer = api.list(NODES)
        assert isinstance(answer, Refused)
        assert answer.reason is not UnknownReason.MISSING
        if isinstance(api, LightkubeApi):
            api.close()


def test_nothing_listens(tmp_path: Path) -> None:
    with FakeApiServer(FakeCluster()) as server:
        api = lightkube(server, tmp_path)
    assert why(api.list(NODES)) is Refusal.UNHEARD
    api.close()


def test_a_watch_tells_what_changes_after_a_version(
    server: FakeApiServer, cluster: FakeCluster, tmp_path: Path
) -> None:
    api = lightkube(server, tmp_path)
    listing = api.list(NODES)
    assert isinstance(listing, Listing)
    changes = api.watch(NODES, listing.version, timeout_seconds=20)
    threading.Thread(target=cluster.add, args=(node("d"),)).start()
    first = next(changes)
    assert isinstance(first, Change)
    assert (first.type, first.value["metadata"]["name"]) == ("ADDED", "d")
    cluster.store.compact()
    cluster.add(node("e"))
    too_old = [*api.watch(NODES, "1", timeout_seconds=20)]
    assert [why(one) for one in too_old] == [Refusal.UNHEARD]
    api.close()


def test_a_write_without_a_precondition_is_refused_before_it_is_sent(
    server: FakeApiServer, cluster: FakeCluster, tmp_path: Path
) -> None:
    api = lightkube(server, tmp_path)
    before = len(cluster.requests)
    with pytest.raises(ContractBroken):
        api.patch(NODES, "a", [{"op": "add", "path": "/metadata/labels/x", "value": "1"}])
    with pytest.raises(ContractBroken):
        api.replace(NODES, node("a"))
    assert len(cluster.requests) == before
    api.close()
