"""Written files: times, sizes, colours, what a browser needs, and crashes that change nothing."""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from tests.media.clips import Clip, mark_of, marked, write_clip
from videoflow.errors import ArgumentInvalid, ContractBroken, FlowError, NotYet, OutputUnwritable
from videoflow.media import Frame
from videoflow.media.decoding import VideoReader
from videoflow.media.encoding import VideoWriter


def made(k: int, pts: int | None = None, **changes: Any) -> Frame:
    values: dict[str, Any] = {
        "image": marked(k),
        "pixel_format": "rgb",
        "pts": k if pts is None else pts,
        "time_base": Fraction(1, 25),
        "index": k,
        "source": "test",
    }
    return Frame(**(values | changes))


def written(path: Path, frames: list[Frame], **options: Any) -> Path:
    writer = VideoWriter(path, **({"fragment_frames": 8} | options))
    for frame in frames:
        writer.write(frame)
    summary = writer.finish()
    assert summary.frames == len(frames)
    return path


def read(path: Path) -> list[Frame]:
    reader = VideoReader(str(path))
    frames = list(reader.frames())
    assert reader.outcome is not None
    assert reader.outcome.kind == "complete", reader.outcome
    return frames


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("time_base", "times"),
    [
        (Fraction(1, 25), lambda k: k),
        (Fraction(1001, 30000), lambda k: k),
        (Fraction(1, 90000), lambda k: 3000 * k + 7 * (k % 4)),
        (Fraction(1, 10), lambda k: 3 * k if k < 10 else 3 * k + 36000),
        (Fraction(1, 1_000_000), lambda k: 33_333 * k),
    ],
    ids=["25", "ntsc", "variable", "an hour's hole", "microseconds"],
)
def test_the_frames_keep_their_own_times(
    tmp_path: Path, time_base: Fraction, times: Callable[[int], int]
) -> None:
    frames = [made(k, 500 + times(k), time_base=time_base) for k in range(20)]
    again = read(written(tmp_path / "a.mp4", frames))
    start = frames[0].time_exact
    assert [frame.time_exact for frame in again] == [frame.time_exact - start for frame in frames]
    assert [mark_of(frame.image) for frame in again] == list(range(20))


def test_the_length_of_the_last_frame_is_kept(tmp_path: Path) -> None:
    frames = [made(k) for k in range(5)] + [made(5, duration_pts=10)]
    path = written(tmp_path / "a.mp4", frames)
    reader = VideoReader(str(path))
    list(reader.frames())
    assert reader.outcome is not None
    assert reader.outcome.at_seconds == pytest.approx(15 / 25)


def test_colours_survive(tmp_path: Path) -> None:
    for number, colour in enumerate(
        [(0, 0, 0), (255, 255, 255), (128, 128, 128), (0, 0, 255), (200, 30, 90)]
    ):
        image = np.full((64, 64, 3), colour, np.uint8)
        frames = read(written(tmp_path / f"{number}.mp4", [made(0, image=image, pixel_format="bgr")], crf=10))
        assert np.abs(frames[0].image.astype(int) - image).max() <= 6, colour


def test_gray_frames_are_written(tmp_path: Path) -> None:
    image = np.full((64, 64), 90, np.uint8)
    frames = read(written(tmp_path / "a.mp4", [made(0, image=image, pixel_format="gray")]))
    assert np.abs(frames[0].image.astype(int) - 90).max() <= 4


def test_a_browser_plays_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mp4", [made(k) for k in range(20)])
    data = path.read_bytes()
    boxes = list(top_boxes(data))
    assert boxes[0] == "ftyp"
    assert boxes.index("moov") < boxes.index("mdat"), "not made for a fast start"
    assert "moof" not in boxes
    level = data[data.index(b"avcC") + 4 + 3]
    assert level <= 41, "small pictures that claim a high level are refused by decoders in hardware"
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.codec_context.codec_tag == "avc1"
        assert stream.start_time == 0


def top_boxes(data: bytes) -> Iterator[str]:
    at = 0
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        yield name.decode()
        at += length


def test_an_odd_size_is_padded_and_said(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4")
    image = marked(3, (161, 121))
    writer.write(made(0, image=image))
    summary = writer.finish()
    assert (summary.width, summary.height, summary.padded_right, summary.padded_bottom) == (162, 122, 1, 1)
    frame = read(tmp_path / "a.mp4")[0]
    assert frame.image.shape == (122, 162, 3)
    assert np.abs(frame.image[:, 161].astype(int) - frame.image[:, 160]).mean() < 8


def test_pixels_that_are_not_square_stay_so(tmp_path: Path) -> None:
    wide = [made(k, sample_aspect_ratio=Fraction(4, 3)) for k in range(3)]
    assert {frame.sample_aspect_ratio for frame in read(written(tmp_path / "a.mp4", wide))} == {
        Fraction(4, 3)
    }


def test_a_frame_that_does_not_fit_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=4)
    for k in range(3):
        writer.write(made(k))
    with pytest.raises(ValueError, match=r"160x120, got 170x120 \(index 3"):
        writer.write(made(3, image=marked(3, (170, 120))))
    with pytest.raises(ValueError, match="expected a time after"):
        writer.write(made(3, 0))
    for k in range(3, 10):
        writer.write(made(k))
    writer.finish()
    assert digest(tmp_path / "a.mp4") == digest(
        written(tmp_path / "b.mp4", [made(k) for k in range(10)], fragment_frames=4)
    )


