"""Sound files: every frame, with its exact time, upright, in the declared format."""

import io
import struct
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.media.clips import SIZE, Clip, mark_of, marked, write_clip
from videoflow.errors import ArgumentInvalid
from videoflow.media import Frame, SourceOutcome
from videoflow.media.decoding import ReadOptions, VideoReader, max_frame_bytes, probe


def read(path: Path | str, **options: Any) -> tuple[list[Frame], SourceOutcome]:
    reader = VideoReader(str(path), ReadOptions(**options))
    frames = list(reader.frames())
    assert reader.outcome is not None
    return frames, reader.outcome


def vary(k: int) -> int:
    return 2 * k + k % 3 % 2


def drop(k: int) -> int:
    return k if k < 25 else 25 + 6 * (k - 25)


@pytest.mark.parametrize("times", [int, vary, drop], ids=["constant", "variable", "rate drops"])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_times_are_the_ones_that_were_written(
    tmp_path: Path, suffix: str, times: Callable[[int], int]
) -> None:
    frames, outcome = read(write_clip(tmp_path / f"a.{suffix}", Clip(times=times)))
    assert [frame.time_exact for frame in frames] == [Fraction(times(k), 25) for k in range(50)]
    assert [frame.index for frame in frames] == list(range(50))
    assert [mark_of(frame.image) for frame in frames] == list(range(50))
    assert (outcome.kind, outcome.frames_decoded, outcome.frames_missing) == ("complete", 50, 0)
    assert outcome.events == ()


def test_the_outcome_has_first_and_last_time_and_the_end(tmp_path: Path) -> None:
    _, outcome = read(write_clip(tmp_path / "a.mp4"))
    assert (outcome.first_seconds, outcome.last_seconds, outcome.at_seconds) == (0.0, 1.96, 2.0)
    assert outcome.as_error() is None


