"""Collects what a composition gives, what it definitely lacks, and what could not be read."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from videoflow.backends.outcomes import Known, Observation, Unknown
from videoflow.errors import IncompatibleProfile, Miss, UnobservableState
from videoflow.planner._admitted import Ground

T = TypeVar("T")


class Guarantee(StrEnum):
    """Everything that is ever wanted of a composition, as it is called in messages."""

    KNOWN_PROFILE = "a profile of this name"
    PROFILE = "the profile"
    STATED_ONCE = "one statement for each channel and profile"
    OWN_CHANNEL = "a channel of its own for each retention"
    READER = "an edge that reads it like this"
    MESSAGES = "a channel with messages"
    SURVIVAL = "what accepted messages survive"
    MESSAGE_COPIES = "copies of messages"
    RETENTION = "how long messages are kept"
    HORIZON = "a stated horizon"
    PAYLOAD_STORE = "a payload store"
    KEPT_PAYLOADS = "payloads that are never evicted"
    LASTING_PAYLOADS = "payloads that outlive the processes"
    PAYLOADS_ON_VOLUME = "payloads on a persistent volume"
    PAYLOAD_COPIES = "copies of payloads"
    PAYLOAD_ROOM = "room for all buffers at their worst"
    ITEM_SIZE = "room for its largest item"
    RUN_STORE = "a run store"
    SHARED_RECORDS = "run records that every process sees"
    LASTING_RECORDS = "run records that outlive the processes"
    RECORD_COPIES = "copies of run records"
    ATOMIC_COMMIT = "several run records committed as one"
    SINK = "a sink"
    EFFECT_KEY = "a sink whose target recognises an idempotency key"
    EFFECT_HORIZON = "keys that are remembered beyond the replay horizon"
    CHANNELS = "number of channels"
    SUBSCRIPTIONS = "number of subscriptions"
    REACH = "reach"
    FUSION = "nodes that call each other directly"
    BATCH = "inputs in one call"
    PROCESSORS = "processors for one replica"
    ALL_PROCESSORS = "processors for all replicas together"
    MEMORY = "memory of the host"
    CLOCKS = "a tolerance of at least the uncertainty of the clocks"
    ISOLATION = "a process for each task"
    INTERRUPTION = "calls that can be ended"
    ALLOCATOR = "an allocator of accelerators"
    ACCELERATORS = "accelerators"


@dataclass(frozen=True)
class Ask:
    """One guarantee that is wanted.

    Attributes:
        subject: Of what.
        profile: Which promise or requirement it is part of.
        guarantee: Which one.
        wanted: How much of it.
        rests_on: The capability that decides.
        remedy: What to do where it is not given.
    """

    subject: str
    profile: str
    guarantee: Guarantee
    wanted: str
    rests_on: str
    remedy: str


class Findings:
    """What was found so far.

    Attributes:
        grounds: What is given.
    """

    def __init__(self) -> None:
        self.grounds: list[Ground] = []
        self._misses: list[Miss] = []
        self._unread: list[str] = []

    def settle(self, ask: Ask, is_given: bool, found: str) -> None:
        """Notes whether something is given."""
        if is_given:
            self.grounds.append(
                Ground(
                    subject=ask.subject,
                    profile=ask.profile,
                    guarantee=ask.guarantee,
                    wanted=ask.wanted,
                    found=found,
                    rests_on=ask.rests_on,
                )
            )
        else:
            self._misses.append(Miss(ask.subject, ask.profile, ask.guarantee, ask.wanted, found, ask.remedy))

    def settle_seen(
        self, ask: Ask, seen: Observation[T], is_given: Callable[[T], bool], shown: Callable[[T], str]
    ) -> None:
        """Notes whether something is given that had to be read; unread is neither given nor missing."""
        if isinstance(seen, Known):
            self.settle(ask, is_given(seen.value), shown(seen.value))
        elif isinstance(seen, Unknown):
            reason = f"{seen.reason}, {seen.detail}" if seen.detail else str(seen.reason)
            self._unread.append(
                f"{ask.subject} ({ask.profile}): {ask.guarantee}: wanted {ask.wanted}, "
                f"and {ask.rests_on} could not be read: {reason}"
            )

    def conclude(self) -> None:
        """Returns if everything is given.

        Raises:
            IncompatibleProfile: Guarantees are definitely missing; every one is listed, and beside them what
                could not be read.
            UnobservableState: Nothing is definitely missing, and something could not be read.
        """
        if self._misses:
            raise IncompatibleProfile(self._misses, unread=self._unread)
        if self._unread:
            count = len(self._unread)
            raise UnobservableState(
                "a guarantee could not be read" if count == 1 else f"{count} guarantees could not be read",
                cause="\n".join(self._unread),
                effect="nothing was started; what is not known is not taken for given",
                remedy="let it be read (reach the backend, permit it), or drop the requirement",
            )


def yes(value: bool) -> str:
    """Says yes or no."""
    return "yes" if value else "no"
