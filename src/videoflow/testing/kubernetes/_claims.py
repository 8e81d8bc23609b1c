"""What surrounds claims of devices: templates, the end of a reservation, preparation, and orphans."""

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._devices import PROTECTION
from videoflow.testing.kubernetes._kinds import Object

OWNED = ("pods", "resourceclaims")
OWNERS = ("pods", "configmaps", "nodes")
PREPARED, READY = "PodReadyToStartContainers", "Ready"


class ClaimTemplates:
    """Makes the claims of pods from templates; those of pods that are gone are removed as orphans."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._orphans = Orphans(cluster)

    def step(self) -> bool:
        """Makes what is missing and removes what is orphaned; returns whether anything changed."""
        pods = self._cluster.every("pods")
        made = [self._make(pod, entry) for pod in pods for entry in pod["spec"].get("resourceClaims") or []]
        return self._orphans.step() or any(made)

    def _make(self, pod: Object, entry: Object) -> bool:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        made = {one["name"] for one in pod.get("status", {}).get("resourceClaimStatuses", [])}
        wanted = entry.get("resourceClaimTemplateName")
        template = self._cluster.find("resourceclaimtemplates", wanted, namespace) if wanted else None
        if template is None or entry["name"] in made:
            return False
        claim = f"{name}-{entry['name']}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        metadata = {
            **template["spec"].get("metadata", {}),
            "name": claim,
            "namespace": namespace,
            "ownerReferences": [{**owner, "controller": True}],
        }
        self._cluster.add(
            {"kind": "ResourceClaim", "metadata": metadata, "spec": template["spec"]["spec"]},
        )

        def tell(found: Object) -> None:
            told = {"name": entry["name"], "resourceClaimName": claim}
            found.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(told)

        self._cluster.edit("pods", name, tell, namespace)
        return True


class Orphans:
    """Removes pods and claims whose owners are all gone, as the garbage collector does."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def step(self) -> bool:
        """Removes every orphan; returns whether there was one."""
        owned = [
            (plural, one)
            for plural in OWNED
            for one in self._cluster.every(plural)
            if one["metadata"].get("ownerReferences") and not one["metadata"].get("deletionTimestamp")
        ]
        if not owned:
            return False
        alive = {one["metadata"]["uid"] for plural in OWNERS for one in self._cluster.every(plural)}
        found = False
        for plural, one in owned:
            metadata = one["metadata"]
            if not {owner["uid"] for owner in metadata["ownerReferences"]} & alive:
                self._cluster.store.delete((plural, metadata["namespace"], metadata["name"]))
                found = True
        return found


class Claims:
    """Ends reservations of pods that are gone, gives their devices back, and lets go of what is deleted."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def step(self) -> bool:
        """Moves every claim on; returns whether anything changed."""
        claims = self._cluster.every("resourceclaims")
        if not claims:
            return False
        alive = {
            pod["metadata"]["uid"]
            for pod in self._cluster.every("pods")
            if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        }
        return sum(self._move(claim, alive) for claim in claims) > 0

    def _move(self, claim: Object, alive: set[str]) -> bool:
        metadata, status = claim["metadata"], claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        kept = [user for user in reserved if user["uid"] in alive]
        held = bool(status.get("allocation"))
        leaves = metadata.get("deletionTimestamp") and PROTECTION in metadata.get("finalizers", [])
        if kept == reserved and not (held and not kept) and not (leaves and not kept):
            return False

        def write(found: Object) -> None:
            found["status"]["reservedFor"] = kept
            if not kept:
                for name in ("allocation", "devices", "reservedFor"):
                    found["status"].pop(name, None)
                found["metadata"]["finalizers"] = [
                    name for name in found["metadata"].get("finalizers", []) if name != PROTECTION
                ]

        self._cluster.edit("resourceclaims", metadata["name"], write, metadata["namespace"])
        return True


class Kubelet:
    """Prepares the devices of pods that are bound, then runs them; each by a call of its own."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def prepare(self) -> bool:
        """Prepares the devices of every bound pod; returns whether anything changed."""
        return sum(self._tell(pod, PREPARED) for pod in self._bound()) > 0

    def run(self) -> bool:
        """Runs every pod that is prepared; returns whether anything changed."""
        prepared = [pod for pod in self._bound() if PREPARED in _conditions(pod)]
        return sum(self._tell(pod, READY) for pod in prepared) > 0

    def _bound(self) -> list[Object]:
        return [
            pod
            for pod in self._cluster.every("pods")
            if pod["spec"].get("nodeName") and pod["spec"].get("resourceClaims")
        ]

    def _tell(self, pod: Object, condition: str) -> bool:
        if condition in _conditions(pod):
            return False

        def write(found: Object) -> None:
            told = found.setdefault("status", {}).setdefault("conditions", [])
            told.append({"type": condition, "status": "True"})

        self._cluster.edit("pods", pod["metadata"]["name"], write, pod["metadata"]["namespace"])
        return True


def _conditions(pod: Object) -> set[str]:
    told = pod.get("status", {}).get("conditions") or []
    return {one["type"] for one in told if one["status"] == "True"}