def test_frames_of_one_time_are_moved_by_a_tick_and_counted(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4")
    for k in range(6):
        writer.write(made(k, k - k % 3))
    assert writer.finish().times_moved == 4
    frames = read(tmp_path / "a.mp4")
    assert [mark_of(frame.image) for frame in frames] == list(range(6))
    assert frames[3].time_exact == Fraction(3, 25)
    assert frames[2].time_seconds < 0.001


def test_times_finer_than_a_microsecond_are_rounded_and_counted(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4")
    for k in range(3):
        writer.write(made(k, 40_000_001 * k, time_base=Fraction(1, 10**9)))
    assert writer.finish().times_rounded == 2


def crashing(path: Path, frames: list[Frame], crashes: set[int], tail: bytes) -> Path:
    """Write frames as a sink does whose process dies after the given numbers of writes."""
    writer = VideoWriter(path, fragment_frames=8)
    state = writer.state()
    writes = at = 0
    while at < len(frames):
        durable = writer.write(frames[at])
        writes, at = writes + 1, at + 1
        if durable is not None and writes not in crashes:
            state = writer.state()
        if writes in crashes:
            with path.with_name(f"{path.name}.part").open("ab") as file:
                file.write(tail)
            writer = VideoWriter.resume(path, state)
            at = state["frames"]
    writer.finish()
    return path


@pytest.mark.parametrize(
    "crashes", [{1}, {7, 12}, {8}, {9}, {16, 20, 21}, {8, 16, 24, 32}, {30}, set(range(1, 200, 9))], ids=str
)
@pytest.mark.parametrize("tail", [b"", b"\x00\x00\x01\x00moof torn"], ids=["clean", "torn"])
def test_crashes_change_no_byte(tmp_path: Path, crashes: set[int], tail: bytes) -> None:
    frames = [made(k, 2 * k + k % 2 + 50) for k in range(30)]
    straight = written(tmp_path / "a.mp4", frames)
    assert digest(crashing(tmp_path / "b.mp4", frames, crashes, tail)) == digest(straight)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mp4", "b.mp4"]


def test_a_fragment_written_twice_would_be_noticed(tmp_path: Path) -> None:
    frames = [made(k) for k in range(30)]
    straight = written(tmp_path / "a.mp4", frames)
    writer = VideoWriter(tmp_path / "b.mp4", fragment_frames=8)
    for frame in frames[:20]:
        writer.write(frame)
    late = writer.state()
    # A planted defect: the state is that of two fragments; the frames are given again from the first's end.
    writer = VideoWriter.resume(tmp_path / "b.mp4", late)
    with pytest.raises(ValueError, match="expected a time after"):
        writer.write(frames[8])
    for frame in frames[17:]:
        writer.write(frame)
    writer.finish()
    assert digest(tmp_path / "b.mp4") != digest(straight)


def test_another_encoder_cannot_continue_a_file(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=2)
    for k in range(2):
        writer.write(made(k))
    part = tmp_path / "a.mp4.part"
    data = bytearray(part.read_bytes())
    # A planted defect: the file began with other parameter sets than this encoder makes.
    data[data.index(b"avcC") + 7] ^= 1
    part.write_bytes(data)
    writer = VideoWriter.resume(tmp_path / "a.mp4", writer.state())
    writer.write(made(2))
    with pytest.raises(OutputUnwritable, match="another encoder"):
        writer.seal()


def test_what_is_durable_is_told_when_a_fragment_closes(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=4)
    told = [writer.write(made(k)) for k in range(10)]
    assert told == [None, None, None, 4, None, None, None, 8, None, None]
    state = writer.state()
    assert (state["frames"], state["durable_bytes"]) == (8, (tmp_path / "a.mp4.part").stat().st_size)
    assert all(isinstance(value, int) for value in state.values())
    assert writer.seal() == 10
    assert writer.state()["frames"] == 10


def test_the_working_file_plays_after_a_crash(tmp_path: Path) -> None:
    frames = [made(k, 2 * k + k % 2) for k in range(20)]
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=8)
    for frame in frames:
        writer.write(frame)
    again = read(tmp_path / "a.mp4.part")
    assert [mark_of(frame.image) for frame in again] == list(range(16))
    assert [frame.time_exact for frame in again] == [frame.time_exact for frame in frames[:16]]
    with (tmp_path / "a.mp4.part").open("ab") as file:
        file.write(b"\x00\x00\x10\x00moof")
    reader = VideoReader(str(tmp_path / "a.mp4.part"))
    assert len(list(reader.frames())) == 16


def test_a_crash_while_finishing_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [made(k) for k in range(10)]
    straight = written(tmp_path / "a.mp4", frames)
    path = tmp_path / "b.mp4"
    writer = VideoWriter(path, fragment_frames=8)
    for frame in frames:
        writer.write(frame)
    writer.seal()
    state = writer.state()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OutputUnwritable, match="No space left"):
            writer.finish()
    assert not path.exists()
    assert VideoWriter.resume(path, state).finish().frames == 10
    assert digest(path) == digest(straight)
    # The process died after the working file was gone: what is there is recognised, and finishing is no work.
    summary = VideoWriter.resume(path, state).finish()
    assert summary.frames == 10
    assert digest(path) == digest(straight)


