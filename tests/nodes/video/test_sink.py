"""A video file as a sink: what is written, and that no crash changes a byte of it."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import videoflow as vf
from tests.nodes.sinks import SinkRun
from videoflow.media import Frame
from videoflow.media.decoding import VideoReader
from videoflow.nodes import SyntheticScene, VideoSink
from videoflow.testing import drive

FRAGMENT = 4


def frames(count: int, size: tuple[int, int] = (64, 48)) -> list[Frame]:
    made: list[Frame] = drive(SyntheticScene(frames=count, size=size, people=2), [])
    return made


def decoded(path: Path) -> list[Frame]:
    return list(VideoReader(str(path)).frames())


def run_of(path: Path, given_frames: list[Frame]) -> SinkRun:
    return SinkRun(lambda: VideoSink(path, fragment_frames=FRAGMENT), given_frames)


def test_the_file_has_every_frame_at_its_time(tmp_path: Path) -> None:
    given_frames = frames(30)
    drive(VideoSink(tmp_path / "a.mp4", crf=10), given_frames)
    found = decoded(tmp_path / "a.mp4")
    assert [frame.time_exact for frame in found] == [frame.time_exact for frame in given_frames]
    for frame, wanted in zip(found, given_frames, strict=True):
        assert np.abs(frame.image.astype(int) - wanted.image).mean() < 6
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_uneven_times_are_kept(tmp_path: Path) -> None:
    times = [0, 1, 5, 6, 20]
    given_frames = [
        Frame(image=frame.image, pts=pts, time_base=Fraction(1, 30), index=n, source="a")
        for n, (frame, pts) in enumerate(zip(frames(5), times, strict=True))
    ]
    drive(VideoSink(tmp_path / "a.mp4"), given_frames)
    assert [frame.time_exact for frame in decoded(tmp_path / "a.mp4")] == [Fraction(pts, 30) for pts in times]


def test_it_says_what_it_wrote(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a.mp4", frames(10, (65, 49)))
    run.drain()
    said = run.summary
    assert (said["frames"], said["finished"], said["seconds"]) == (10, True, 0.4)
    assert (said["width"], said["height"], said["padded_right"], said["padded_bottom"]) == (66, 50, 1, 1)
    assert said["file_bytes"] == (tmp_path / "a.mp4").stat().st_size


def test_frames_are_settled_a_fragment_at_a_time(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a.mp4", frames(10))
    settled = []
    for _ in range(10):
        run.give(1)
        settled.append(run.settled)
    run.drain()
    assert settled == [0, 0, 0, 4, 4, 4, 4, 8, 8, 8]
    assert run.settled == 10


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    """Frames → the bytes of the file when nothing crashes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for count in (0, 1, 3, 4, 9, 14):
        run_of(folder / f"{count}.mp4", frames(count)).drain()
    return {int(path.stem): path.read_bytes() for path in folder.iterdir()}


CRASHES = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from(["clean", "uncommitted", "torn"])), min_size=1, max_size=3
)


