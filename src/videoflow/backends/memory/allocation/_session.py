"""A process's way to the authority: reads, and writes under a precondition. Every call can be interposed."""

from collections.abc import Callable
from typing import TypeVar

from videoflow.backends.memory.allocation._cluster import Listing, MemoryCluster, Page, Unanswered
from videoflow.backends.memory.allocation._hosts import MemoryHost, MemoryPod
from videoflow.backends.outcomes import UnknownReason

T = TypeVar("T")


class MemorySession:
    """The calls of one process.

    Args:
        cluster: The authority.
        process: Whose calls these are; unique among all that live at once.
    """

    def __init__(self, cluster: MemoryCluster, process: str) -> None:
        self._cluster = cluster
        self.process = process

    def hosts(self) -> Page[MemoryHost]:
        """Lists the hosts; raises Unanswered."""
        cluster = self._cluster
        return self._call(False, "list", "hosts", lambda: cluster.page(Listing.HOSTS, cluster.hosts.values()))

    def pods(self) -> Page[MemoryPod]:
        """Lists the pods; raises Unanswered."""
        cluster = self._cluster
        return self._call(False, "list", "pods", lambda: cluster.page(Listing.PODS, cluster.pods.values()))

    def records(self) -> Page[str]:
        """Lists the ids of the claim records; raises Unanswered."""
        cluster = self._cluster
        return self._call(
            False, "list", "records", lambda: cluster.page(Listing.RECORDS, sorted(cluster.records))
        )

    def host(self, name: str) -> MemoryHost | None:
        """Reads one host as it is now, None where there is none; raises Unanswered."""
        cluster = self._cluster
        page = self._call(
            False, "get host", name, lambda: cluster.page(Listing.HOSTS, [cluster.hosts.get(name)])
        )
        if not page.whole:
            raise Unanswered(UnknownReason.MALFORMED)
        return page.items[0]

    def record(self, claim: str) -> tuple[int, bytes] | None:
        """Reads one record with its version, None where there is none; raises Unanswered."""
        cluster = self._cluster
        page = self._call(
            False, "get record", claim, lambda: cluster.page(Listing.RECORDS, [cluster.records.get(claim)])
        )
        if not page.whole:
            raise Unanswered(UnknownReason.MALFORMED)
        return page.items[0]

    def replace_host(self, host: MemoryHost, detail: str) -> None:
        """Writes a host under the version that it was read with; raises Conflict, Refused, Unanswered."""
        cluster = self._cluster
        self._call(True, detail, host.name, lambda: cluster.replace_host(host, self.process, detail))

    def replace_record(self, claim: str, version: int, value: bytes | None) -> int:
        """Creates, replaces or deletes a record and returns its version; raises Conflict, Unanswered."""
        cluster = self._cluster
        operation = "delete record" if value is None else "put record"
        return self._call(
            True, operation, claim, lambda: cluster.replace_record(claim, version, value, self.process)
        )

    def now(self) -> float:
        """Returns monotonic seconds."""
        return self._cluster.clock.monotonic()

    def _call(self, writes: bool, operation: str, target: str, effect: Callable[[], T]) -> T:
        interposer = self._cluster.interposer
        answered = None if interposer is None else interposer(self.process, writes, operation, target)
        result = effect()
        if answered is not None:
            answered()
        return result
