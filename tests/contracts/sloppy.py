"""A runtime store as a hurried author might write it: each shortcut breaks a law."""

import fnmatch
from collections.abc import Mapping, Sequence

from videoflow.backends.capabilities import RuntimeCapabilities
from videoflow.backends.outcomes import Observation, known
from videoflow.backends.runtime import ABSENT, Change, RuntimeStore, Stored, StoreOutcome
from videoflow.clock import ManualClock
from videoflow.testing.examiners import RuntimeStoreExaminer, StoreSubject


class SloppyStore(RuntimeStore):
    """It works in the demo."""

    def __init__(self) -> None:
        self._records: dict[str, Stored] = {}
        self._logs: dict[str, list[bytes]] = {}

    def capabilities(self) -> RuntimeCapabilities:
        return RuntimeCapabilities(
            adapter="sloppy",
            shared=True,
            survives_process=True,  # "it is a server, more or less"
            survives_power=False,
            atomic_commit=True,
            crosses_hosts=False,
        )

    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        return known({key: self._records[key] for key in keys if key in self._records}, 0.0)

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        found = fnmatch.filter(self._records, prefix + "*")  # a prefix is a pattern
        return known({key: self._records[key] for key in found}, 0.0)

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        for change in changes:  # one after the other: half of a commit may stand
            stored = self._records.get(change.key)
            if change.expected not in (None, stored.version if stored else ABSENT):
                return StoreOutcome.CONFLICT
            if change.value is None:
                self._records.pop(change.key, None)
            else:
                number = int(stored.version) + 1 if stored else 1  # a deleted key begins anew
                self._records[change.key] = Stored(change.value, str(number))
        return StoreOutcome.COMMITTED

    def append(self, log: str, records: Sequence[bytes], *, deadline: float) -> StoreOutcome:
        self._logs.setdefault(log, []).extend(records)
        return StoreOutcome.COMMITTED

    def read_log(self, log: str, after: int, *, deadline: float) -> Observation[list[tuple[int, bytes]]]:
        return known(list(enumerate(self._logs.get(log, [])))[after:], 0.0)  # from zero

    def close(self) -> None:
        """Nothing to do."""


class SloppySubject(StoreSubject):
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = self.sloppy = SloppyStore()

    def another(self) -> RuntimeStore:
        return SloppyStore()

    def raw(self) -> Mapping[str, bytes]:
        return {key: stored.value for key, stored in self.sloppy._records.items()}

    def close(self) -> None:
        self.store.close()


class Sloppy(RuntimeStoreExaminer):
    def make_subject(self) -> SloppySubject:
        return SloppySubject()
