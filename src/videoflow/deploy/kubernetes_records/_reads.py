"""Reads that answer whole or raise."""

from typing import Final

from videoflow.adapters.kubernetes import (
    CONFIG_MAPS,
    KubernetesApi,
    Object,
    Refusal,
    Refused,
    ResourceKind,
)
from videoflow.backends.allocation.lifecycle import Unanswered as AnyUnanswered
from videoflow.clock import Clock

MOST_TRIES: Final = 64


class Unanswered(AnyUnanswered):
    """The authority did not answer, or not whole; what it holds is unknown."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.reason, refused.said)


class Reads:
    """The way to one cluster. Every read raises Unanswered where it fails.

    Args:
        api: The way to the API server.
        process: Unique among all processes that live at once; told in what they write.
        namespace: Of the records.
        clock: For the times of observations.
    """

    def __init__(self, api: KubernetesApi, process: str, namespace: str, clock: Clock) -> None:
        self.api = api
        self.process = process
        self.namespace = namespace
        self.clock = clock

    def now(self) -> float:
        """Returns monotonic seconds."""
        return self.clock.monotonic()

    def listed(self, kind: ResourceKind, namespace: str = "", labels: str = "") -> tuple[Object, ...]:
        """Returns all objects of a kind."""
        found = self.api.list(kind, namespace, labels=labels)
        if isinstance(found, Refused):
            raise Unanswered(found)
        return found.items

    def found(self, kind: ResourceKind, name: str, namespace: str = "") -> Object | None:
        """Returns an object, or None where there is none."""
        found = self.api.get(kind, name, namespace)
        if isinstance(found, Refused):
            if found.why is Refusal.MISSING:
                return None
            raise Unanswered(found)
        return found

    def config_map(self, name: str) -> Object | None:
        """Returns a config map of ours, or None."""
        return self.found(CONFIG_MAPS, name, self.namespace)


def version_of(found: Object) -> str:
    """Returns the version of an object."""
    return str(found["metadata"]["resourceVersion"])