@settings(max_examples=25)
@given(count=st.sampled_from([0, 1, 3, 4, 9, 14]), crashes=CRASHES)
def test_no_crash_changes_a_byte_of_the_file(
    count: int,
    crashes: list[tuple[int, str]],
    undisturbed: dict[int, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("crashed")
    run = run_of(folder / "a.mp4", frames(count))
    for inputs, kind in crashes:
        run.give(inputs, crash_before_commit=kind == "uncommitted")
        if kind == "torn":
            with (folder / "a.mp4.part").open("ab") as file:
                file.write(b"\x00\x00\x04\x00moof")
        run.crash()
    run.drain()
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == ({"a.mp4": undisturbed[count]} if count else {})


def test_a_crash_after_the_last_checkpoint_only_has_the_file_left_to_finish(
    tmp_path: Path, undisturbed: dict[int, bytes]
) -> None:
    run = run_of(tmp_path / "a.mp4", frames(9))
    run.give(9)
    run.last_checkpoint()
    run.crash()
    run.drain()
    assert (tmp_path / "a.mp4").read_bytes() == undisturbed[9]


def test_a_crash_after_the_file_was_finished_leaves_it_as_it_is(
    tmp_path: Path, undisturbed: dict[int, bytes]
) -> None:
    run = run_of(tmp_path / "a.mp4", frames(9))
    run.drain()
    run.crash()
    run.drain()
    assert (tmp_path / "a.mp4").read_bytes() == undisturbed[9]


def test_a_run_that_is_not_drained_leaves_a_working_file_that_plays(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a.mp4", frames(10))
    run.give(10)
    run.abort()
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4.part"]
    assert len(decoded(tmp_path / "a.mp4.part")) == run.settled == 8
    assert run.summary == {"frames": 8, "finished": False}


def test_a_run_that_fails_before_the_first_fragment_leaves_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "a.mp4", frames(2))
    run.give(2)
    run.abort()
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_an_earlier_run_stays_until_the_first_frame_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    run_of(path, frames(4)).drain()
    run = run_of(path, frames(6))
    assert len(decoded(path)) == 4
    run.give(1)
    assert not path.exists()
    run.drain()
    assert len(decoded(path)) == 6
    run_of(path, []).drain()
    assert list(tmp_path.iterdir()) == []


def test_without_a_frame_there_is_no_file(tmp_path: Path) -> None:
    drive(VideoSink(tmp_path / "a.mp4"), [])
    assert list(tmp_path.iterdir()) == []


def test_the_folders_above_are_made(tmp_path: Path) -> None:
    drive(VideoSink(tmp_path / "new" / "deep" / "a.mp4"), frames(2))
    assert (tmp_path / "new" / "deep" / "a.mp4").exists()


@vf.processor
def odd_one(frame: Frame) -> Frame:
    """Makes one frame in the middle smaller."""
    return frame.crop(0, 0, 32, 32) if frame.index == 5 else frame


@vf.processor
def no_frame(frame: Frame) -> int:
    return frame.index


def test_a_frame_of_another_size_is_put_aside_at_once_and_the_rest_is_written(tmp_path: Path) -> None:
    scene = SyntheticScene(frames=10, size=(64, 48))
    report = vf.Flow([VideoSink(tmp_path / "a.mp4", name="video")(odd_one(scene))], name="sizes").run()
    assert (report.verdict, report.exit_status) == ("incomplete", 1)
    (letter,) = report.dead_letters
    assert (letter.node, letter.attempts) == ("video", 1)
    assert "expected frames of 64x48, got 32x32 (index 5" in letter.error
    assert [round(frame.time_seconds * 25) for frame in decoded(tmp_path / "a.mp4")] == [
        0,
        1,
        2,
        3,
        4,
        6,
        7,
        8,
        9,
    ]


def test_what_is_no_frame_is_put_aside(tmp_path: Path) -> None:
    scene = SyntheticScene(frames=2, size=(64, 48))
    report = vf.Flow([VideoSink(tmp_path / "a.mp4")(no_frame(scene))], name="sizes").run()
    assert [letter.error for letter in report.dead_letters] == [
        "TypeError: VideoSink reads Frame, not int: wire it to a node that makes frames, such as an Annotator"
    ] * 2


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"path": "a.png"}, "path"),
        ({"path": "a"}, "path"),
        ({"crf": 52}, "crf"),
        ({"fragment_frames": 0}, "fragment_frames"),
    ],
    ids=str,
)
def test_an_argument_out_of_its_range_is_refused_by_name(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(vf.ArgumentInvalid, match=f"VideoSink: {name} cannot be"):
        VideoSink(**{"path": "a.mp4", **arguments})


@pytest.mark.parametrize("path", ["a.mkv", "a.webm", "a.AVI"])
def test_other_kinds_of_file_come_later(path: str) -> None:
    with pytest.raises(vf.NotYet, match="path"):
        VideoSink(path)


@pytest.mark.parametrize("suffix", [".mp4", ".m4v", ".mov"])
def test_every_kind_of_file_that_it_takes_can_be_written(suffix: str, tmp_path: Path) -> None:
    drive(VideoSink(tmp_path / f"a{suffix}"), frames(3))
    assert len(decoded(tmp_path / f"a{suffix}")) == 3


def test_a_place_that_cannot_be_written_fails_the_run_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(vf.OutputUnwritable, match="cannot be written"):
        drive(VideoSink(tmp_path / "file" / "a.mp4"), frames(2))
