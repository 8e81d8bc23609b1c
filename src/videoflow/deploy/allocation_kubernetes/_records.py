"""Claims as durable records: one config map for each, moved from phase to phase by compare-and-swap."""

from typing import ClassVar

import msgspec

from videoflow.deploy.allocation_kubernetes._mig_config import Cards
from videoflow.deploy.allocation_kubernetes._settings import CLAIM, KIND
from videoflow.deploy.kubernetes_records import ConfigMapJournal, JournalRecord


class Terms(msgspec.Struct, frozen=True):
    """On what terms a workload has its devices.

    Attributes:
        shared: It shares them.
        size_bytes: What it may use of each, where it shares; 0: nobody said.
        limit_bytes: What it is stopped at, where somebody stops it.
    """

    shared: bool = False
    size_bytes: int = 0
    limit_bytes: int | None = None


class Original(msgspec.Struct, frozen=True):
    """A host before its geometry was changed.

    Attributes:
        entry: Value of the label; None: it had none.
        cards: What each card was cut into.
    """

    entry: str | None
    cards: Cards


class ClaimRecord(JournalRecord, frozen=True, kw_only=True):
    """One claim.

    Attributes:
        resources: Workload → resource → how many of it its pod asks for.
        terms: Workload → its terms.
        geometry: Host → what its cards are to be cut into, all of them.
        recut: Host → ordinals of the cards that change.
        shares: Host → how many may share one of its cards.
        originals: Host → what it was.
    """

    resources: dict[str, dict[str, int]]
    terms: dict[str, Terms]
    geometry: dict[str, Cards]
    recut: dict[str, tuple[int, ...]]
    shares: dict[str, int]
    originals: dict[str, Original] = msgspec.field(default_factory=dict)


class Journal(ConfigMapJournal[ClaimRecord]):
    """The record of one claim, as this process knows it."""

    kind = ClaimRecord
    prefix = "claim-"
    labels: ClassVar[dict[str, str]] = {KIND: "claim"}
    claim_label = CLAIM
