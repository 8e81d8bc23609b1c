"""A video file as a source: its frames, its end, and everything that can be wrong with it."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.media.clips import Clip, cut, write_clip
from videoflow.graph import Context, Item
from videoflow.ids import new_ulid
from videoflow.media import Frame
from videoflow.media.decoding import ReadOptions, VideoReader
from videoflow.nodes import Collect, VideoSource
from videoflow.testing import drive

CLIP = Clip(frames=40, options={"g": "10"})


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty marked frames of 160x120, 25 a second, a key frame every ten."""
    return write_clip(tmp_path_factory.mktemp("clips") / "street.mp4", CLIP)


def read(path: Path, **options: Any) -> list[Frame]:
    """What the reader gives, under the name that a source has."""
    return [
        replace(frame, source=path.name) for frame in VideoReader(str(path), ReadOptions(**options)).frames()
    ]


def opened(node: VideoSource) -> VideoSource:
    node.open()
    return node


def items(node: VideoSource, resume: int | None = None, run_id: str = "") -> list[Item]:
    return list(opened(node).produce(resume, Context(node="camera", run_id=run_id)))


@vf.processor
def index_of(frame: Frame) -> int:
    return frame.index


def run(source: VideoSource, **options: Any) -> vf.RunReport:
    return vf.Flow([Collect(name="rows")(index_of(source))], name="reading").run(**options)


def test_the_frames_are_those_of_the_file_under_its_own_name(street: Path) -> None:
    made = items(VideoSource(street))
    assert [item.value for item in made] == read(street)
    assert [item.offset for item in made] == list(range(40))
    assert [item.time_seconds for item in made] == [n / 25 for n in range(40)]
    assert {item.value.source for item in made} == {"street.mp4"}


@pytest.mark.parametrize(
    "options",
    [
        {"every": 7},
        {"fps": 5},
        {"start_seconds": 0.5},
        {"end_seconds": 0.3},
        {"start_seconds": 0.2, "end_seconds": 1.1, "every": 3},
        {"pixel_format": "gray"},
        {"pixel_format": "rgb"},
    ],
    ids=str,
)
def test_it_reads_what_is_asked_for_and_knows_about_how_much_that_is(
    street: Path, options: dict[str, Any]
) -> None:
    source = VideoSource(street, **options)
    made = drive(source, [])
    assert made == read(street, **options)
    assert made
    assert abs(source.summary()["expected"] - len(made)) <= 1
    assert max(frame.image.nbytes for frame in made) < (source.max_item_bytes() or 0)


@pytest.mark.parametrize("resume", [0, 1, 9, 10, 23, 39, 40])
def test_it_goes_on_with_the_very_next_frame(street: Path, resume: int) -> None:
    assert items(VideoSource(street), resume) == items(VideoSource(street))[resume:]


@pytest.mark.parametrize(
    "options", [{"every": 7}, {"fps": 7}, {"start_seconds": 0.5, "every": 3}, {"end_seconds": 1.2}], ids=str
)
def test_a_choice_of_frames_goes_on_where_it_was(street: Path, options: dict[str, Any]) -> None:
    whole = items(VideoSource(street, **options))
    for number, item in enumerate(whole):
        assert items(VideoSource(street, **options), item.offset + 1) == whole[number + 1 :]


def test_it_says_that_it_is_complete_with_figures(street: Path) -> None:
    report = run(VideoSource(street, name="camera"))
    (source,) = report.sources
    assert (report.verdict, source.outcome, source.items) == ("complete", "complete", 40)
    assert source.figures["frames_decoded"] == 40
    assert source.figures["last_seconds"] == 39 / 25


