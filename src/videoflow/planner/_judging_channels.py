"""Judges what single channels need: profile, survival, copies, payloads, horizon, effects."""

from collections.abc import Mapping
from typing import Final

from videoflow.backends.capabilities import (
    MessagingCapabilities,
    PayloadCapabilities,
    Profile,
)
from videoflow.backends.outcomes import Durability, Observation
from videoflow.planner._findings import Ask, Findings, Guarantee, yes
from videoflow.planner._requirements import ChannelRequirement, Effects, SinkDeclaration
from videoflow.planner._words import list_text, size_text

_SURVIVAL: Final = (Durability.MEMORY, Durability.HOST, Durability.STREAM, Durability.STREAM_QUORUM)
_SURVIVES: Mapping[Durability, str] = {
    Durability.MEMORY: "nothing: they end with their process",
    Durability.HOST: "the death of workers",
    Durability.STREAM: "the death of every process of the run",
    Durability.STREAM_QUORUM: "the death of every process, and the loss of a minority of servers",
}
_WITHOUT: Mapping[Profile, str] = {
    Profile.LIVE_LATEST: "read it without .latest(), or choose a messaging adapter that drops by key",
    Profile.RELIABLE_WORK: "choose a messaging adapter that keeps each item until its readers have settled "
    "it, or read the channel with .latest() if items may be lost",
    Profile.DURABLE_CONTROL: "choose a messaging adapter that keeps control records on disks, or drop the "
    "requirement",
    Profile.REPLAY_ARCHIVE: "choose a messaging adapter with archives, or write the items with a sink and "
    "drop the requirement",
}


