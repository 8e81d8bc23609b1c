"""A reading that starts in the middle yields exactly what a reading from the start yields from there on."""

from pathlib import Path
from typing import Any

import pytest

from tests.media.clips import Clip, write_clip
from videoflow.media import Frame
from videoflow.media.decoding import ReadOptions, VideoReader
from videoflow.media.decoding._seeking import StartPoint, find_start

CLIPS = {
    "h264": ("mp4", Clip(options={"g": "10", "bf": "0"})),
    "h264 reordered": ("mp4", Clip(options={"g": "12", "bf": "3"})),
    "h264 open groups": ("mkv", Clip(options={"g": "12", "bf": "3", "x264-params": "open-gop=1"})),
    "h264 in ts": ("ts", Clip(options={"g": "12", "bf": "2"})),
    "h264 fragments": ("mp4", Clip(options={"g": "10"}, muxer={"movflags": "frag_keyframe+empty_moov"})),
    "hevc": ("mp4", Clip(codec="libx265", options={"g": "10", "x265-params": "log-level=none"})),
    "mjpeg": ("avi", Clip(codec="mjpeg", pixels="yuvj420p")),
    "mpeg4": ("avi", Clip(codec="mpeg4", options={"g": "10", "bf": "2"})),
    "raw": ("h264", Clip(format="h264", options={"g": "10"})),
    "variable": ("mp4", Clip(options={"g": "10"}, times=lambda k: 2 * k + k % 2)),
}
SEEKABLE = {"h264", "h264 reordered", "h264 fragments", "hevc", "variable"}


@pytest.fixture(scope="module", params=CLIPS, ids=lambda name: name.replace(" ", "-"))
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    suffix, made = CLIPS[request.param]
    return request.param, write_clip(tmp_path_factory.mktemp("clip") / f"a.{suffix}", made)


def frames_of(path: Path, resume: int | None = None, **options: Any) -> tuple[list[Frame], int]:
    reader = VideoReader(str(path), ReadOptions(**options))
    frames = list(reader.frames(resume))
    assert reader.outcome is not None
    assert reader.outcome.kind == "complete"
    return frames, reader.outcome.started_at_index


@pytest.mark.parametrize("options", [{}, {"every": 3}, {"fps": 7.0}], ids=["all", "every", "fps"])
def test_a_resumed_reading_equals_the_rest_of_a_whole_one(clip: tuple[str, Path], options: Any) -> None:
    name, path = clip
    whole, _ = frames_of(path, **options)
    for resume in (0, 1, 9, 10, 11, 12, 24, 30, 37, 49, 50):
        rest, started = frames_of(path, resume, **options)
        assert rest == [frame for frame in whole if frame.index >= resume], (name, resume)
        assert not started or started < resume
        if name in SEEKABLE and resume > 24:
            assert started >= 10, "it decoded from the beginning"


def test_a_start_by_time_equals_the_rest_of_a_whole_one(clip: tuple[str, Path]) -> None:
    _, path = clip
    whole, _ = frames_of(path)
    for k in (1, 13, 30, 44):
        start = whole[k].time_seconds
        rest, _ = frames_of(path, start_seconds=start)
        assert rest == [frame for frame in whole if frame.time_seconds >= start]
        resumed, _ = frames_of(path, 40, start_seconds=start, fps=9.0)
        through, _ = frames_of(path, start_seconds=start, fps=9.0)
        assert resumed == [frame for frame in through if frame.index >= 40]


def test_a_wrong_start_point_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_clip(tmp_path / "a.mp4", Clip(options={"g": "10", "bf": "0"}))
    whole, _ = frames_of(path)

    def one_off(*arguments: Any) -> StartPoint | None:
        point = find_start(*arguments)
        assert point is not None
        return StartPoint(point.pts, point.stamp, point.index + 1, point.packets_before)

    monkeypatch.setattr("videoflow.media.decoding._reader.find_start", one_off)
    rest, _ = frames_of(path, 30)
    assert rest != whole[30:]
