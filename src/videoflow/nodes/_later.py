"""Nodes that the library names and does not have yet, with the parameters that they will take.

Used through `videoflow.nodes`. Each is refused with `NotYet` when it is made, and says what to use meanwhile.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn, Unpack

from videoflow.errors import NotYet
from videoflow.graph import Consumer, NodeOptions, Processor, Producer

Points = Sequence[tuple[float, float]]


class Cameras(Producer):
    """Reads many cameras as one merged source (not built yet).

    Args:
        uris: Addresses of the cameras.
        names: What the cameras are called, in the same order.
        required: Whether a camera that fails makes the run incomplete.

    Raises:
        NotYet: Always.
    """

    later_ports = ("packets", "events")

    def __init__(
        self,
        uris: Sequence[str],
        *,
        names: Sequence[str] | None = None,
        required: bool = False,
        **options: Unpack[NodeOptions],
    ) -> None:
        _refuse("Cameras", "use one VideoSource for each, and vf.merge")


class VideoFolder(Producer):
    """Reads the videos of a folder as one stream (not built yet).

    Args:
        path: The folder.
        pattern: Which of its files.

    Raises:
        NotYet: Always.
    """

    def __init__(self, path: str | Path, pattern: str = "*.mp4", **options: Unpack[NodeOptions]) -> None:
        _refuse("VideoFolder", "use one VideoSource for each file, and vf.merge")


class ImageFolder(Producer):
    """Reads the pictures of a folder as frames (not built yet).

    Args:
        path: The folder.
        pattern: Which of its files.
        recursive: Whether the folders in it are read too.
        sizes: What happens to pictures of different sizes.

    Raises:
        NotYet: Always.
    """

    def __init__(
        self,
        path: str | Path,
        pattern: str = "*",
        recursive: bool = False,
        sizes: str = "keep",
        **options: Unpack[NodeOptions],
    ) -> None:
        _refuse("ImageFolder", "make a video of the pictures, or write a vf.Producer that reads them")


class ZoneCounter(Processor):
    """Counts tracks in a zone (not built yet).

    Args:
        zone: Corners of the zone in pixels.

    Raises:
        NotYet: Always.
    """

    ports = ("out", "events")

    def __init__(self, zone: Points, **options: Unpack[NodeOptions]) -> None:
        _refuse("ZoneCounter", "use LineCounter, or write a vf.Processor that reads Detections")


class Loitering(Processor):
    """Tells when a track stays in a zone (not built yet).

    Args:
        zone: Corners of the zone in pixels.
        after_seconds: How long is too long.

    Raises:
        NotYet: Always.
    """

    ports = ("out", "events")

    def __init__(self, zone: Points, *, after_seconds: float = 30, **options: Unpack[NodeOptions]) -> None:
        _refuse("Loitering", "write a vf.Processor that keeps the time of each track in ctx.state")


class Blur(Processor):
    """Blurs what was detected (not built yet).

    Args:
        what: What is blurred.

    Raises:
        NotYet: Always.
    """

    def __init__(self, what: Literal["boxes"] = "boxes", **options: Unpack[NodeOptions]) -> None:
        _refuse("Blur", "write a vf.Processor that reads Frame and Detections")


class ClipSink(Consumer):
    """Writes a clip around each event (not built yet).

    Args:
        folder: Where the clips go.
        pre_seconds: How much before the event.
        post_seconds: How much after it.

    Raises:
        NotYet: Always.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        pre_seconds: float = 5,
        post_seconds: float = 10,
        **options: Unpack[NodeOptions],
    ) -> None:
        _refuse("ClipSink", "use VideoSink, which writes everything")


class CsvSink(Consumer):
    """Writes a table (not built yet).

    Args:
        path: The file.

    Raises:
        NotYet: Always.
    """

    def __init__(self, path: str | Path, **options: Unpack[NodeOptions]) -> None:
        _refuse("CsvSink", "use JsonlSink")


class CocoSink(Consumer):
    """Writes detections in the COCO format (not built yet).

    Args:
        path: The file.

    Raises:
        NotYet: Always.
    """

    def __init__(self, path: str | Path, **options: Unpack[NodeOptions]) -> None:
        _refuse("CocoSink", "use JsonlSink")


class WebhookSink(Consumer):
    """Sends each input to an address (not built yet); `timeout_seconds`, an option, bounds the answer.

    Args:
        url: The address.

    Raises:
        NotYet: Always.
    """

    def __init__(self, url: str, **options: Unpack[NodeOptions]) -> None:
        _refuse("WebhookSink", "use JsonlSink, and send the lines from there")


def _refuse(name: str, meanwhile: str) -> NoReturn:
    raise NotYet(f"{name} is not built yet", effect="nothing was started", remedy=meanwhile)