class ChannelJudge:
    """Judges channels.

    Args:
        findings: Where it notes what it finds.
        messaging: Who carries them.
        payload: Who keeps their payloads, or None where they carry none.
        crosses_processes: Whether writers and readers live in processes of their own.
    """

    def __init__(
        self,
        findings: Findings,
        messaging: MessagingCapabilities,
        payload: PayloadCapabilities | None,
        *,
        crosses_processes: bool,
    ) -> None:
        self._findings = findings
        self._messaging = messaging
        self._payload = payload
        self._crosses_processes = crosses_processes

    def judge(self, wanted: ChannelRequirement) -> None:
        """Judges one channel."""
        known = [profile.value for profile in Profile]
        subject = f"channel {wanted.channel}"
        if wanted.profile not in known:
            remedy = f"choose one of {list_text(known, 'or')}"
            ask = Ask(subject, wanted.profile, Guarantee.KNOWN_PROFILE, "a known one", "the planner", remedy)
            self._findings.settle(ask, False, "no such profile")
            return
        profile = Profile(wanted.profile)
        if wanted.is_direct:
            remedy = "take the fuse label away, or drop the requirement"
            ask = Ask(subject, profile, Guarantee.MESSAGES, "yes", "the plan", remedy)
            self._findings.settle(ask, False, "a direct call inside one task, which keeps nothing")
            return
        self._judge_reader(subject, profile, wanted)
        self._judge_profile(subject, profile)
        self._judge_survival(subject, profile, wanted.tolerated_failures)
        self._judge_copies(subject, profile, wanted.tolerated_failures)
        if profile is Profile.REPLAY_ARCHIVE:
            self._judge_horizon(subject, profile, wanted)
        if self._payload is not None:
            self._judge_payloads(subject, profile, self._payload, wanted.tolerated_failures)
        if wanted.effects is Effects.EXACTLY_ONCE:
            self._judge_effects(subject, profile, wanted)
        self._judge_size(subject, profile, wanted)

    def _judge_reader(self, subject: str, profile: Profile, wanted: ChannelRequirement) -> None:
        if wanted.subscriptions or profile in (Profile.DURABLE_CONTROL, Profile.REPLAY_ARCHIVE):
            return
        live = profile is Profile.LIVE_LATEST
        remedy = f"read it {'with' if live else 'without'} .latest(), or drop the requirement"
        edge = "a live edge" if live else "a lossless edge"
        ask = Ask(subject, profile, Guarantee.READER, edge, "the flow", remedy)
        self._findings.settle(ask, False, "lossless edges only" if live else "live edges only")

    def _judge_profile(self, subject: str, profile: Profile) -> None:
        offered = list_text(sorted(self._messaging.profiles)) or "none"
        ask = Ask(subject, profile, Guarantee.PROFILE, profile, "messaging.profiles", _WITHOUT[profile])
        found = f"{offered} ({self._messaging.adapter})"
        self._findings.settle(ask, profile in self._messaging.profiles, found)

    def _judge_survival(self, subject: str, profile: Profile, failures: int) -> None:
        needed = Durability.MEMORY
        if failures:
            needed = Durability.STREAM_QUORUM
        elif profile in (Profile.DURABLE_CONTROL, Profile.REPLAY_ARCHIVE):
            needed = Durability.STREAM
        elif profile is Profile.RELIABLE_WORK and self._crosses_processes:
            needed = Durability.HOST
        if needed is not Durability.MEMORY:
            settle_survival(self._findings, self._messaging, subject, profile, needed)

    def _judge_copies(self, subject: str, profile: Profile, failures: int) -> None:
        if failures:
            settle_copies(
                self._findings,
                Ask(
                    subject,
                    profile,
                    Guarantee.MESSAGE_COPIES,
                    copies_text(failures),
                    "messaging.copies",
                    copies_remedy(failures),
                ),
                self._messaging.copies,
                failures,
                self._messaging.adapter,
            )

    def _judge_horizon(self, subject: str, profile: Profile, wanted: ChannelRequirement) -> None:
        horizon = wanted.horizon_seconds
        if horizon is None:
            remedy = "say horizon_seconds, how long an item may be replayed after it was accepted"
            ask = Ask(subject, profile, Guarantee.HORIZON, "seconds", "the flow", remedy)
            self._findings.settle(ask, False, "none")
            return
        ask = Ask(
            subject,
            profile,
            Guarantee.RETENTION,
            f"{horizon:g} s",
            "messaging.retention_seconds",
            "let the archive keep for longer, or ask for a shorter horizon",
        )
        self._findings.settle_seen(
            ask,
            self._messaging.retention_seconds,
            lambda kept: kept >= horizon,
            lambda kept: f"{kept:g} s ({self._messaging.adapter})",
        )

    def _judge_payloads(
        self, subject: str, profile: Profile, payload: PayloadCapabilities, failures: int
    ) -> None:
        if profile is Profile.LIVE_LATEST and not failures:
            return
        remedy = f"let {payload.adapter} never evict, or choose a payload store that does not"
        ask = Ask(subject, profile, Guarantee.KEPT_PAYLOADS, "yes", "payload.evictable", remedy)
        self._findings.settle_seen(
            ask, payload.evictable, lambda evicts: not evicts, lambda e: f"{yes(not e)} ({payload.adapter})"
        )
        if profile in (Profile.DURABLE_CONTROL, Profile.REPLAY_ARCHIVE):
            settle_lasting(self._findings, payload, subject, profile)
        if profile is Profile.REPLAY_ARCHIVE or failures:
            remedy = "put the payload store on a persistent volume, or drop the requirement"
            on_volume = Ask(
                subject, profile, Guarantee.PAYLOADS_ON_VOLUME, "yes", "payload.persistent_volume", remedy
            )
            self._findings.settle_seen(
                on_volume, payload.persistent_volume, bool, lambda is_so: f"{yes(is_so)} ({payload.adapter})"
            )
        if failures:
            copies = Ask(
                subject,
                profile,
                Guarantee.PAYLOAD_COPIES,
                copies_text(failures),
                "payload.copies",
                copies_remedy(failures),
            )
            settle_copies(self._findings, copies, payload.copies, failures, payload.adapter)

    def _judge_effects(self, subject: str, profile: Profile, wanted: ChannelRequirement) -> None:
        for sink in wanted.sinks:
            settle_effects(
                self._findings, f"{subject} into {sink.sink}", profile, sink, wanted.horizon_seconds
            )
        if not wanted.sinks:
            remedy = "state it of a channel that a sink reads, or drop it"
            ask = Ask(subject, profile, Guarantee.SINK, "one that reads it", "the flow", remedy)
            self._findings.settle(ask, False, "none")

    def _judge_size(self, subject: str, profile: Profile, wanted: ChannelRequirement) -> None:
        if wanted.item_bytes is None:
            return
        payload = self._payload
        limit = self._messaging.maximum_envelope_bytes if payload is None else payload.maximum_object_bytes
        adapter = self._messaging.adapter if payload is None else payload.adapter
        rests_on = "messaging.maximum_envelope_bytes" if payload is None else "payload.maximum_object_bytes"
        remedy = "smaller frames, or max_item_bytes on the class if its outputs are smaller"
        needed, most = size_text(wanted.item_bytes), size_text(limit)
        if needed == most:
            needed, most = f"{wanted.item_bytes} bytes", f"{limit} bytes"
        ask = Ask(subject, profile, Guarantee.ITEM_SIZE, needed, rests_on, remedy)
        self._findings.settle(ask, wanted.item_bytes <= limit, f"at most {most} ({adapter})")


