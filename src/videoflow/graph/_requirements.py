"""What a flow asks of the backends that will run it: stated in the flow, or on the command line.

Used by authors of flows as `vf.Requirements`, by the compiler, which puts it into the document, and by the
command line, which adds to it. Whether a composition of backends gives what is asked is the planner's to
judge; refused here is what makes no sense by itself, and a text that is no requirement.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from math import inf
from typing import Any

from videoflow.errors import ArgumentInvalid, Problem
from videoflow.graph._options import nearest
from videoflow.graph.spec import ChannelRequirementSpec, FlowSpec, RequirementsSpec

_TRUE, _FALSE = ("true", "yes", "on", "1", ""), ("false", "no", "off", "0")
_EXAMPLES = {"profile": "replay_archive", "tolerated_failures": "1", "horizon_seconds": "3600"}


@dataclass(frozen=True, slots=True)
class ChannelRequirement:
    """What one channel must guarantee, beyond what its edges say.

    Attributes:
        channel: `node` or `node.port`; one that other nodes read.
        profile: `live_latest` (for its live edges), `reliable_work` (for its lossless edges),
            `durable_control` or `replay_archive`; None: all that its edges already are.
        tolerated_failures: So many stores may fail at once and nothing accepted is lost.
        horizon_seconds: How long after it was accepted an item may be replayed; an archive needs one.
        exactly_once_effects: The effects of its readers happen once, however often an item is delivered:
            each sink must say by `effect_key_seconds` how long what it writes to recognises a repetition.
    """

    channel: str
    profile: str | None = None
    tolerated_failures: int = 0
    horizon_seconds: float | None = None
    exactly_once_effects: bool = False


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a flow asks of the backends that will run it, beyond what its edges say.

    An engine either gives all of it or refuses to start, and says what is missing; it never gives less.

    Attributes:
        channels: Of single channels; the fields below hold for every channel.
        tolerated_failures: So many stores may fail at once and nothing accepted is lost: messages, payloads
            and run records need twice as many copies and one more, on disks.
        horizon_seconds: How long after it was accepted an item may be replayed; None: as long as the run.
        exactly_once_effects: The effects of every sink happen once.
        durable_control: The state of the run and its last records outlive its controller and workers.
        restart_safe: The run can go on after all of its processes have died.
        isolated: A node that ends its process leaves the others running, and a call that hangs is ended.
        dedicated_cpus: The processors that nodes ask for (`Resources.cpus`) are theirs alone: together they
            must be there. Without it tasks share them.
    """

    channels: tuple[ChannelRequirement, ...] = ()
    tolerated_failures: int = 0
    horizon_seconds: float | None = None
    exactly_once_effects: bool = False
    durable_control: bool = False
    restart_safe: bool = False
    isolated: bool = False
    dedicated_cpus: bool = False

    def strengthened(self, other: "Requirements") -> "Requirements":
        """Returns what both ask: of each field the stronger value.

        >>> one, other = Requirements(tolerated_failures=1), Requirements(isolated=True)
        >>> one.strengthened(other)  # doctest: +ELLIPSIS
        Requirements(channels=(), tolerated_failures=1, ..., isolated=True, dedicated_cpus=False)
        """
        channels = {(each.channel, each.profile): each for each in self.channels}
        for each in other.channels:
            key = (each.channel, each.profile)
            known = channels.get(key)
            channels[key] = each if known is None else ChannelRequirement(*key, **_stronger(known, each))
        return Requirements(tuple(channels.values()), **_stronger(self, other))


_Stated = Requirements | ChannelRequirement
_WHICH = ("channels", "channel", "profile")


def _stronger(one: _Stated, other: _Stated) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in [field.name for field in fields(one) if field.name not in _WHICH]:
        values = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        found[name] = max(values, default=None)
    return found


def requirements_spec(stated: Requirements) -> RequirementsSpec:
    """Returns requirements as part of the document."""
    parts = asdict(stated)
    parts["channels"] = tuple(ChannelRequirementSpec(**asdict(each)) for each in stated.channels)
    return RequirementsSpec(**parts)


def check_requirements(stated: Requirements, spec: FlowSpec) -> Iterator[Problem]:
    """Yields what is wrong with requirements by themselves, and channels that the flow does not have."""
    yield from _check_fields(spec.flow_id, stated)
    read = {str(port) for port in spec.ports_read()}
    for each in stated.channels:
        if each.channel not in read:
            yield Problem(
                spec.flow_id,
                f"it requires something of the channel {each.channel!r}, which nothing reads",
                nearest(each.channel, sorted(read)),
            )
        yield from _check_fields(f"{spec.flow_id}, channel {each.channel}", each)
    for node in spec.nodes:
        kept = node.traits.effect_key_seconds
        if kept is not None and not _is_seconds(kept, above=-1e-9):
            yield Problem(
                node.name,
                f"effect_key_seconds is {kept!r}",
                "make it seconds, 0 for not at all, None for ever",
            )
    named = [(each.channel, each.profile) for each in stated.channels]
    for channel, profile in dict.fromkeys(named):
        if named.count((channel, profile)) > 1:
            cause = f"it states requirements of the channel {channel!r} twice"
            yield Problem(spec.flow_id, cause, "put them into one ChannelRequirement")


