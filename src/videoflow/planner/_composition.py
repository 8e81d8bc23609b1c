"""Admits a composition of backends for stated guarantees, or rejects it by name; never gives less.

Used before anything is provisioned. What is definitely missing is an `IncompatibleProfile` that lists all of
it; what could not be read is an `UnobservableState`, since unknown is neither yes nor no.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from videoflow.backends.capabilities import (
    AllocationCapabilities,
    ExecutionCapabilities,
    MessagingCapabilities,
    PayloadCapabilities,
    Profile,
    RuntimeCapabilities,
)
from videoflow.backends.messaging import Bounds
from videoflow.backends.outcomes import Durability, Known, Observation, Unknown
from videoflow.errors import IncompatibleProfile, Miss, UnobservableState

_SURVIVES_PROCESSES = (Durability.HOST, Durability.STREAM, Durability.STREAM_QUORUM)
_ON_DISKS = (Durability.STREAM, Durability.STREAM_QUORUM)


class Effects(StrEnum):
    """How often the effects of a channel's readers may happen."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"
    KEYED = "keyed"


class ChannelRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel must guarantee.

    Attributes:
        channel: `node` or `node.port`.
        profile: Name of a messaging profile.
        bounds: Items and bytes that it may hold, or None where the planner chooses.
        tolerated_failures: So many stores may fail at once without loss.
        effects: `KEYED` is exactly once by an idempotency key that the sink declares.
    """

    channel: str
    profile: str = Profile.RELIABLE_WORK
    bounds: Bounds | None = None
    tolerated_failures: int = 0
    effects: Effects = Effects.AT_LEAST_ONCE


class CompositionRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """What a flow asks of the backends that will run it.

    Attributes:
        channels: Requirements of single channels.
        durable_control: The state of the run survives its controller.
        restart_safe: A run can go on after all of its processes have died.
    """

    channels: tuple[ChannelRequirement, ...] = ()
    durable_control: bool = False
    restart_safe: bool = False


class AdmittedChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel as it will be provisioned."""

    channel: str
    profile: Profile
    bounds: Bounds | None
    copies: int
    effects: Effects


class CompositionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted composition.

    Attributes:
        channels: As they will be provisioned, one for each channel and profile.
        notes: Worth knowing, such as a channel that was split in two.
    """

    channels: tuple[AdmittedChannel, ...]
    notes: tuple[str, ...] = ()


def plan_composition(
    requirements: CompositionRequirements,
    messaging: MessagingCapabilities,
    payload: PayloadCapabilities | None = None,
    runtime: RuntimeCapabilities | None = None,
    allocation: AllocationCapabilities | None = None,
    execution: ExecutionCapabilities | None = None,
    payload_refs_in_use: bool = False,
) -> CompositionPlan:
    """Admits or rejects a composition; pure, and before anything is provisioned.

    Args:
        requirements: What is wanted.
        messaging: The messaging adapter, as configured.
        payload: The payload store, or None where there is none.
        runtime: The run store, or None where there is none.
        allocation: The allocator of accelerators; nothing is asked of it yet.
        execution: The engine, for distances that its backends must cross.
        payload_refs_in_use: Whether channels carry references into the payload store.

    Raises:
        IncompatibleProfile: Guarantees are definitely missing; every one is listed.
        UnobservableState: Nothing is definitely missing, and something could not be read.
    """
    judge = _Judge(messaging, payload if payload_refs_in_use else None, runtime)
    if payload_refs_in_use and payload is None:
        judge.miss("payloads", "any", "payload store", "one", "none", "configure a payload store")
    for wanted in requirements.channels:
        judge.channel(wanted)
    judge.run(requirements)
    judge.distances(execution)
    judge.limits(requirements)
    if judge.misses:
        raise IncompatibleProfile(judge.misses)
    if judge.unknowns:
        raise UnobservableState(
            "a guarantee could not be read", cause="\n".join(judge.unknowns), effect="nothing was started"
        )
    return CompositionPlan(
        channels=tuple(
            AdmittedChannel(
                channel=wanted.channel,
                profile=Profile(wanted.profile),
                bounds=wanted.bounds,
                copies=_copies(wanted),
                effects=wanted.effects,
            )
            for wanted in requirements.channels
        ),
        notes=tuple(_split_notes(requirements.channels)),
    )


def _copies(wanted: ChannelRequirement) -> int:
    return 2 * wanted.tolerated_failures + 1


def _split_notes(channels: Sequence[ChannelRequirement]) -> Iterator[str]:
    for name in dict.fromkeys(wanted.channel for wanted in channels):
        profiles = list(dict.fromkeys(wanted.profile for wanted in channels if wanted.channel == name))
        if len(profiles) > 1:
            yield f"{name} is written once for each of {', '.join(profiles)}: one log cannot keep to both"


class _Judge:
    """Collects what is missing and what is unknown."""

    def __init__(
        self,
        messaging: MessagingCapabilities,
        payload: PayloadCapabilities | None,
        runtime: RuntimeCapabilities | None,
    ) -> None:
        self.messaging = messaging
        self.payload = payload
        self.runtime = runtime
        self.misses: list[Miss] = []
        self.unknowns: list[str] = []

    def miss(self, *parts: str) -> None:
        """Notes a definite miss: subject, profile, guarantee, wanted, found, remedy."""
        self.misses.append(Miss(*parts))

    def channel(self, wanted: ChannelRequirement) -> None:
        """Judges one channel."""
        subject, adapter = f"channel {wanted.channel}", self.messaging.adapter
        known = [profile.value for profile in Profile]
        if wanted.profile not in known:
            found = ", ".join(known)
            self.miss(subject, wanted.profile, "profile", "a known one", found, "choose one of these")
            return
        profile = Profile(wanted.profile)
        if profile not in self.messaging.profiles:
            remedy = "choose a messaging adapter that has it"
            self.miss(subject, profile, "profile", "offered", f"not offered by {adapter}", remedy)
        self._payloads(subject, profile)
        if profile is Profile.DURABLE_CONTROL:
            self._store(subject, profile)
        if wanted.tolerated_failures:
            self._failures(subject, wanted)
        self._effects(subject, wanted)
        self._space(subject, wanted)

    def run(self, requirements: CompositionRequirements) -> None:
        """Judges what is wanted of the run as a whole."""
        if requirements.durable_control:
            self._store("the run", "durable_control")
        if requirements.restart_safe:
            self._store("the run", "restart_safe")
            if self.messaging.durability not in _SURVIVES_PROCESSES:
                remedy = "choose a messaging adapter that keeps messages outside the processes"
                found = f"{self.messaging.durability} ({self.messaging.adapter})"
                self.miss("the run", "restart_safe", "durability", "host or more", found, remedy)
            if self.payload is not None:
                self._observed("the run", "restart_safe", "durable payloads", self.payload.durable, True)

    def distances(self, execution: ExecutionCapabilities | None) -> None:
        """Judges whether every backend reaches as far as the engine spreads its tasks."""
        if execution is None:
            return
        engine = execution.engine
        parts: list[tuple[str, bool, bool]] = [
            ("messages", self.messaging.crosses_processes, self.messaging.crosses_hosts)
        ]
        if self.payload is not None:
            parts.append(("payloads", self.payload.crosses_processes, self.payload.crosses_hosts))
        if self.runtime is not None:
            parts.append(("run state", self.runtime.shared, self.runtime.crosses_hosts))
        for subject, crosses_processes, crosses_hosts in parts:
            if execution.crosses_hosts and not crosses_hosts:
                self.miss(
                    subject, engine, "crosses_hosts", "yes", "no", "choose an adapter that crosses hosts"
                )
            elif execution.crosses_processes and not crosses_processes:
                remedy = "choose an adapter that crosses processes"
                self.miss(subject, engine, "crosses_processes", "yes", "no", remedy)

    def limits(self, requirements: CompositionRequirements) -> None:
        """Judges the size of the graph."""
        limit, wanted = self.messaging.maximum_channels, len(requirements.channels)
        if limit is not None and wanted > limit:
            remedy = "a smaller graph, or an adapter without this limit"
            self.miss("the flow", "any", "channels", str(wanted), f"at most {limit}", remedy)

    def _payloads(self, subject: str, profile: Profile) -> None:
        if self.payload is None or profile is Profile.LIVE_LATEST:
            return
        self._observed(subject, profile, "evictable payloads", self.payload.evictable, False)
        if profile is Profile.REPLAY_ARCHIVE:
            self._observed(subject, profile, "payloads on a volume", self.payload.persistent_volume, True)
        if profile is Profile.DURABLE_CONTROL:
            self._observed(subject, profile, "durable payloads", self.payload.durable, True)

    def _store(self, subject: str, profile: str) -> None:
        if self.runtime is None:
            self.miss(subject, profile, "run store", "durable and shared", "none", "configure a run store")
            return
        remedy = "choose a run store that keeps records outside the processes"
        for guarantee, is_given in (
            ("shared", self.runtime.shared),
            ("survives_process", self.runtime.survives_process),
        ):
            if not is_given:
                self.miss(subject, profile, guarantee, "yes", f"no ({self.runtime.adapter})", remedy)

    def _failures(self, subject: str, wanted: ChannelRequirement) -> None:
        if self.messaging.durability not in _ON_DISKS:
            found = f"{self.messaging.durability} ({self.messaging.adapter})"
            remedy = "choose a messaging adapter with persistent storage"
            self.miss(subject, wanted.profile, "persistent storage", "yes", found, remedy)
        copies, needed = self.messaging.copies, _copies(wanted)
        if isinstance(copies, Unknown):
            self._unread(subject, "copies", copies)
        elif copies.value < needed:
            remedy = f"keep {needed} copies, or tolerate fewer failures"
            self.miss(subject, wanted.profile, "copies", str(needed), str(copies.value), remedy)
        if self.payload is not None:
            volume = self.payload.persistent_volume
            self._observed(subject, wanted.profile, "payloads on a volume", volume, True)

    def _effects(self, subject: str, wanted: ChannelRequirement) -> None:
        if wanted.effects is Effects.EXACTLY_ONCE:
            remedy = "let the sink declare an idempotency key, or ask for at_least_once"
            self.miss(subject, wanted.profile, "exactly_once", "an idempotency key", "none", remedy)
        elif wanted.effects is Effects.KEYED:
            self._store(subject, "exactly_once")

    def _space(self, subject: str, wanted: ChannelRequirement) -> None:
        if self.payload is None or wanted.bounds is None:
            return
        free, needed = self.payload.free_bytes, wanted.bounds.size_bytes
        if isinstance(free, Unknown):
            self._unread(subject, "free bytes of the payload store", free)
        elif free.value < needed:
            remedy = "smaller bounds, or a larger store"
            self.miss(subject, wanted.profile, "payload bytes", str(needed), str(free.value), remedy)

    def _observed(
        self, subject: str, profile: str, guarantee: str, seen: Observation[bool], wanted: bool
    ) -> None:
        if isinstance(seen, Known):
            if seen.value is not wanted:
                remedy = "choose a payload store that gives it, or change its settings"
                self.miss(subject, profile, guarantee, _yes(wanted), _yes(seen.value), remedy)
        else:
            self._unread(subject, guarantee, seen)

    def _unread(self, subject: str, what: str, seen: Unknown) -> None:
        reason = f"{seen.reason}: {seen.detail}" if seen.detail else str(seen.reason)
        self.unknowns.append(f"{subject}: {what} ({reason})")


def _yes(value: bool) -> str:
    return "yes" if value else "no"
