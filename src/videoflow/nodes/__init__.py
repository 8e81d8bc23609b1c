"""The node library: sources, detectors, trackers, counters, annotators and sinks.

Used by authors of flows. Importing it loads no node, and naming a node loads no heavy library; a node loads
what it needs when it opens, and says there what is missing. Nodes that are named here and not built yet are
refused with `NotYet` when they are made.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from videoflow.nodes._later import (
        Blur,
        Cameras,
        ClipSink,
        CocoSink,
        CsvSink,
        ImageFolder,
        Loitering,
        VideoFolder,
        WebhookSink,
        ZoneCounter,
    )
    from videoflow.nodes.records import Collect, Console, JsonlSink
    from videoflow.nodes.scene import SyntheticScene
    from videoflow.nodes.video import VideoSink, VideoSource
    from videoflow.nodes.vision import Annotator, Detector, LineCounter, Tracker

__all__ = [
    "Annotator",
    "Blur",
    "Cameras",
    "ClipSink",
    "CocoSink",
    "Collect",
    "Console",
    "CsvSink",
    "Detector",
    "ImageFolder",
    "JsonlSink",
    "LineCounter",
    "Loitering",
    "SyntheticScene",
    "Tracker",
    "VideoFolder",
    "VideoSink",
    "VideoSource",
    "WebhookSink",
    "ZoneCounter",
]

_ROOMS = ("video", "scene", "vision", "records", "_later")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'videoflow.nodes' has no attribute {name!r}", name=name)
    from importlib import import_module

    for room in _ROOMS:
        found: object = getattr(import_module(f"videoflow.nodes.{room}"), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module 'videoflow.nodes' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
