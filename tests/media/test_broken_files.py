"""Files that break off, are damaged or are no video: how the reading ends, and that it says so."""

import os
import wave
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.media.clips import Clip, cut, mark_of, marked, write_clip
from videoflow.errors import NotYet, SourceUnreadable
from videoflow.media import Frame, SourceEnd, SourceOutcome
from videoflow.media.decoding import VideoReader, probe


def read(path: Path) -> tuple[list[Frame], SourceOutcome]:
    reader = VideoReader(str(path))
    frames = list(reader.frames())
    assert reader.outcome is not None
    return frames, reader.outcome


def test_a_file_whose_data_is_cut_is_truncated_where_it_ends(tmp_path: Path) -> None:
    whole = write_clip(tmp_path / "a.mp4", Clip(muxer={"movflags": "faststart"}, options={"bf": "0"}))
    frames, outcome = read(cut(whole, tmp_path / "b.mp4", 0.6))
    assert outcome.kind is SourceEnd.TRUNCATED
    assert 0 < len(frames) < 50
    assert [mark_of(frame.image) for frame in frames] == list(range(len(frames)))
    assert outcome.at_seconds == pytest.approx(len(frames) / 25)
    error = outcome.as_error()
    assert error is not None
    assert f"{len(frames)} frames" in error.effect


def test_a_cut_at_the_border_of_a_frame_is_seen_as_well(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", Clip(muxer={"movflags": "faststart"}, options={"bf": "0"}))
    with av.open(str(path)) as container:
        ends = [packet.pos + packet.size for packet in container.demux(video=0) if packet.pos is not None]
    path.write_bytes(path.read_bytes()[: ends[29]])
    frames, outcome = read(path)
    assert (len(frames), outcome.kind, outcome.frames_missing) == (30, "truncated", 0)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.95])
@pytest.mark.parametrize(
    ("suffix", "clip"),
    [
        ("mp4", Clip(muxer={"movflags": "frag_keyframe+empty_moov"}, options={"g": "10"})),
        ("avi", Clip(codec="mpeg4")),
        ("mkv", Clip()),
    ],
    ids=["unfinished fragments", "avi", "matroska"],
)
def test_an_unfinished_file_is_truncated(tmp_path: Path, suffix: str, clip: Clip, share: float) -> None:
    whole = write_clip(tmp_path / f"a.{suffix}", clip)
    assert read(whole)[1].kind == "complete"
    frames, outcome = read(cut(whole, tmp_path / f"b.{suffix}", share))
    assert outcome.kind == "truncated"
    assert outcome.detail
    assert 0 < len(frames) < 50


def test_without_its_header_nothing_can_be_decoded(tmp_path: Path) -> None:
    frames, outcome = read(cut(write_clip(tmp_path / "a.mp4"), tmp_path / "b.mp4", 0.5))
    assert (frames, outcome.kind) == ([], "undecodable")
    assert "header" in outcome.detail


