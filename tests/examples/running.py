"""Runs the examples on each engine, fused and unfused, and reads what they leave."""

import json
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import videoflow as vf
from videoflow.graph import find_factory, load_flow_file
from videoflow.media.decoding import VideoReader

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = tuple(sorted(path.parent.name for path in EXAMPLES.glob("*/flow.py")))


class FileExpected(msgspec.Struct, forbid_unknown_fields=True):
    """What a file of lines holds: exactly so many, or at least one where `lines` is None.

    Attributes:
        lines: How many.
        last: Its last line, or None where that depends on the machine.
        sha256: Of its bytes, or None where they depend on the machine.
    """

    lines: int | None = None
    last: str | dict[str, Any] | None = None
    sha256: str | None = None


class VideoExpected(msgspec.Struct, forbid_unknown_fields=True):
    """What a video holds."""

    frames: int
    width: int
    height: int
    seconds: float


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """What `expected.json` of an example says.

    Attributes:
        arguments: Arguments of the factory.
        sources: Source → items.
        files: Path → what it holds.
        videos: Path → what it holds.
        values: Node → what it collected.
        lossless: False: edges may drop, so that runs differ.
        verdict: How it ends.
    """

    arguments: dict[str, Any]
    sources: dict[str, int]
    files: dict[str, FileExpected] = {}
    videos: dict[str, VideoExpected] = {}
    values: dict[str, list[Any]] = {}
    lossless: bool = True
    verdict: str = "complete"


@dataclass(frozen=True)
class Run:
    """One run of an example.

    Attributes:
        report: Its account.
        folder: Where its outputs are.
    """

    report: vf.RunReport
    folder: Path

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of a file of JSON."""
        return [json.loads(text) for text in (self.folder / name).read_text(encoding="utf-8").splitlines()]


def expected(name: str) -> Expected:
    """What an example should come to."""
    return msgspec.json.decode((EXAMPLES / name / "expected.json").read_bytes(), type=Expected)


def build(name: str) -> Callable[..., vf.Flow]:
    """The factory of an example."""
    found: Callable[..., vf.Flow] = find_factory(load_flow_file(EXAMPLES / name / "flow.py"))
    return found


def labelled(name: str) -> bool:
    """Whether an example fuses nodes by a label."""
    return any(node.options.fuse for node in build(name)(**expected(name).arguments).compile().nodes)


def groupings(name: str) -> tuple[tuple[str, bool], ...]:
    """Engine and fusing of each run; unfused where that makes a difference."""
    fusings = (True, False) if labelled(name) else (True,)
    return tuple((engine, fuse) for engine in ("threads", "local") for fuse in fusings)


def runs_of(name: str, folder: Path) -> list[Run]:
    """Runs an example on each engine, fused and unfused; that in threads comes first."""
    return [_run(name, folder, engine, fuse=fuse) for engine, fuse in groupings(name)]


def _run(name: str, above: Path, engine: str, *, fuse: bool) -> Run:
    folder = above / f"{engine}-{'fused' if fuse else 'unfused'}"
    folder.mkdir()
    with chdir(folder):
        flow = build(name)(**expected(name).arguments)
        report = flow.start(engine, fuse=fuse, runs_folder=above / "runs").wait()
    return Run(report, folder)


def pictures(path: Path) -> list[tuple[Any, bytes]]:
    """Time and pixels of each frame of a video."""
    return [(frame.time_exact, frame.image.tobytes()) for frame in VideoReader(str(path)).frames()]
