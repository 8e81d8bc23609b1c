"""Capability records: what an adapter, as configured, guarantees. A name is not a guarantee.

Used by the planner, which admits a composition of them or rejects it by name. What depends on a
deployed server is an Observation, read back from it. A field with a default may be left out by an adapter
that claims nothing there: the default is the least, or `NOT_SAID`, which is neither yes nor no.
"""

from enum import StrEnum

import msgspec

from videoflow.backends.outcomes import Durability, Observation, Unknown, UnknownReason

NOT_SAID = Unknown(UnknownReason.MISSING, 0.0, "the adapter does not say")
"""What an adapter left out. Only what rests on it is refused."""


class Profile(StrEnum):
    """What a channel promises its readers.

    `LIVE_LATEST`: bounded backlog and age, drops by a declared key, each of them observable.
    `RELIABLE_WORK`: every accepted item is recoverable for each required subscription until that one has
    settled it; overflow blocks or rejects and never evicts.
    `DURABLE_CONTROL`: state and terminal records of a run survive restarts of its controller and workers.
    `REPLAY_ARCHIVE`: kept for a stated horizon, whoever has read it.
    """

    LIVE_LATEST = "live_latest"
    RELIABLE_WORK = "reliable_work"
    DURABLE_CONTROL = "durable_control"
    REPLAY_ARCHIVE = "replay_archive"


class Enforcement(StrEnum):
    """How an accelerator's memory limit is kept."""

    NONE = "none"
    ACCOUNTING = "accounting"
    RUNTIME_CAP = "runtime_cap"
    HARDWARE = "hardware"


class MessagingCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a messaging adapter guarantees.

    Attributes:
        adapter: Its name.
        profiles: The channel profiles that it can serve.
        durability: What an accepted publication survives.
        atomic_append: The envelopes of one statement are accepted all or none.
        atomic_settle: The tokens of one settle call are settled all or none.
        gated_dispatch: The adapter keeps the spread (rule 4); else it refuses one, and the worker does.
        observes_publication: It implements `PublicationObserver`.
        crosses_processes: Readers and writers may be in different processes.
        crosses_hosts: And on different hosts.
        lease_seconds: Lease duration, or None where a lease ends with its process.
        copies: Stored copies, read back where a server holds them.
        maximum_channels: Declared limit of a run, or None.
        maximum_envelope_bytes: An envelope up to this size, without payloads, is carried; a larger one may be
            `Rejected(too_large)`.
        maximum_subscriptions: Declared limit of a run, or None; partitions count.
        splits_retention: One port may be written to several channels, each with a retention of its own.
        retention_seconds: How long an archive keeps what was accepted, read back where a server says so.
    """

    adapter: str
    profiles: frozenset[Profile]
    durability: Durability
    atomic_append: bool
    atomic_settle: bool
    gated_dispatch: bool
    observes_publication: bool
    crosses_processes: bool
    crosses_hosts: bool
    lease_seconds: float | None
    copies: Observation[int]
    maximum_channels: int | None
    maximum_envelope_bytes: int
    maximum_subscriptions: int | None = None
    splits_retention: bool = False
    retention_seconds: Observation[float] = NOT_SAID


class PayloadCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload store guarantees.

    Attributes:
        adapter: Its name.
        durable: Objects survive the store's processes.
        evictable: The store may remove an object that obligations name.
        persistent_volume: Its files are on a volume that survives its host.
        crosses_processes: Readers may be in other processes.
        crosses_hosts: And on other hosts.
        forwards_references: A publication may refer to an object of an earlier one.
        digest: Algorithm, or "none".
        maximum_object_bytes: Largest object.
        free_bytes: Free space.
        copies: Stored copies, read back where a server holds them.
    """

    adapter: str
    durable: Observation[bool]
    evictable: Observation[bool]
    persistent_volume: Observation[bool]
    crosses_processes: bool
    crosses_hosts: bool
    forwards_references: bool
    digest: str
    maximum_object_bytes: int
    free_bytes: Observation[int]
    copies: Observation[int] = NOT_SAID


class RuntimeCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime store guarantees.

    Attributes:
        adapter: Its name.
        shared: Other processes see what was committed.
        survives_process: Records survive the processes that wrote them.
        survives_power: Records survive loss of power (fsync).
        atomic_commit: A commit of several keys is all or none.
        crosses_hosts: Other hosts see what was committed.
        copies: Stored copies, read back where a server holds them.
    """

    adapter: str
    shared: bool
    survives_process: bool
    survives_power: bool
    atomic_commit: bool
    crosses_hosts: bool
    copies: Observation[int] = NOT_SAID


class ExecutionCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine guarantees.

    Attributes:
        engine: Its name.
        isolates_crash: The death of one task leaves the others running, and killers can be quarantined.
        can_interrupt: A call that hangs can be ended.
        crosses_processes: Tasks run in processes of their own.
        crosses_hosts: And on several hosts.
        fuses: Nodes of one label are called directly, in one process.
        maximum_batch_items: The most inputs in one call; None: as many as a node asks for.
        processors: Of its host; of the largest one where there are several.
        memory_bytes: Available on its host; on the largest one where there are several.
        clock_uncertainty_seconds: How far apart the clocks of its hosts may be; 0 on one host.
    """

    engine: str
    isolates_crash: bool
    can_interrupt: bool
    crosses_processes: bool
    crosses_hosts: bool
    fuses: bool = False
    maximum_batch_items: int | None = 1
    processors: Observation[float] = NOT_SAID
    memory_bytes: Observation[int] = NOT_SAID
    clock_uncertainty_seconds: Observation[float] = NOT_SAID


class AllocationCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an accelerator-allocation adapter guarantees; see `backends.allocation`.

    Attributes:
        adapter: Its name.
        authority: Who decides in the end, such as `sqlite` or `kubernetes`.
        exclusive_device: Whole devices for one owner.
        isolated_mig: MIG slices.
        cooperative_sharing: Several owners of one device by agreement.
        memory_enforcement: How a limit is kept.
        multi_device: Several devices for one workload.
        topology_verification: Peer access can be checked.
        elastic: The number granted may change.
        admission_boundary: What is admitted as one, such as `host` or `cluster`.
        version_matrix: Gated feature → the version that provides it; and `matrix` → the matrix's own version.
    """

    adapter: str
    authority: str
    exclusive_device: bool
    isolated_mig: bool
    cooperative_sharing: bool
    memory_enforcement: Enforcement
    multi_device: bool
    topology_verification: bool
    elastic: bool
    admission_boundary: str
    version_matrix: tuple[tuple[str, str], ...] = ()