def test_a_file_cut_before_its_first_frame_is_not_complete(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", Clip(muxer={"movflags": "faststart"}))
    path.write_bytes(path.read_bytes()[: path.read_bytes().index(b"mdat") + 8])
    frames, outcome = read(path)
    assert (frames, outcome.kind) == ([], "undecodable")


def test_raw_video_that_starts_within_a_group_is_undecodable(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.h264", Clip(format="h264", size=(320, 240), options={"g": "1000"}))
    path.write_bytes(path.read_bytes()[path.stat().st_size // 2 :])
    frames, outcome = read(path)
    assert (frames, outcome.kind) == ([], "undecodable")
    assert outcome.frames_missing > 0


def damaged(path: Path, numbers: list[int]) -> Path:
    """Overwrite most of some packets."""
    with av.open(str(path)) as container:
        spans = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.pos is not None]
    data = bytearray(path.read_bytes())
    for number in numbers:
        at, size = spans[number]
        data[at + 4 : at + size] = b"\x00" * (size - 4)
    path.write_bytes(data)
    return path


def test_damage_costs_what_it_hit_and_is_counted(tmp_path: Path) -> None:
    path = damaged(write_clip(tmp_path / "a.mp4", Clip(options={"g": "10", "bf": "0"})), [13, 14, 31])
    frames, outcome = read(path)
    assert outcome.kind == "complete"
    assert (outcome.frames_decoded, outcome.frames_missing) == (47, 3)
    assert [(span.first_index, span.last_index) for span in outcome.missing] == [(13, 14), (31, 31)]
    assert outcome.missing[0].first_seconds == pytest.approx(0.52)
    # The others keep their numbers and times; what was decoded before the damage is whole.
    assert [frame.index for frame in frames] == [k for k in range(50) if k not in {13, 14, 31}]
    assert all(frame.time_seconds == pytest.approx(frame.index / 25) for frame in frames)
    assert all(mark_of(frame.image) == frame.index for frame in frames if frame.index % 10 < 1)


def test_a_reading_resumed_behind_damage_keeps_the_numbers(tmp_path: Path) -> None:
    path = damaged(write_clip(tmp_path / "a.mp4", Clip(options={"g": "10", "bf": "0"})), [13, 14])
    linear = [(frame.index, frame.pts) for frame in read(path)[0]]
    for resume in (12, 14, 15, 30):
        frames = VideoReader(str(path)).frames(resume=resume)
        assert [(frame.index, frame.pts) for frame in frames] == [at for at in linear if at[0] >= resume]


def audio(path: Path) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.zeros(8000, np.int16).tobytes())
    return path


def cover_art(path: Path) -> Path:
    with av.open(str(path), "w", format="mp4") as container:
        sound = container.add_stream("aac", rate=8000)
        cover = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 160, 120, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        silence.sample_rate = 8000
        container.mux(cover.encode(av.VideoFrame.from_ndarray(marked(0), format="rgb24")))
        container.mux(sound.encode(silence))
        container.mux(sound.encode(None))
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: audio(folder / "a.wav"), "no video stream"),
        (lambda folder: cover_art(folder / "a.m4a"), "no video stream"),
        (lambda folder: write_bytes(folder / "a.mp4", b""), "empty"),
        (lambda folder: write_bytes(folder / "a.mp4", b"hello world" * 1000), "not a video"),
    ],
    ids=["audio only", "cover art", "empty", "text"],
)
def test_what_is_no_video_is_named(tmp_path: Path, make: Any, said: str) -> None:
    path = make(tmp_path)
    frames, outcome = read(path)
    assert (frames, outcome.kind) == ([], "undecodable")
    assert said in outcome.detail
    with pytest.raises(SourceUnreadable, match=said):
        probe(str(path))


def write_bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_what_cannot_be_opened_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="no such file") as caught:
        VideoReader(str(tmp_path / "none.mp4"))
    assert caught.value.remedy
    with pytest.raises(SourceUnreadable, match="a folder"):
        VideoReader(str(tmp_path))
    os.mkfifo(tmp_path / "pipe.mp4")
    for endless in (tmp_path / "pipe.mp4", Path("/dev/zero")):
        with pytest.raises(SourceUnreadable, match="only files"):
            VideoReader(str(endless))
    with pytest.raises(NotYet, match="rtsp"):
        VideoReader("rtsp://127.0.0.1/stream")


def test_stop_and_leaving_the_loop_end_as_stopped(tmp_path: Path) -> None:
    reader = VideoReader(str(write_clip(tmp_path / "a.mp4")))
    frames = reader.frames()
    next(frames)
    reader.stop()
    assert list(frames) == []
    assert reader.outcome is not None
    assert reader.outcome.kind == "stopped"

    reader = VideoReader(str(tmp_path / "a.mp4"))
    abandoned = reader.frames()
    next(abandoned)
    abandoned.close()
    assert reader.outcome is not None
    assert reader.outcome.kind == "stopped"
