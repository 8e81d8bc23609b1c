"""What the laws of allocation are tried on: an authority with hosts, backends in it, and probes behind it.

Used by `AllocationExaminer`: an adapter brings a subclass. The authority (a fake API server, a ledger file, a
table of hosts) outlives every backend; a `process` is one backend object with what it keeps in memory.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol, runtime_checkable

from videoflow.backends.allocation import AcceleratorAllocationBackend, ClaimObservation
from videoflow.backends.outcomes import Observation, UnknownReason
from videoflow.testing.examiners import Subject

Layout = tuple[tuple[str, int], ...]
"""The slices of one card: profile and first memory slot, in order of slots."""


class Ability(StrEnum):
    """What a subject can set up or show; a law that needs what it lacks is not tried, as the matrix says."""

    SEVERAL_HOSTS = "several hosts"
    GEOMETRY = "changes MIG geometry"
    STATIC_SLICES = "has prepared MIG slices"
    SHARING_KINDS = "hosts of every kind of sharing"
    FOREIGN_OWNER = "another allocator may own a host"
    KEEPS_OUT = "keeps others out of what is held"
    STAGES = "preparation can be held back"
    MASKS = "binds by CUDA_VISIBLE_DEVICES"
    CLAIM_MANIFESTS = "renders claims"
    GATES = "gated features depend on facts of the environment"


class Read(StrEnum):
    """Kinds of listing that can be made to fail."""

    PRIMARY = "devices and hosts"
    SECONDARY = "users and used memory"
    RECORDS = "durable claims"


class Fate(StrEnum):
    """What becomes of one call of a backend to its authority.

    `LOST`: it takes effect and its answer is lost. `UNHEARD`: neither. `CRASH`: the process dies before it,
    `CRASH_AFTER`: when it has taken effect; the backend sees `Crashed` and may do nothing any more.
    """

    GO = "go"
    LOST = "lost"
    UNHEARD = "unheard"
    CRASH = "crash"
    CRASH_AFTER = "crash after"


class Crashed(BaseException):
    """The process ends here; raised through a backend, which must not catch it."""


@dataclass(frozen=True)
class Call:
    """One call to the authority: by which process, whether it writes, and what it does to what."""

    process: str
    writes: bool
    operation: str
    target: str


@dataclass(frozen=True)
class FixtureCard:
    """A card to be furnished.

    Attributes:
        uuid: Unique.
        product: As the driver spells it.
        memory_bytes: Usable, or None: cannot be read.
        slices: Profile and first slot of the slices that are on it before anybody claims; the subject names
            them.
    """

    uuid: str
    product: str
    memory_bytes: int | None
    slices: Layout = ()


@dataclass(frozen=True)
class FixtureHost:
    """A host to be furnished.

    Attributes:
        name: Unique.
        cards: In order of ordinals.
        sharing: `physical`, `mig`, `time-sliced`, `mps` or `unknown`.
        managed: The backend may change its geometry (only with `Ability.GEOMETRY`).
        owner: Stamp of another allocator, which owns it; empty: nobody.
    """

    name: str
    cards: tuple[FixtureCard, ...]
    sharing: str = "physical"
    managed: bool = False
    owner: str = ""


@runtime_checkable
class Seizable(Protocol):
    """What a subject must also be that has `FOREIGN_OWNER`."""

    def seize(self, host: str) -> None:
        """Another allocator takes a host, whoever owned it."""


@runtime_checkable
class Staged(Protocol):
    """What a subject must also be that has `STAGES`."""

    def hold_back(self) -> None:
        """From now on preparation moves on only by `proceed`."""

    def proceed(self) -> None:
        """Lets every preparation move on by one state: devices are made, then they can be used."""


class AllocationSubject(Subject):
    """One implementation under test; `furnish` is called first.

    Attributes:
        lacks: Ability → why the implementation or its set-up has not got it. Every other one is there.
        product_key: Key of a constraint that asks for the product of a card.
    """

    lacks: ClassVar[Mapping[Ability, str]] = {}
    product_key: ClassVar[str] = "product"

    # Setting up -------------------------------------------------------------------------------

    @abstractmethod
    def furnish(self, hosts: Sequence[FixtureHost]) -> None:
        """Makes the authority anew, with these hosts and no claims, and forgets every process."""

    @abstractmethod
    def backend(self, process: str = "main") -> AcceleratorAllocationBackend:
        """Returns the backend of a process; the same one each time until it is killed."""

    @abstractmethod
    def kill(self, process: str) -> None:
        """Forgets a process with all that it kept in memory; a backend of the same name is a new process."""

    @abstractmethod
    def environment(self, *, gates: bool = True) -> Mapping[str, str]:
        """Returns the facts that the backends were made with; without gates: only those of the core."""

    # Making things happen ---------------------------------------------------------------------

    @abstractmethod
    def on_call(self, decide: Callable[[Call], Fate] | None) -> None:
        """Asks about each call of a backend to its authority from now on, in the thread of the call.

        `decide` is called before the call takes effect; it may block, and may use the subject itself, whose
        own probes are not asked about. No call is made while a lock is held that another process needs.
        """

    @abstractmethod
    def fail(self, read: Read, reason: UnknownReason | None) -> None:
        """Lets a kind of read fail from now on, with None no more; `MALFORMED`: lists are cut short."""

    @abstractmethod
    def arrive(self, device: str, *, tolerant: bool = False) -> bool:
        """A foreign workload comes to a device; returns whether it got in.

        Args:
            device: Key of a card or a slice.
            tolerant: It ignores whatever keeps others out (as some system pods do).
        """

    @abstractmethod
    def leave(self, device: str) -> None:
        """The foreign workload of a device ends."""

    @abstractmethod
    def start(self, claim_id: str, workload_id: str) -> None:
        """Runs a workload on what the claim gives it, as a launcher would."""

    @abstractmethod
    def end(self, claim_id: str, workload_id: str) -> None:
        """Ends it."""

    # Raw probes: by other means than the backend, and never failing -----------------------------

    @abstractmethod
    def claims(self, process: str = "main") -> Observation[tuple[ClaimObservation, ...]]:
        """Lists the claims as a fresh process would, through the backend."""

    @abstractmethod
    def writes(self) -> tuple[str, ...]:
        """Returns every write that took effect since `furnish`, in order, whoever made it."""

    @abstractmethod
    def owned(self) -> tuple[tuple[str, str], ...]:
        """Returns (device, owner), one for each owner of each device; a shared device has several.

        An owner of a card whose geometry it changes owns the card. Owners are compared, never parsed.
        """

    @abstractmethod
    def exclusive(self) -> tuple[tuple[str, str], ...]:
        """Returns those of `owned` that are held for one owner alone, and with a card all its slices."""

    @abstractmethod
    def layouts(self) -> Mapping[str, Layout]:
        """Returns card → its slices now."""

    @abstractmethod
    def records(self) -> tuple[str, ...]:
        """Returns the ids of the durable claims."""

    @abstractmethod
    def host_owner(self, host: str) -> str:
        """Returns the stamp of another allocator on a host, or empty."""

    @abstractmethod
    def legal(self, product: str, layout: Layout) -> bool:
        """Judges a layout by an independent table, never by the catalogue of the product."""

    # Shorthands ---------------------------------------------------------------------------------

    def can(self, *abilities: Ability) -> bool:
        """Returns whether all of these are there."""
        return not any(ability in self.lacks for ability in abilities)