@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_rotated_video_comes_upright_and_says_so(tmp_path: Path, turned: int) -> None:
    path = write_clip(tmp_path / "a.mp4", Clip(frames=3, rotation=90))
    # The matrix of the track header, written by the letter of the file format: x' = ax + cy, y' = bx + dy.
    matrix = {90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}[turned]
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 44
    a, b, c, d = (value << 16 for value in matrix)
    struct.pack_into(">9i", data, at, a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)

    frame = read(path)[0][1]
    stored = marked(1)
    wanted = np.rot90(stored, -turned // 90)
    assert frame.image.shape == wanted.shape
    assert frame.rotation_applied == turned
    difference = np.abs(frame.image[:, :, ::-1].astype(int) - wanted)
    assert difference.mean() < 30, "the picture lies another way"
    info = probe(str(path))
    assert (info.width, info.height, info.rotation) == (frame.width, frame.height, turned)


@pytest.mark.parametrize(
    ("pixel_format", "shape"), [("bgr", (120, 160, 3)), ("rgb", (120, 160, 3)), ("gray", (120, 160))]
)
def test_the_image_is_what_was_declared(tmp_path: Path, pixel_format: str, shape: tuple[int, ...]) -> None:
    path = write_clip(tmp_path / "a.mp4", Clip(frames=2))
    frame = read(path, pixel_format=pixel_format)[0][0]
    assert (frame.image.shape, frame.pixel_format) == (shape, pixel_format)
    assert frame.image.flags.c_contiguous
    if pixel_format != "gray":
        seen = frame.image[:, :, :: 1 if pixel_format == "rgb" else -1].astype(int)
        assert np.abs(seen - marked(0)).mean() < 30


@pytest.mark.parametrize(
    ("clip", "suffix", "depth"),
    [
        (Clip(codec="libx265", pixels="yuv420p10le", options={"x265-params": "log-level=none"}), "mp4", 10),
        (Clip(codec="prores_ks", pixels="yuv422p10le"), "mov", 10),
        (Clip(codec="ffv1", pixels="gray"), "mkv", 8),
        (Clip(codec="ffv1", pixels="gray16le"), "mkv", 16),
    ],
    ids=["hevc 10", "prores", "gray 8", "gray 16"],
)
def test_other_depths_become_eight_bits_and_say_so(
    tmp_path: Path, clip: Clip, suffix: str, depth: int
) -> None:
    frames, outcome = read(write_clip(tmp_path / f"a.{suffix}", clip))
    assert [mark_of(frame.image) for frame in frames] == list(range(50))
    assert {frame.source_bit_depth for frame in frames} == {depth}
    assert outcome.complete


def test_an_odd_size_keeps_its_shape(tmp_path: Path) -> None:
    frames, _ = read(write_clip(tmp_path / "a.avi", Clip(codec="mpeg4", size=(161, 121))))
    assert {frame.image.shape for frame in frames} == {(121, 161, 3)}
    assert mark_of(frames[7].image) == 7


def test_frames_come_in_presentation_order_where_they_are_stored_in_another(tmp_path: Path) -> None:
    for name, clip in {
        "a.mp4": Clip(options={"bf": "3", "g": "12"}),
        "a.avi": Clip(codec="mpeg4", options={"bf": "2"}),
        "b.avi": Clip(options={"bf": "3"}),
    }.items():
        frames, outcome = read(write_clip(tmp_path / name, clip))
        assert [mark_of(frame.image) for frame in frames] == list(range(50)), name
        gaps = {after.pts - before.pts for before, after in pairwise(frames)}
        assert len(gaps) == 1, name
        assert outcome.frames_missing == 0, name


def test_a_late_start_is_kept(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.ts", Clip(muxer={"output_ts_offset": "7.3"}))
    frames, _ = read(path)
    first = frames[0].time_exact
    assert first >= Fraction(73, 10)
    assert [frame.time_exact - first for frame in frames] == [Fraction(k, 25) for k in range(50)]


def test_an_edit_list_leaves_the_frames_that_it_names(tmp_path: Path) -> None:
    source = write_clip(tmp_path / "a.mp4", Clip(options={"g": "25", "bf": "2"}))
    target = tmp_path / "b.mp4"
    with av.open(str(source)) as given, av.open(str(target), "w") as cut:
        stored = given.streams.video[0]
        stream = cut.add_stream_from_template(stored)
        given.seek(int(Fraction(103, 100) / Fraction(str(stored.time_base))), stream=stored)
        for packet in given.demux(stored):
            if packet.size and packet.pts is not None and packet.dts is not None:
                shift = int(Fraction(103, 100) / Fraction(str(stored.time_base)))
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, stream
                cut.mux(packet)
    frames, outcome = read(target)
    assert [mark_of(frame.image) for frame in frames] == list(range(26, 50))
    assert [frame.index for frame in frames] == list(range(24))
    assert outcome.complete


def test_what_a_picture_cannot_show_is_said(tmp_path: Path) -> None:
    interlaced = Clip(frames=4, options={"x264-params": "interlaced=1"}, size=(160, 128))
    assert read(write_clip(tmp_path / "a.mp4", interlaced))[0][0].interlaced
    wide = Clip(frames=2, aspect=Fraction(4, 3))
    assert read(write_clip(tmp_path / "b.mp4", wide))[0][0].sample_aspect_ratio == Fraction(4, 3)
    clear = Clip(frames=2, codec="png", pixels="rgba")
    frames, outcome = read(write_clip(tmp_path / "c.mov", clear))
    assert frames[0].image.shape == (120, 160, 3)
    assert [event.kind for event in outcome.events] == ["alpha-dropped"]


def test_a_change_of_size_is_an_event_and_no_rescaling(tmp_path: Path) -> None:
    small = write_clip(tmp_path / "a.ts", Clip(frames=10)).read_bytes()
    large = write_clip(tmp_path / "b.ts", Clip(frames=10, size=(192, 144))).read_bytes()
    both = tmp_path / "c.ts"
    both.write_bytes(small + large)
    frames, outcome = read(both)
    shapes = [frame.image.shape[:2] for frame in frames]
    assert shapes == sorted(shapes)
    assert set(shapes) == {(120, 160), (144, 192)}
    # The decoder may drop what waits for its turn when the size changes; then it is counted.
    assert len(frames) + outcome.frames_missing == 20
    assert len(frames) >= 19
    sizes = [event for event in outcome.events if event.kind == "size-changed"]
    assert [event.data for event in sizes] == [{"width": 192, "height": 144}]


def test_times_that_jump_back_go_on_and_the_jump_is_said(tmp_path: Path) -> None:
    once = write_clip(tmp_path / "a.ts").read_bytes()
    twice = tmp_path / "b.ts"
    twice.write_bytes(once + once)
    frames, outcome = read(twice)
    assert len(frames) == 100
    assert [frame.index for frame in frames] == list(range(100))
    assert all(before.pts < after.pts for before, after in pairwise(frames))
    assert "discontinuity" in {event.kind for event in outcome.events}


def test_the_clock_of_a_transport_stream_may_wrap(tmp_path: Path) -> None:
    frames, _ = read(write_clip(tmp_path / "a.ts", Clip(muxer={"output_ts_offset": "95441.7"}, frames=100)))
    steps = [after.time_exact - before.time_exact for before, after in pairwise(frames)]
    assert steps == [Fraction(1, 25)] * 99


def test_raw_video_gets_times_by_a_declared_rate_and_says_so(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.h264", Clip(format="h264", frames=10))
    frames, outcome = read(path, declared_fps=10)
    assert [frame.time_exact for frame in frames] == [Fraction(k, 10) for k in range(10)]
    assert {frame.clock for frame in frames} == {"declared"}
    assert [event.kind for event in outcome.events] == ["times-declared"]


def test_all_frames_of_equal_times_come(tmp_path: Path) -> None:
    def pair(number: int, packet: Any) -> bool:
        packet.pts += packet.duration * (1 - number % 2)
        return number >= 0

    path = write_clip(tmp_path / "a.mp4", Clip(options={"bf": "0"}), keep=pair)
    frames, outcome = read(path)
    assert [mark_of(frame.image) for frame in frames] == list(range(50))
    assert [frame.index for frame in frames] == list(range(50))
    assert outcome.frames_missing == 0


def test_an_hours_hole_is_a_gap(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mkv", Clip(times=lambda k: k if k < 25 else k + 90_000))
    frames, outcome = read(path)
    assert len(frames) == 50
    assert [(event.kind, event.time_seconds) for event in outcome.events] == [("gap", 0.96)]
    assert outcome.events[0].data == {"until_seconds": 3601.0}


@pytest.mark.parametrize(
    "name", ["Straße 車.mp4", "a b.mp4", "%03d.mp4", "a#b?.mp4", "it's.mp4", "-i.mp4", "a.avi", "none"]
)
def test_files_are_opened_by_content_whatever_their_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(write_clip(tmp_path / "plain.mp4", Clip(frames=3)).read_bytes())
    monkeypatch.chdir(tmp_path)
    frames, _ = read(name)
    assert [frame.source for frame in frames] == [name] * 3
    assert len(read((tmp_path / name).as_uri())[0]) == 3


def test_one_frame_has_a_duration_and_no_frames_are_none(tmp_path: Path) -> None:
    frames, outcome = read(write_clip(tmp_path / "a.mp4", Clip(frames=1)))
    assert len(frames) == 1
    assert outcome.at_seconds == float((frames[0].duration_pts or 0) * frames[0].time_base) == 0.04

    empty = tmp_path / "b.mp4"
    with av.open(str(empty), "w", options={"movflags": "empty_moov"}) as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height = SIZE
        container.start_encoding()
    frames, outcome = read(empty)
    assert (frames, outcome.kind, outcome.frames_decoded) == ([], "complete", 0)


def test_the_stream_that_was_asked_for_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("libx264", rate=25) for _ in range(2)]
        for number, stream in enumerate(streams):
            stream.width, stream.height = SIZE[0] + 32 * number, SIZE[1]
        for stream in streams:
            for k in range(5):
                size = (stream.width, stream.height)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(marked(k, size), format="rgb24")))
            container.mux(stream.encode(None))
    assert read(path, stream=1)[0][4].width == 192
    assert read(path)[0][4].width == 160
    assert "2 video streams" in read(path, stream=2)[1].detail


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"every": 10}, [0, 10, 20, 30, 40]),
        ({"fps": 5.0}, list(range(0, 50, 5))),
        ({"fps": 50.0}, list(range(50))),
        ({"start_seconds": 1.0}, list(range(25, 50))),
        ({"end_seconds": 1.0}, list(range(25))),
        ({"start_seconds": 0.99, "end_seconds": 1.5, "every": 4}, [28, 32, 36]),
        ({"start_seconds": 5.0}, []),
    ],
)
def test_only_what_was_asked_for_is_emitted(
    tmp_path: Path, options: dict[str, Any], expected: list[int]
) -> None:
    frames, outcome = read(write_clip(tmp_path / "a.mp4", Clip(options={"g": "10"})), **options)
    assert [frame.index for frame in frames] == expected
    assert [mark_of(frame.image) for frame in frames] == expected
    assert outcome.kind == "complete"


@pytest.mark.parametrize(
    "options", [{"every": 0}, {"fps": 0}, {"fps": 5, "every": 2}, {"start_seconds": 2, "end_seconds": 1}]
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentInvalid, match="expected"):
        ReadOptions(**options)


def test_the_header_is_told_before_reading(tmp_path: Path) -> None:
    path = str(write_clip(tmp_path / "a.mp4"))
    info = probe(path)
    assert (info.width, info.height, info.rotation, info.codec) == (160, 120, 0, "h264")
    assert (info.frames_estimate, info.average_rate, info.duration_seconds) == (50, Fraction(25), 2.0)
    assert max_frame_bytes(path) == 160 * 120 * 3


def test_pictures_are_the_ones_that_pyav_decodes(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", Clip(frames=12))
    with av.open(io.BytesIO(path.read_bytes()), "r") as container:
        plain = [picture.to_ndarray(format="bgr24") for picture in container.decode(video=0)]
    assert all(np.array_equal(frame.image, image) for frame, image in zip(read(path)[0], plain, strict=True))
