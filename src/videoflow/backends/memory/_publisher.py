"""Publishing: statements are appended in order, all or none, as soon as there is room.

Used through `MemoryMessaging`. It refuses a handle that is not of its own making, and a terminator of
another kind.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Final

from videoflow.backends.memory._broker import MemoryBroker
from videoflow.backends.memory._channel import Channel
from videoflow.backends.memory._owned import Owned
from videoflow.backends.messaging import ChannelId, Envelope, Kind, Publisher
from videoflow.backends.outcomes import Accepted, PublicationOutcome, Rejected, RejectReason
from videoflow.clock import Clock, Signal
from videoflow.errors import ContractBroken

_ENDS: Final = (Kind.END, Kind.ABORT)


class _Intents:
    """The intents of one `begin_publish`: each ends when its publication is in every layout (rule 16)."""

    def __init__(self, envelopes: Sequence[Envelope]) -> None:
        self._missing: dict[str, int] = {}
        for envelope in envelopes:
            if envelope.payloads:
                name = envelope.publication_id
                self._missing[name] = self._missing.get(name, 0) + 1

    def __bool__(self) -> bool:
        return bool(self._missing)

    def accepted(self, envelope: Envelope) -> bool:
        """Counts an accepted envelope; returns whether it was the last of its publication."""
        self._missing[envelope.publication_id] -= 1
        return not self._missing[envelope.publication_id]


class _Attempt:
    """One statement under way."""

    __slots__ = ("channel", "deadline", "intents", "outcomes", "statement")

    def __init__(self, channel: Channel, intents: _Intents, deadline: float) -> None:
        self.channel = channel
        self.intents = intents
        self.deadline = deadline
        self.statement: list[Envelope] = []
        self.outcomes: list[PublicationOutcome] | None = None

    def give_up(self) -> None:
        """Makes it a definite rejection; it is not tried again."""
        self.outcomes = [
            Rejected(envelope.publication_id, RejectReason.FULL, retryable=True)
            for envelope in self.statement
        ]


class MemoryPublisher(Owned, Publisher):
    """Appends envelopes for one owner."""

    def __init__(self, broker: MemoryBroker, owner: str, clock: Clock) -> None:
        super().__init__(broker, owner, clock)
        self._pending: dict[Channel, deque[_Attempt]] = {}
        self._stirred = False
        self._room = Signal(lambda: self._stirred)
        self._last_channel: tuple[ChannelId, int, Channel] | None = None

    def begin_publish(self, envelopes: Sequence[Envelope], *, deadline: float) -> Sequence[Hashable]:
        """Appends what fits; the rest waits, in order, and is tried by `outcomes` until its deadline."""
        now = self._clock.monotonic()
        intents = _Intents(envelopes)
        attempts: dict[tuple[Channel, str], _Attempt] = {}
        handles: list[Hashable] = []
        with self._broker.lock:
            for envelope in envelopes:
                channel = self._channel(envelope.channel)
                key = channel, envelope.input_id
                attempt = attempts.get(key)
                if attempt is None:
                    attempt = attempts[key] = _Attempt(channel, intents, deadline)
                handles.append((attempt, len(attempt.statement)))
                attempt.statement.append(envelope)
            self._advance(now)
            for attempt in attempts.values():
                if attempt.channel in self._pending:
                    self._pending[attempt.channel].append(attempt)
                elif not self._try(attempt, now):
                    self._pending[attempt.channel] = deque([attempt])
                    attempt.channel.waiting_for_room[self.owner] = self._stir
            for channel in {attempt.channel for attempt in attempts.values()}:
                channel.tell_readers()
        return handles

    def outcomes(self, handles: Sequence[Hashable], *, deadline: float) -> Sequence[PublicationOutcome]:
        """Returns one outcome per handle, waiting for room; what found none is given up, not sent later."""
        asked = [_attempt(handle) for handle in handles]
        while True:
            now = self._clock.monotonic()
            with self._broker.lock:
                self._stirred = False
                self._advance(now)
                open_ = [attempt for attempt, _ in asked if attempt.outcomes is None]
                until = min([deadline, *(attempt.deadline for attempt in open_)])
                if not open_ or until <= now or self._was_interrupted():
                    for attempt in open_:
                        self._give_up(attempt)
                    return [_outcome(attempt, index) for attempt, index in asked]
            self._clock.wait([self._room, self._interruption], until)

    def terminate(
        self, channel: ChannelId, slot: int, epoch: int, kind: Kind, *, deadline: float
    ) -> Sequence[PublicationOutcome]:
        """Stamps the end of a slot; it takes no room and never waits."""
        if kind not in _ENDS:
            raise ContractBroken(f"a terminator is end or abort, not {kind}")
        with self._broker.lock:
            return self._broker.channel(channel).terminate(slot, epoch, kind)

    def _channel(self, name: ChannelId) -> Channel:
        last, removals = self._last_channel, self._broker.removals
        if last is None or last[0] is not name or last[1] != removals:
            last = self._last_channel = name, removals, self._broker.channel(name)
        return last[2]

    def _stir(self) -> None:
        self._stirred = True
        self._room.notify()

    def _try(self, attempt: _Attempt, now: float) -> bool:
        outcomes = attempt.channel.accept(attempt.statement, now)
        if outcomes is None:
            return False
        attempt.outcomes = outcomes
        if not attempt.intents:
            return True
        for envelope, outcome in zip(attempt.statement, outcomes, strict=True):
            if envelope.payloads and isinstance(outcome, Accepted) and attempt.intents.accepted(envelope):
                self._broker.end_intent(envelope)
        return True

    def _advance(self, now: float) -> None:
        """Tries what waits, the oldest of each channel first; what is past its deadline is given up."""
        for channel, waiting in tuple(self._pending.items()):
            before = len(waiting)
            while waiting:
                if waiting[0].deadline < now:
                    self._give_up(waiting[0])
                elif self._try(waiting[0], now):
                    waiting.popleft()
                else:
                    break
            if len(waiting) < before:
                channel.tell_readers()
            if not waiting:
                self._forget(channel)

    def _give_up(self, attempt: _Attempt) -> None:
        """Gives up an attempt and what waits behind it, so that the order stays."""
        waiting = self._pending.get(attempt.channel, deque())
        while attempt in waiting:
            waiting.pop().give_up()
        if not waiting:
            self._forget(attempt.channel)

    def _forget(self, channel: Channel) -> None:
        self._pending.pop(channel, None)
        channel.waiting_for_room.pop(self.owner, None)


def _attempt(handle: Hashable) -> tuple[_Attempt, int]:
    if isinstance(handle, tuple) and len(handle) == 2 and isinstance(handle[0], _Attempt):
        return handle
    raise ContractBroken("a handle that begin_publish did not return")


def _outcome(attempt: _Attempt, index: int) -> PublicationOutcome:
    if attempt.outcomes is None:
        raise ContractBroken("an attempt that is neither under way nor ended")
    return attempt.outcomes[index]
