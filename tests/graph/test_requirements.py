"""Requirements: stated in a flow or on a command line, checked, and carried by the document."""

from dataclasses import fields
from typing import Any

import pytest

import videoflow as vf
from tests.graph.nodes import Numbers, Sink
from videoflow.graph import parse_requirements
from videoflow.graph.spec import ChannelRequirementSpec, FlowSpec, RequirementsSpec

ALL = vf.Requirements(
    channels=(
        vf.ChannelRequirement(
            "count",
            profile="replay_archive",
            tolerated_failures=2,
            horizon_seconds=60.0,
            exactly_once_effects=True,
        ),
    ),
    tolerated_failures=1,
    horizon_seconds=30.0,
    exactly_once_effects=True,
    durable_control=True,
    restart_safe=True,
    isolated=True,
    dedicated_cpus=True,
)


def flow(requirements: vf.Requirements | None = None) -> vf.Flow:
    return vf.Flow(
        [Sink("log.txt", name="log")(Numbers(name="count"))], name="counting", requirements=requirements
    )


def causes(requirements: vf.Requirements) -> list[str]:
    with pytest.raises(vf.FlowError) as caught:
        flow(requirements).compile()
    assert isinstance(caught.value, vf.FlowInvalid)
    return [f"{problem.node}: {problem.cause}" for problem in caught.value.problems]


def test_every_field_is_in_the_document_and_comes_back() -> None:
    spec = flow(ALL).compile()
    assert FlowSpec.from_json(spec.to_json()) == spec
    for field in fields(vf.Requirements):
        if field.name != "channels":
            assert getattr(spec.requirements, field.name) == getattr(ALL, field.name) != field.default
    [channel], [stated] = spec.requirements.channels, ALL.channels
    for field in fields(vf.ChannelRequirement):
        assert getattr(channel, field.name) == getattr(stated, field.name) != field.default


def test_document_and_authors_have_the_same_fields() -> None:
    assert [field.name for field in fields(vf.Requirements)] == list(RequirementsSpec.__struct_fields__)
    assert [field.name for field in fields(vf.ChannelRequirement)] == list(
        ChannelRequirementSpec.__struct_fields__
    )
    for kind in (vf.Requirements, vf.ChannelRequirement):
        assert all(f"{field.name}:" in str(kind.__doc__) for field in fields(kind))


def test_nothing_asked_is_nothing_in_the_document() -> None:
    assert flow().compile().requirements == RequirementsSpec()


def test_a_misspelt_requirement_in_a_document_is_refused() -> None:
    document = flow(ALL).compile().to_json().replace(b'"restart_safe"', b'"restart_save"')
    with pytest.raises(vf.FlowFileError, match="restart_save"):
        FlowSpec.from_json(document)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tolerated_failures": -1}, "counting: the requirement tolerated_failures is -1"),
        ({"tolerated_failures": True}, "counting: the requirement tolerated_failures is True"),
        ({"horizon_seconds": 0}, "counting: the requirement horizon_seconds is 0"),
        ({"restart_safe": "yes"}, "counting: the requirement restart_safe is 'yes'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(wrong: dict[str, Any], said: str) -> None:
    assert causes(vf.Requirements(**wrong)) == [said]


def test_a_channel_that_nothing_reads_is_refused_with_the_nearest() -> None:
    with pytest.raises(vf.FlowInvalid) as caught:
        flow(vf.Requirements((vf.ChannelRequirement("cuont"),))).compile()
    [problem] = caught.value.problems
    assert problem.cause == "it requires something of the channel 'cuont', which nothing reads"
    assert problem.remedy == "did you mean 'count'?"


def test_one_channel_is_stated_once_for_each_profile() -> None:
    one = vf.ChannelRequirement("count", tolerated_failures=1)
    assert causes(vf.Requirements((one, one))) == [
        "counting: it states requirements of the channel 'count' twice"
    ]
    archive = vf.ChannelRequirement("count", profile="replay_archive", horizon_seconds=1.0)
    assert len(flow(vf.Requirements((one, archive))).compile().requirements.channels) == 2


def test_only_requirements_are_requirements() -> None:
    careless: Any = {"restart_safe": True}
    with pytest.raises(vf.UsageError, match="cannot be dict"):
        flow(careless)


def test_a_command_line_says_the_same() -> None:
    texts = [
        "tolerated_failures=1",
        "horizon_seconds=30",
        "exactly_once_effects",
        "durable_control=yes",
        "restart_safe=true",
        "isolated=on",
        "dedicated_cpus=1",
        "count:profile=replay_archive",
        "count:tolerated_failures=2",
        "count:horizon_seconds=60",
        "count:exactly_once_effects",
    ]
    assert parse_requirements(texts) == ALL


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("restart_save", "known are tolerated_failures", "did you mean 'restart_safe'?"),
        ("profile=live_latest", "known are tolerated_failures", "--require CHANNEL:profile="),
        ("count:isolated", "known are profile", "known are"),
        ("restart_safe=maybe", "neither yes nor no", "--require restart_safe"),
        ("restart_safe=no", "not taken away", "leave it out"),
        ("tolerated_failures=many", "'many' is not a whole number", "tolerated_failures=1"),
        ("tolerated_failures=1.5", "'1.5' is not a whole number", "tolerated_failures=1"),
        ("horizon_seconds=nan", "'nan' is not seconds above 0", "horizon_seconds=3600"),
        ("count:profile=", "'' is not the name of a profile", "profile=replay_archive"),
    ],
)
def test_a_text_that_is_no_requirement_is_refused(text: str, cause: str, remedy: str) -> None:
    with pytest.raises(vf.ArgumentInvalid) as caught:
        parse_requirements([text])
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy


def test_a_requirement_is_given_once() -> None:
    with pytest.raises(vf.ArgumentInvalid, match="given twice"):
        parse_requirements(["tolerated_failures=1", "tolerated_failures=2"])


def test_what_a_command_line_adds_never_weakens() -> None:
    weak = parse_requirements(["count:profile=replay_archive", "count:tolerated_failures=0", "isolated"])
    both = ALL.strengthened(weak)
    assert both == ALL
    assert weak.strengthened(ALL) == ALL
    more = vf.Requirements((vf.ChannelRequirement("count", tolerated_failures=1),), horizon_seconds=90.0)
    stronger = ALL.strengthened(more)
    assert stronger.horizon_seconds == 90.0
    assert [each.profile for each in stronger.channels] == ["replay_archive", None]