def settle_effects(
    findings: Findings, subject: str, profile: str, sink: SinkDeclaration, horizon: float | None
) -> None:
    """Notes whether the effects of a sink happen once, however often it is given an item."""
    kept, rests_on = sink.effect_key_seconds, "effect_key_seconds of the sink"
    remedy = (
        "write to something that recognises a repeated key and say effect_key_seconds on the class of "
        f"{sink.sink}, or drop exactly_once_effects: it is then at-least-once"
    )
    key = Ask(subject, profile, Guarantee.EFFECT_KEY, "yes", rests_on, remedy)
    findings.settle(key, kept != 0, "none is declared" if kept == 0 else "declared")
    if kept != 0:
        wanted = "for as long as the run" if horizon is None else f"{horizon:g} s"
        remedy = "state a horizon_seconds that is not longer, or let the target remember keys for longer"
        remembered = Ask(subject, profile, Guarantee.EFFECT_HORIZON, wanted, rests_on, remedy)
        is_given = kept is None or (horizon is not None and kept >= horizon)
        findings.settle(remembered, is_given, "for ever" if kept is None else f"{kept:g} s")


def settle_survival(
    findings: Findings, messaging: MessagingCapabilities, subject: str, profile: str, needed: Durability
) -> None:
    """Notes whether accepted messages survive what they must."""
    found = messaging.durability
    remedy = "choose a messaging adapter whose messages do, or drop the requirement"
    ask = Ask(subject, profile, Guarantee.SURVIVAL, _SURVIVES[needed], "messaging.durability", remedy)
    is_given = _SURVIVAL.index(found) >= _SURVIVAL.index(needed)
    findings.settle(ask, is_given, f"{_SURVIVES[found]} ({messaging.adapter})")


def settle_lasting(findings: Findings, payload: PayloadCapabilities, subject: str, profile: str) -> None:
    """Notes whether payloads outlive the processes of the run."""
    remedy = "choose a payload store that keeps objects outside the processes, or drop the requirement"
    ask = Ask(subject, profile, Guarantee.LASTING_PAYLOADS, "yes", "payload.durable", remedy)
    findings.settle_seen(ask, payload.durable, bool, lambda is_so: f"{yes(is_so)} ({payload.adapter})")


def settle_copies(findings: Findings, ask: Ask, seen: Observation[int], failures: int, adapter: str) -> None:
    """Notes whether there are enough copies to lose some."""
    needed = copies_needed(failures)
    findings.settle_seen(ask, seen, lambda copies: copies >= needed, lambda copies: f"{copies} ({adapter})")


def copies_needed(failures: int) -> int:
    """Returns how many copies leave a majority when so many are lost."""
    return 2 * failures + 1


def copies_text(failures: int) -> str:
    """Says how many copies are needed, and why."""
    return f"{copies_needed(failures)} (so that {failures} may be lost)"


def copies_remedy(failures: int) -> str:
    """Says what to do where there are fewer."""
    return f"keep {copies_needed(failures)} copies on as many servers, or tolerate fewer failures"