def _check_fields(subject: str, stated: _Stated) -> Iterator[Problem]:
    for field in fields(stated):
        value = getattr(stated, field.name)
        if field.name in _WHICH:
            continue
        wanted = _wanted(field.name)
        if not _fits(field.name, value):
            yield Problem(subject, f"the requirement {field.name} is {value!r}", f"make it {wanted}")


def _wanted(name: str) -> str:
    if name == "tolerated_failures":
        return "a whole number of stores, 0 or more"
    return "seconds above 0, or None" if name == "horizon_seconds" else "True or False"


def _fits(name: str, value: object) -> bool:
    if name == "tolerated_failures":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if name == "horizon_seconds":
        return value is None or _is_seconds(value, above=0.0)
    return isinstance(value, bool)


def _is_seconds(value: object, *, above: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and above < value < inf


def parse_requirements(texts: Iterable[str]) -> Requirements:
    """Returns requirements written as `name=value`, or `channel:name=value` for one channel.

    >>> parse_requirements(["isolated", "tolerated_failures=1"]).tolerated_failures
    1
    >>> parse_requirements(["detect:profile=replay_archive", "detect:horizon_seconds=3600"]).channels
    ... # doctest: +ELLIPSIS
    (ChannelRequirement(channel='detect', profile='replay_archive', ..., horizon_seconds=3600.0, ...),)

    Raises:
        ArgumentInvalid: No such requirement, or a value that it cannot have.
    """
    flow: dict[str, Any] = {}
    channels: dict[str, dict[str, Any]] = {}
    for text in texts:
        written, _, value = text.partition("=")
        channel, colon, name = written.strip().rpartition(":")
        into = channels.setdefault(channel, {}) if colon else flow
        known = [field.name for field in fields(ChannelRequirement if colon else Requirements)]
        known = [each for each in known if each not in ("channel", "channels")]
        if name not in known:
            of = f"of the channel {channel}" if colon else "of a flow"
            raise ArgumentInvalid(
                f"there is no requirement {name!r} {of}",
                cause=f"known are {', '.join(known)}",
                effect="nothing was started",
                remedy=_near(name, known, colon=bool(colon)),
            )
        if name in into:
            raise _refused(text, "it is given twice", "give it once")
        into[name] = _value(text, name, value.strip())
    single = tuple(ChannelRequirement(name, **parts) for name, parts in channels.items())
    return Requirements(single, **flow)


def _near(name: str, known: list[str], *, colon: bool) -> str:
    channel_only = [field.name for field in fields(ChannelRequirement)]
    if not colon and name in channel_only:
        return f"name the channel: --require CHANNEL:{name}={_EXAMPLES.get(name, 'yes')}"
    return nearest(name, known)


def _value(text: str, name: str, value: str) -> object:
    if name == "profile":
        found: object = value or None
    elif name in ("tolerated_failures", "horizon_seconds"):
        found = _number(value)
        if name == "tolerated_failures" and isinstance(found, float) and found.is_integer():
            found = int(found)
    elif value.lower() in _TRUE:
        return True
    elif value.lower() in _FALSE:
        raise _refused(text, "requirements are added on a command line, not taken away", "leave it out")
    else:
        raise _refused(text, f"{value!r} is neither yes nor no", f"write --require {name}")
    if found is None or (name != "profile" and not _fits(name, found)):
        example = f"such as {name}={_EXAMPLES[name]}"
        wanted = "the name of a profile" if name == "profile" else _wanted(name).removesuffix(", or None")
        raise _refused(text, f"{value!r} is not {wanted}", f"write it like this, {example}")
    return found


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _refused(text: str, cause: str, remedy: str) -> ArgumentInvalid:
    return ArgumentInvalid(
        f"the requirement {text!r} cannot be used", cause=cause, effect="nothing was started", remedy=remedy
    )


def stated_in(spec: RequirementsSpec) -> Mapping[str, Any]:
    """Returns the fields that ask for something, by name, channels apart.

    >>> dict(stated_in(RequirementsSpec(isolated=True)))
    {'isolated': True}
    """
    defaults = {field.name: field.default for field in fields(Requirements) if field.default is not MISSING}
    return {
        name: getattr(spec, name)
        for name in defaults
        if name != "channels" and getattr(spec, name) != defaults[name]
    }
