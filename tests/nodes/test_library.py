"""The names of the node library: all are there, and those that come later are refused by name."""

import inspect
from pathlib import Path

import pytest

import videoflow as vf
from videoflow import nodes
from videoflow.testing import drive

LATER = {
    "Cameras": (["rtsp://a"],),
    "VideoFolder": ("videos",),
    "ImageFolder": ("pictures",),
    "ZoneCounter": ([(0, 0), (9, 0), (9, 9)],),
    "Loitering": ([(0, 0), (9, 0), (9, 9)],),
    "Blur": (),
    "ClipSink": ("clips",),
    "CsvSink": ("a.csv",),
    "CocoSink": ("a.json",),
    "WebhookSink": ("https://example.org",),
}
NOW = {
    "Annotator",
    "Collect",
    "Console",
    "Detector",
    "JsonlSink",
    "LineCounter",
    "SyntheticScene",
    "Tracker",
    "VideoSink",
    "VideoSource",
}


def test_the_names_of_the_library_are_frozen() -> None:
    assert set(nodes.__all__) == NOW | LATER.keys()
    assert set(nodes.__all__) <= set(dir(nodes))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Dectector'"):
        nodes.__getattr__("Dectector")


@pytest.mark.parametrize("name", sorted(LATER))
def test_a_node_that_comes_later_is_refused_when_it_is_made_and_says_what_to_do(name: str) -> None:
    with pytest.raises(vf.NotYet, match=f"{name} is not built yet") as refusal:
        getattr(nodes, name)(*LATER[name])
    assert refusal.value.code == "VF-NOT-YET"
    assert refusal.value.exit_status == 2
    assert refusal.value.remedy


@pytest.mark.parametrize("name", sorted(NOW | LATER.keys()))
def test_each_node_is_documented_with_its_arguments(name: str) -> None:
    node = getattr(nodes, name)
    described = inspect.getdoc(node) or ""
    for parameter in list(inspect.signature(node.__init__).parameters.values())[1:]:
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert f"    {parameter.name}: " in described, parameter.name
    assert ">>>" in described or name in LATER


def test_nodes_that_read_one_type_refuse_another_with_the_wiring_that_is_right(tmp_path: Path) -> None:
    makers: list[vf.Node] = [
        nodes.Annotator(),
        nodes.Detector(),
        nodes.LineCounter((0, 0, 9, 0)),
        nodes.Tracker(),
        nodes.VideoSink(tmp_path / "a.mp4"),
    ]
    for node in makers:
        with pytest.raises(
            TypeError, match=rf"{type(node).__name__} reads (Frame|Detections), not str: wire it"
        ):
            drive(node, ["a word"])