def test_a_relative_path_belongs_to_the_folder_where_the_flow_was_built(
    street: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(street.parent)
    flow = vf.Flow([Collect(name="rows")(index_of(VideoSource("street.mp4")))], name="reading")
    monkeypatch.chdir(tmp_path)
    assert len(flow.run().values["rows"]) == 40


def test_a_file_address_is_a_path(street: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a b#1%.mp4"
    odd.write_bytes(street.read_bytes())
    made = drive(VideoSource(odd.as_uri()), [])
    assert len(made) == 40
    assert made[0].source == "a b#1%.mp4"


# --- what is wrong before anything starts ---------------------------------------------------------


@pytest.mark.parametrize("name", ["missing.mp4", "."])
def test_a_file_that_is_not_there_is_refused_before_anything_starts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flow = vf.Flow([Collect()(VideoSource(name))], name="reading")
    with pytest.raises(vf.UsageError, match="cannot be opened") as refusal:
        flow.run()
    assert refusal.value.exit_status == 2
    assert name in refusal.value.message
    assert refusal.value.cause


def test_a_file_that_may_not_be_read_is_the_fault_of_the_environment(
    street: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *arguments: Any, **keywords: Any) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(vf.EnvironmentFault, match="cannot be opened") as refusal:
        VideoSource(street).max_item_bytes()
    assert refusal.value.exit_status == 3


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"every": 0}, "every"),
        ({"fps": 0}, "fps"),
        ({"fps": 5, "every": 2}, "every"),
        ({"start_seconds": 2, "end_seconds": 1}, "end_seconds"),
    ],
    ids=str,
)
def test_a_number_out_of_its_range_is_refused_by_name(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(vf.ArgumentInvalid, match=f"VideoSource: {name} cannot be"):
        VideoSource("street.mp4", **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"live": True},
        {"hwaccel": "cuda"},
        {"keyframes_only": True},
        {"open_timeout_seconds": 1},
        {"read_timeout_seconds": 1},
    ],
    ids=str,
)
def test_what_comes_later_is_refused_by_name(arguments: dict[str, Any]) -> None:
    with pytest.raises(vf.NotYet, match=next(iter(arguments))):
        VideoSource("street.mp4", **arguments)


@pytest.mark.parametrize("uri", ["rtsp://camera.local/1", "http://example.org/a.mp4", "udp://239.0.0.1:1234"])
def test_a_live_address_comes_later(uri: str) -> None:
    with pytest.raises(vf.NotYet, match=r"cannot read .* yet") as refusal:
        VideoSource(uri)
    assert uri in refusal.value.message


@pytest.mark.parametrize("port", ["packets", "events"])
def test_the_ports_that_come_later_are_refused_by_the_compiler(street: Path, port: str) -> None:
    flow = vf.Flow([Collect()(getattr(VideoSource(street), port))], name="reading")
    with pytest.raises(vf.NotYet, match=port):
        flow.compile()


# --- files that end badly -------------------------------------------------------------------------


def spoil(number: int, packet: Any) -> bool:
    """Makes two packets undecodable; in a file where each frame stands for itself, no other is harmed."""
    if number in (13, 14):
        packet.update(bytes(packet.size))
    return True


def empty(street: Path, target: Path) -> None:
    target.write_bytes(b"")


def text(street: Path, target: Path) -> None:
    target.write_text("this is no video" * 100)


def half(street: Path, target: Path) -> None:
    cut(street, target, 0.5)


@pytest.mark.parametrize("ruin", [empty, text, half], ids=lambda each: each.__name__)
def test_a_file_that_is_no_video_runs_and_makes_the_run_incomplete(
    ruin: Callable[[Path, Path], None], street: Path, tmp_path: Path
) -> None:
    ruin(street, tmp_path / "odd.mp4")
    report = run(VideoSource(tmp_path / "odd.mp4", name="camera"))
    (source,) = report.sources
    assert (report.verdict, report.exit_status) == ("incomplete", 1)
    assert (source.outcome, source.items) == ("undecodable", 0)
    assert source.detail
    assert [(gap.where, gap.cause) for gap in report.gaps] == [("camera", source.detail)]


