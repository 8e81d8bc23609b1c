"""A scheduler that places pods by what they need."""

from collections.abc import Mapping

from videoflow.testing.kubernetes._api import FakeCluster
from videoflow.testing.kubernetes._devices import ClaimAllocator, Matches, refuses_expressions
from videoflow.testing.kubernetes._hardware import requested
from videoflow.testing.kubernetes._kinds import Object
from videoflow.testing.kubernetes._mig_manager import used_on

UNPLACED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no node has what it needs",
}


class Scheduler:
    """Binds pods to nodes: selectors, required node affinity, taints, extended resources, claims of devices.

    Args:
        cluster: Whose pods.
        matches: Evaluates CEL.
    """

    def __init__(self, cluster: FakeCluster, matches: Matches = refuses_expressions) -> None:
        self._cluster = cluster
        self._claims = ClaimAllocator(cluster, matches)

    def step(self) -> bool:
        """Binds every pod that fits somewhere; returns whether anything changed."""
        return sum(self._bind(pod) for pod in self._cluster.every("pods") if _waits(pod)) > 0

    def _bind(self, pod: Object) -> bool:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        claims = self._claims.of_pod(pod)
        if claims is None:
            return False
        for node in self._cluster.every("nodes"):
            if not (admits(node, pod) and self._has_room(node, pod)):
                continue
            host = node["metadata"]["name"]
            if not self._claims.allocate(claims, host, pod):
                continue

            def bind(found: Object, host: str = host) -> None:
                found["spec"]["nodeName"] = host
                status = found.get("status", {})
                kept = [one for one in status.get("conditions") or [] if one["type"] != UNPLACED["type"]]
                found["status"] = {**status, "phase": "Running", "conditions": kept}

            self._cluster.edit("pods", name, bind, namespace)
            return True
        return self._tell(pod)

    def _tell(self, pod: Object) -> bool:
        """Says of a pod that there is no place for it, once; as to claims, which a launcher waits for."""
        told = pod.get("status", {}).get("conditions") or []
        if not pod["spec"].get("resourceClaims") or any(one["type"] == UNPLACED["type"] for one in told):
            return False

        def write(found: Object) -> None:
            found.setdefault("status", {}).setdefault("conditions", []).append(dict(UNPLACED))

        self._cluster.edit("pods", pod["metadata"]["name"], write, pod["metadata"]["namespace"])
        return True

    def _has_room(self, node: Object, pod: Object) -> bool:
        used = used_on(self._cluster, node["metadata"]["name"])
        allocatable = node.get("status", {}).get("allocatable", {})
        return all(
            int(allocatable.get(resource, 0)) - used.get(resource, 0) >= count
            for resource, count in requested(pod).items()
        )


def _waits(pod: Object) -> bool:
    return not pod.get("spec", {}).get("nodeName") and not pod["metadata"].get("deletionTimestamp")


def admits(node: Object, pod: Object) -> bool:
    """Returns whether a node takes a pod by labels and taints."""
    labels, spec = node["metadata"].get("labels") or {}, pod["spec"]
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
    name = node["metadata"]["name"]
    if terms and not any(_fits(term, labels, name) for term in terms):
        return False
    tolerations = spec.get("tolerations") or []
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in node.get("spec", {}).get("taints") or []
        if taint["effect"] != "PreferNoSchedule"
    )


def _fits(term: Object, labels: Mapping[str, str], name: str) -> bool:
    fields = {"metadata.name": name}
    return all(_holds(rule, labels) for rule in term.get("matchExpressions", [])) and all(
        _holds(rule, fields) for rule in term.get("matchFields", [])
    )


def _holds(rule: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(rule["key"])
    match rule["operator"]:
        case "In":
            return value in rule["values"]
        case "NotIn":
            return value not in rule["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            raise ValueError(f"the fake scheduler does not know {rule['operator']}")


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return (toleration.get("key"), toleration.get("value", "")) == (taint["key"], taint.get("value", ""))
