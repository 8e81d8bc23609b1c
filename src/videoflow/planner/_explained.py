"""What was required, what was admitted, and which capability it rests on, as sections of an explanation."""

from collections.abc import Iterator, Mapping

from videoflow.backends.capabilities import Profile
from videoflow.graph import stated_in
from videoflow.graph.spec import ChannelRequirementSpec
from videoflow.planner._admitted import AdmittedChannel, CompositionPlan, Ground
from videoflow.planner._findings import Guarantee
from videoflow.planner._sections import Row, Section
from videoflow.planner._words import list_text
from videoflow.planner.plan import Plan

_PROMISES: Mapping[Profile, str] = {
    Profile.LIVE_LATEST: "the backlog is bounded; what is not taken in time is dropped, and counted",
    Profile.RELIABLE_WORK: "every accepted item stays until each of its readers has settled it",
    Profile.DURABLE_CONTROL: "state and last records of the run outlive its controller and its workers",
    Profile.REPLAY_ARCHIVE: "items are kept for a stated time, whoever has read them",
}
_EACH_CHANNEL = (Guarantee.PROFILE, Guarantee.ITEM_SIZE)
"""Said in the table of channels, or nothing but a size: left out of the table of grounds."""


def required_section(plan: Plan) -> Section | None:
    """Returns what the flow states beyond its edges, or None where it states nothing."""
    requirements = plan.spec.requirements
    rows = [Row(("the flow", name, _shown(value))) for name, value in stated_in(requirements).items()]
    rows += [row for channel in requirements.channels for row in _channel_rows(channel)]
    if not rows:
        return None
    return Section("Required", (), ("of", "requirement", "value"), tuple(rows))


def admitted_sections(plan: Plan) -> Iterator[Section]:
    """Yields what the backends guarantee: for each channel, then what all of it rests on."""
    admitted = plan.admitted
    if admitted.channels:
        used = [profile for profile in Profile if any(c.profile is profile for c in admitted.channels)]
        yield Section(
            "Admitted channels",
            tuple(f"{profile}: {_PROMISES[profile]}" for profile in used),
            ("channel", "profile", "carried by", "between", "rests on"),
            tuple(Row(_channel_cells(channel)) for channel in admitted.channels),
        )
    rows = tuple(_ground_rows(admitted))
    if rows:
        yield Section("What that rests on", (), ("of", "guarantee", "wanted", "found", "capability"), rows)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _channel_rows(channel: ChannelRequirementSpec) -> Iterator[Row]:
    parts: Mapping[str, object] = {
        "profile": channel.profile,
        "tolerated_failures": channel.tolerated_failures,
        "horizon_seconds": channel.horizon_seconds,
        "exactly_once_effects": channel.exactly_once_effects,
    }
    for name, value in parts.items():
        if value:
            yield Row((f"channel {channel.channel}", name, _shown(value)))


def _channel_cells(channel: AdmittedChannel) -> tuple[str, ...]:
    name = channel.channel if channel.partitions == 1 else f"{channel.channel} x{channel.partitions}"
    rests_on = ", ".join(dict.fromkeys(ground.rests_on for ground in channel.grounds))
    between = "" if channel.distance is None else channel.distance.value
    return name, channel.profile, channel.carried_by, between, rests_on


def _ground_rows(admitted: CompositionPlan) -> Iterator[Row]:
    """Yields the grounds; what several subjects share is said once."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for ground in [ground for channel in admitted.channels for ground in channel.grounds]:
        if ground.guarantee not in _EACH_CHANNEL:
            shared.setdefault(_ground_cells(ground), []).append(ground.subject)
    for ground in admitted.grounds:
        shared.setdefault(_ground_cells(ground), []).append(ground.subject)
    for cells, subjects in shared.items():
        yield Row((_subjects_text(list(dict.fromkeys(subjects))), *cells))


def _subjects_text(subjects: list[str]) -> str:
    kinds = {subject.partition(" ")[0] for subject in subjects}
    if len(subjects) > 1 and kinds in ({"channel"}, {"task"}):
        return f"{len(subjects)} {kinds.pop()}s"
    return list_text(subjects)


def _ground_cells(ground: Ground) -> tuple[str, ...]:
    return ground.guarantee, ground.wanted, ground.found, ground.rests_on