def test_a_file_that_breaks_off_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    whole = write_clip(
        tmp_path / "whole.mp4", replace(CLIP, options={"bf": "0"}, muxer={"movflags": "faststart"})
    )
    report = run(VideoSource(cut(whole, tmp_path / "street.mp4", 0.7), name="camera"))
    (source,) = report.sources
    assert (report.verdict, source.outcome) == ("incomplete", "truncated")
    assert 10 < source.items < 40
    assert report.values["rows"] == list(range(source.items))


def test_a_file_with_frames_missing_is_damaged_and_the_run_incomplete(tmp_path: Path) -> None:
    damaged = write_clip(
        tmp_path / "damaged.mp4", replace(CLIP, codec="mjpeg", pixels="yuvj420p", options={}), spoil
    )
    report = run(VideoSource(damaged, name="camera"))
    (source,) = report.sources
    assert (report.verdict, report.exit_status, source.outcome) == ("incomplete", 1, "damaged")
    assert source.figures["frames_missing"] == 2
    assert source.figures["missing"] == [[13, 14]]
    assert "13-14" in source.detail
    assert report.values["rows"] == [n for n in range(40) if n not in (13, 14)]


def test_pictures_that_grow_are_refused_with_their_size_and_taken_when_it_is_said(tmp_path: Path) -> None:
    small = write_clip(tmp_path / "a.ts", Clip(frames=4)).read_bytes()
    large = write_clip(tmp_path / "b.ts", Clip(frames=4, size=(640, 480))).read_bytes()
    (tmp_path / "c.ts").write_bytes(small + large)
    with pytest.raises(vf.FlowError, match="an array of 480 x 640 x 3") as refused:
        run(VideoSource(str(tmp_path / "c.ts")))
    said = refused.value.remedy.split()
    grown = VideoSource(str(tmp_path / "c.ts"))
    setattr(grown, said[1], int(said[said.index("to") + 1].strip(",")))
    assert len(run(grown).values["rows"]) >= 7  # the decoder may drop one where the size changes


def test_a_run_that_is_stopped_says_so(street: Path) -> None:
    source = opened(VideoSource(street))
    produced = source.produce(None, Context(node="camera"))
    first = next(iter(produced))
    source.interrupt()
    assert list(produced) == []
    assert (first.offset, source.summary()["outcome"]) == (0, "stopped")


# --- going on with a file -------------------------------------------------------------------------


def began(path: Path, seconds: float) -> str:
    """The id of a run that began so long after the file was changed last."""
    found = path.stat()
    return new_ulid(max(found.st_ctime, found.st_mtime) + seconds, os.urandom(10))


def test_a_file_that_has_not_changed_is_read_on(street: Path) -> None:
    assert len(items(VideoSource(street), 30, began(street, 0.01))) == 10


def test_a_file_that_changed_after_the_run_began_is_refused(street: Path) -> None:
    with pytest.raises(vf.SourceUnreadable, match=r"street.mp4: the source has changed") as refusal:
        items(VideoSource(street), 30, began(street, -1))
    assert VideoSource(street).classify(refusal.value) == "fatal"


def test_a_file_that_was_replaced_by_an_older_one_is_refused(street: Path, tmp_path: Path) -> None:
    watched, other = tmp_path / "a.mp4", tmp_path / "b.mp4"
    for path in (watched, other):
        path.write_bytes(street.read_bytes())
    os.utime(other, (0, 0))
    run_began = time.time()
    other.replace(watched)
    while watched.stat().st_ctime < run_began + 0.002:  # the file system's clock ticks more slowly
        os.utime(watched, (0, 0))
    with pytest.raises(vf.SourceUnreadable, match="has changed"):
        items(VideoSource(watched), 30, new_ulid(run_began, os.urandom(10)))


def test_a_first_start_takes_the_file_as_it_is(street: Path) -> None:
    assert len(items(VideoSource(street), None, began(street, -1))) == 40
