"""The way to the authority: reads that answer or raise, writes that are read back where nobody answered."""

from collections.abc import Callable
from typing import TypeVar

from videoflow.adapters.kubernetes import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    NODES,
    PODS,
    RESOURCE_SLICES,
    KubernetesApi,
    Object,
    Refusal,
    Refused,
)
from videoflow.backends.outcomes import UnknownReason
from videoflow.clock import Clock
from videoflow.deploy.allocation_kubernetes._settings import CLAIM, GPU, MIG_PREFIX, KubernetesSettings
from videoflow.deploy.kubernetes_records import MOST_TRIES, Reads, Unanswered

T = TypeVar("T")


class Session(Reads):
    """The way to one cluster, for one operation. Every read raises Unanswered where it fails."""

    def __init__(self, api: KubernetesApi, settings: KubernetesSettings, clock: Clock) -> None:
        super().__init__(api, settings.process, settings.namespace, clock)
        self.settings = settings
        self._config_name = ""

    def node(self, name: str) -> Object | None:
        """Returns a node, or None."""
        return self.found(NODES, name)

    def pods(self) -> tuple[Object, ...]:
        """Returns all pods that hold devices of a host."""
        return tuple(pod for pod in self.listed(PODS) if _holds(pod))

    def drivers(self) -> dict[str, str]:
        """Returns host → driver of dynamic resource allocation that has its GPUs."""
        found = self.api.list(RESOURCE_SLICES)
        if isinstance(found, Refused):
            if found.why is Refusal.MISSING:  # a server without dynamic resource allocation
                return {}
            raise Unanswered(found)
        specs = [published["spec"] for published in found.items]
        ours = self.settings.dra_drivers
        return {
            spec["nodeName"]: spec["driver"]
            for spec in specs
            if "nodeName" in spec and spec["driver"] in ours
        }

    def mig_config(self) -> Object | None:
        """Returns the config map of the MIG manager that the cluster policy points to, or None."""
        if not self._config_name:
            policy = self.found(CLUSTER_POLICIES, self.settings.cluster_policy)
            manager = ((policy or {}).get("spec") or {}).get("migManager") or {}
            self._config_name = (manager.get("config") or {}).get("name") or ""
        name = self._config_name
        return self.found(CONFIG_MAPS, name, self.settings.mig_namespace) if name else None

    def change(
        self,
        read: Callable[[], T],
        write: Callable[[T], Object | Refused | None],
        check: Callable[[], None],
    ) -> None:
        """Reads, checks and writes, until what is read needs no write.

        A conflict is somebody else's write, and a write without an answer may have been done: what is read
        next tells. Raises Unanswered where that comes to no end, and whatever `check` and `write` raise.

        Args:
            read: Reads what is to be changed, with its version.
            write: Writes the change under that version; returns None where there is nothing to write.
            check: Comes between the two, and raises where this process may no longer write.
        """
        refused = Refused(Refusal.CONFLICT, UnknownReason.UNREACHABLE, "too many conflicts")
        for _ in range(MOST_TRIES):
            current = read()
            check()
            done = write(current)
            if not isinstance(done, Refused):
                return
            refused = done
            if done.why in (Refusal.DENIED, Refusal.INVALID):
                break
        raise Unanswered(refused)


def claim_of(pod: Object) -> str:
    """Returns the claim that a pod says it belongs to, or empty."""
    return str((pod["metadata"].get("labels") or {}).get(CLAIM, ""))


def used_by(pod: Object) -> dict[str, int]:
    """Returns the GPU resources that a pod holds: resource → how many."""
    found: dict[str, int] = {}
    for container in pod["spec"].get("containers") or []:
        for name, count in ((container.get("resources") or {}).get("limits") or {}).items():
            if name.startswith((GPU, MIG_PREFIX)):
                found[name] = found.get(name, 0) + int(count)
    for container in pod["spec"].get("initContainers") or []:
        for name, count in ((container.get("resources") or {}).get("limits") or {}).items():
            if name.startswith((GPU, MIG_PREFIX)):
                found[name] = max(found.get(name, 0), int(count))
    return found


def _holds(pod: Object) -> bool:
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return bool(pod["spec"].get("nodeName")) and not over and bool(used_by(pod))
