"""What was admitted, and which capability each guarantee rests on; a part of the plan."""

from enum import StrEnum

import msgspec

from videoflow.backends.capabilities import Profile


class Distance(StrEnum):
    """How far apart a channel's writers and readers may be."""

    PROCESS = "one process"
    HOST = "processes of one host"
    HOSTS = "several hosts"


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """A guarantee that was wanted, and what it rests on.

    Attributes:
        subject: Of what: a channel, a task, the run.
        profile: Which promise or requirement it is part of.
        guarantee: What is guaranteed, in words.
        wanted: How much of it.
        found: How much there is, and who says so.
        rests_on: The capability, such as `messaging.copies`.
    """

    subject: str
    profile: str
    guarantee: str
    wanted: str
    found: str
    rests_on: str


class AdmittedChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel as it will be provisioned.

    Attributes:
        channel: `node` or `node.port`.
        profile: What it promises its readers.
        partitions: Into how many logs it is cut.
        key: What they are computed from, or None.
        bound_items: Unsettled items of a partition at most, or None where that is not chosen.
        bound_bytes: The same in bytes.
        copies: How many copies there must be at least.
        exactly_once_effects: Whether the effects of its readers happen once.
        carried_by: The messaging adapter.
        distance: How far, or None where no engine was named.
        grounds: What its guarantees rest on.
    """

    channel: str
    profile: Profile
    partitions: int
    key: str | None
    bound_items: int | None
    bound_bytes: int | None
    copies: int
    exactly_once_effects: bool
    carried_by: str
    distance: Distance | None
    grounds: tuple[Ground, ...]


class CompositionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted composition.

    Attributes:
        channels: As they will be provisioned, one for each port, profile and partitioning.
        grounds: What the guarantees of tasks, joins and the run rest on.
        notes: Worth knowing, such as a port that is written twice.
    """

    channels: tuple[AdmittedChannel, ...] = ()
    grounds: tuple[Ground, ...] = ()
    notes: tuple[str, ...] = ()