def test_a_finished_file_of_other_content_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mp4", [made(k) for k in range(10)])
    writer = VideoWriter(tmp_path / "b.mp4", fragment_frames=8)
    for k in range(8):
        writer.write(made(k))
    state = writer.state()
    with pytest.raises(OutputUnwritable, match="does not hold"):
        VideoWriter.resume(path, state)
    path.unlink()
    with pytest.raises(OutputUnwritable, match="is gone"):
        VideoWriter.resume(path, state)
    (tmp_path / "b.mp4.part").write_bytes(b"short")
    with pytest.raises(OutputUnwritable, match="has 5 bytes"):
        VideoWriter.resume(tmp_path / "b.mp4", state)


def test_a_lost_frame_in_the_working_file_is_found_at_the_end(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=4)
    for k in range(4):
        writer.write(made(k))
    first = writer.state()["durable_bytes"]
    for k in range(4, 12):
        writer.write(made(k))
    part = tmp_path / "a.mp4.part"
    data = part.read_bytes()
    second = data.index(b"moof", first + 8) - 4
    # A planted defect: the second fragment is missing.
    part.write_bytes(data[:first] + data[second:])
    with pytest.raises(OutputUnwritable, match="does not hold what was written"):
        writer.finish()
    assert part.exists()
    assert not (tmp_path / "a.mp4").exists()


def test_no_frame_makes_no_file(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4")
    assert writer.finish().frames == 0
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_is_done_takes_nothing_more(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4")
    writer.write(made(0))
    writer.finish()
    assert writer.finish().frames == 1
    with pytest.raises(ContractBroken, match="finished"):
        writer.write(made(1))
    given_up = VideoWriter(tmp_path / "b.mp4", fragment_frames=2)
    for k in range(3):
        given_up.write(made(k))
    given_up.abandon()
    with pytest.raises(ContractBroken, match="given up"):
        given_up.finish()
    assert len(read(tmp_path / "b.mp4.part")) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": "a.mp4", "crf": 60}, ArgumentInvalid),
        ({"path": "a.mp4", "fragment_frames": 0}, ArgumentInvalid),
        ({"path": "a.txt"}, ArgumentInvalid),
        ({"path": "a.mkv"}, NotYet),
        ({"path": "none/a.mp4"}, OutputUnwritable),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_frame(
    tmp_path: Path, arguments: dict[str, Any], error: type[FlowError]
) -> None:
    options = dict(arguments)
    with pytest.raises(error) as caught:
        VideoWriter(tmp_path / options.pop("path"), **options)
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_file_and_ends_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=2)
    writer.write(made(0))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(OutputUnwritable, match="No space left"):
            writer.write(made(1))
    with pytest.raises(ContractBroken, match="failed before"):
        writer.write(made(1))
    resumed = VideoWriter.resume(tmp_path / "a.mp4", writer.state())
    for k in range(2):
        resumed.write(made(k))
    assert resumed.finish().frames == 2


def test_reading_and_writing_get_along_with_opencv_in_one_process(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", Clip(frames=6))
    frames = list(VideoReader(str(clip)).frames())
    drawn = [frame.with_image(cv2.GaussianBlur(frame.copy(), (3, 3), 0).astype(np.uint8)) for frame in frames]
    again = read(written(tmp_path / "b.mp4", drawn))
    assert [mark_of(frame.image) for frame in again] == list(range(6))


def test_a_writer_without_a_durable_frame_has_no_working_file(tmp_path: Path) -> None:
    part = tmp_path / "a.mp4.part"
    part.write_bytes(b"of an earlier writer")
    writer = VideoWriter(tmp_path / "a.mp4", fragment_frames=2)
    assert not part.exists(), "the process may be killed here"
    writer.write(made(0))
    assert not part.exists()
    writer.write(made(1))
    assert part.stat().st_size > 0
