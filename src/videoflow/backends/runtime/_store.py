"""The store below the runtime: versioned keys, several changed or none, and an append log."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from videoflow.backends.capabilities import RuntimeCapabilities
from videoflow.backends.outcomes import Observation

ABSENT: Final = "absent"
"""The expected version of a key that must not exist."""


class StoreOutcome(StrEnum):
    """How a commit ended; after `UNKNOWN` read back, or send the same again."""

    COMMITTED = "committed"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


class Stored(msgspec.Struct, frozen=True):
    """A value and its version, which is opaque and minted by the store."""

    value: bytes
    version: str


class Change(msgspec.Struct, frozen=True):
    """One put (or, with `value=None`, one delete) within a commit.

    Attributes:
        key: Parts joined with `/`.
        value: New bytes, or None to delete.
        expected: The version that must be there now, `ABSENT`, or None for any.
    """

    key: str
    value: bytes | None
    expected: str | None = None


class RuntimeStore(ABC):
    """Versioned key-value with compare-and-swap, and append logs; any thread may call.

    Every store passes `videoflow.testing.examiners.RuntimeStoreExaminer`. What comes in and goes out is a
    copy. What
    could not be read in time is Unknown, and what may not have been written `UNKNOWN`: then nothing of it
    was done, or
    all. A call waits no longer than its deadline.
    """

    @abstractmethod
    def capabilities(self) -> RuntimeCapabilities:
        """Returns what this store, as configured, guarantees."""

    @abstractmethod
    def get(self, keys: Sequence[str], *, deadline: float) -> Observation[dict[str, Stored]]:
        """Returns those of the keys that exist, all as of one moment; an empty value is a value."""

    @abstractmethod
    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        """Returns all keys that begin with exactly `prefix`, in ascending order of key, as of one moment."""

    @abstractmethod
    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        """Applies all changes or none; `CONFLICT` when an expected version is not there, and nothing is done.

        Expected versions are those before the commit. Each put mints a version, which no key ever has again,
        the same bytes or not. Deleting what is absent is nothing. No changes at all are committed.

        Raises:
            ContractBroken: One key twice; nothing is done.
        """

    @abstractmethod
    def append(self, log: str, records: Sequence[bytes], *, deadline: float) -> StoreOutcome:
        """Appends records to a log, in order and without a gap; logs and keys never meet."""

    @abstractmethod
    def read_log(self, log: str, after: int, *, deadline: float) -> Observation[list[tuple[int, bytes]]]:
        """Returns (number, record) of a log after a number; numbers ascend from 1."""

    @abstractmethod
    def close(self) -> None:
        """Ends the use of the store; what was committed stays."""
