"""What the authority of the reference holds: hosts with cards and holds, pods, and what was written.

Frozen values: a change is a new host, written back under the version of the one that was read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

Layout = tuple[tuple[str, int], ...]
STAMP = "videoflow/"


class MigTable(Protocol):
    """Judges layouts, independently of the catalogue that plans are made from."""

    def illegal(self, product: str, layout: Layout) -> str:
        """Returns why a card cannot be cut so; empty: it can."""
        ...

    def usable_bytes(self, product: str, profile: str) -> int:
        """Returns what a driver would say of such a slice."""
        ...


@dataclass(frozen=True)
class Hold:
    """Ownership of a device by one claim.

    Attributes:
        claim: Its id.
        epoch: Of the claim, when it was written; a newer one replaces it, an older one never does.
        units: Workloads of the claim on the device.
        size_bytes: What they may use of its memory; None: the device is theirs alone.
    """

    claim: str
    epoch: int
    units: int
    size_bytes: int | None = None

    @property
    def stamp(self) -> str:
        """What is shown as the owner."""
        return f"{STAMP}{self.claim}@{self.epoch}"


@dataclass(frozen=True)
class MemorySlice:
    """A MIG slice."""

    uuid: str
    profile: str
    start: int
    memory_bytes: int


@dataclass(frozen=True)
class MemoryCard:
    """A card.

    Attributes:
        uuid: Unique.
        ordinal: On its host.
        product: As the driver spells it.
        memory_bytes: Usable, or None where it cannot be read.
        slices: What it is cut into.
        wanted: The layout that was last asked for, or None.
        entry: Under which name it was asked for.
        made: The entry whose layout was made last; an old one proves nothing of a new entry.
        advertised: The entry whose devices can be used.
    """

    uuid: str
    ordinal: int
    product: str
    memory_bytes: int | None
    slices: tuple[MemorySlice, ...] = ()
    wanted: Layout | None = None
    entry: str = ""
    made: str = ""
    advertised: str = ""

    @property
    def layout(self) -> Layout:
        """The profiles and first slots of its slices."""
        return tuple(sorted(((piece.profile, piece.start) for piece in self.slices), key=_by_start))

    def device_keys(self) -> tuple[str, ...]:
        """Returns its own key and those of its slices."""
        return (self.uuid, *(piece.uuid for piece in self.slices))


@dataclass(frozen=True)
class MemoryHost:
    """A host.

    Attributes:
        name: Unique.
        cards: Its cards.
        labels: From which its kind of sharing is told.
        owner: Stamp of another allocator that owns it; empty: none.
        holds: Device key → the claims that own it; several where it is shared.
        version: Moved by every write; a write names the version that it was made from.
    """

    name: str
    cards: tuple[MemoryCard, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    holds: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)
    version: int = 1

    def card(self, uuid: str) -> MemoryCard | None:
        """Returns the card of this key."""
        return next((card for card in self.cards if card.uuid == uuid), None)

    def related(self, key: str) -> tuple[str, ...]:
        """Returns the keys whose owners own some of this device: itself, its card, its slices; () if gone."""
        for card in self.cards:
            if key == card.uuid:
                return card.device_keys()
            if key in card.device_keys():
                return key, card.uuid
        return ()

    def memory_bytes(self, key: str) -> int | None:
        """Returns the memory of a card or slice, or None."""
        for card in self.cards:
            if key == card.uuid:
                return card.memory_bytes
            for piece in card.slices:
                if key == piece.uuid:
                    return piece.memory_bytes
        return None

    def held(self) -> Iterator[tuple[str, Hold]]:
        """Yields each hold with its device."""
        for key, holds in self.holds.items():
            for hold in holds:
                yield key, hold


@dataclass(frozen=True)
class MemoryPod:
    """A workload on a device, ours or foreign; `claim` is empty for a foreign one."""

    name: str
    host: str
    device: str
    size_bytes: int | None = None
    claim: str = ""


@dataclass(frozen=True)
class Written:
    """One write that took effect: who, what, to what."""

    process: str
    operation: str
    target: str
    detail: str = ""


def _by_start(placed: tuple[str, int]) -> int:
    return placed[1]
