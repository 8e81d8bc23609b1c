"""Bad videos, full disks, places that cannot be written: one block, the right status, nothing left behind."""

from pathlib import Path
from typing import Any

import pytest

from tests.media.clips import Clip, cut, write_clip
from tests.promises.commands import Ended, command
from videoflow.engines.run_folder import RunFolder
from videoflow.graph.report import RunReport, Verdict
from videoflow.media.decoding import VideoReader

FLOW = str(Path(__file__).parent / "copying.py")
FRAMES = 60


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole video, and spoilt ones."""
    folder = tmp_path_factory.mktemp("videos")
    whole = write_clip(folder / "whole.mkv", Clip(frames=FRAMES))
    cut(whole, folder / "cut.mkv", 0.6)
    cut(write_clip(folder / "whole.mp4", Clip(frames=FRAMES)), folder / "headless.mp4", 0.6)
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "text.mp4").write_text("this is not a video\n" * 50)
    return folder


def copy(folder: Path, source: Path, *words: str, engine: str = "threads", **how: Any) -> Ended:
    arguments = ("run-local", FLOW, "--engine", engine, "--source", str(source), *words)
    return command(folder, *arguments, **how)


def report_of(ended: Ended) -> RunReport:
    report = RunFolder(ended.run_folder()).report()
    assert report is not None
    return report


def test_a_missing_video_is_the_users_mistake(tmp_path: Path) -> None:
    ended = copy(tmp_path, Path("streets.mp4"), engine="local")
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (2, "VF-USAGE", frozenset())
    assert block.message == "streets.mp4: the source cannot be opened"
    assert f"there is no such file        {tmp_path / 'streets.mp4'}" in block.fields
    assert "nothing was started" in block.fields


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("empty.mp4", "the file is empty"),
        ("text.mp4", "the file is not a video"),
        ("headless.mp4", "or its header is missing"),
    ],
)
def test_what_is_no_video_is_incomplete_and_leaves_no_picture(
    name: str, cause: str, videos: Path, tmp_path: Path
) -> None:
    ended = copy(tmp_path, videos / name)
    block = ended.block()
    assert (ended.status, block.code) == (1, "VF-SOURCE")
    assert block.message == "source camera ended as undecodable"
    assert cause in block.fields
    assert "--allow-incomplete" in block.fields
    report = report_of(ended)
    assert (report.verdict, report.sources[0].outcome) == (Verdict.INCOMPLETE, "undecodable")
    assert ended.beside_home() <= {"log.jsonl"}
    assert (tmp_path / "log.jsonl").read_bytes() == b""


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_video_that_breaks_off_is_kept_as_far_as_it_goes_and_said_to_be_cut(
    engine: str, videos: Path, tmp_path: Path
) -> None:
    ended = copy(tmp_path, videos / "cut.mkv", engine=engine)
    block = ended.block()
    assert (ended.status, block.code) == (1, "VF-SOURCE")
    assert block.message == "source camera ended as truncated"
    assert "before the end" in block.fields
    report = report_of(ended)
    (source,) = report.sources
    assert (report.verdict, source.outcome) == (Verdict.INCOMPLETE, "truncated")
    assert 0 < source.items < FRAMES
    assert all(edge.closed and edge.delivered == source.items for edge in report.edges)
    assert len(list(VideoReader(str(tmp_path / "copy.mp4")).frames())) == source.items
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == source.items
    assert ended.beside_home() == {"copy.mp4", "log.jsonl"}


def test_what_there_is_of_a_video_can_be_accepted(videos: Path, tmp_path: Path) -> None:
    ended = copy(tmp_path, videos / "cut.mkv", "--allow-incomplete", "--quiet")
    assert ended.status == 0
    assert ended.block().message == "source camera ended as truncated"
    assert report_of(ended).verdict is Verdict.INCOMPLETE


def test_a_video_is_not_written_over_itself(videos: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.mp4"
    mine.write_bytes((videos / "whole.mp4").read_bytes())
    (tmp_path / "alias.mp4").symlink_to(mine)
    for out in ("mine.mp4", "alias.mp4"):
        ended = copy(tmp_path, mine, "--out", out)
        block = ended.block()
        assert (ended.status, block.code, ended.made) == (2, "VF-FLOW-INVALID", frozenset())
        assert f"video: it writes {out}, which camera reads" in block.fields
    assert mine.read_bytes() == (videos / "whole.mp4").read_bytes()


# Places ---------------------------------------------------------------------------------------


def test_an_output_folder_that_cannot_be_written_is_refused_before_anything_starts(
    videos: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for out in ("closed/copy.mp4", "closed/further/copy.mp4"):
        ended = copy(tmp_path, videos / "whole.mkv", "--out", out, bound=True)
        block = ended.block()
        assert (ended.status, block.code, ended.made) == (3, "VF-OUTPUT", frozenset())
        assert block.message == "copy.mp4 cannot be written"
        assert f"nothing can be written in {closed}: Permission denied" in block.fields
        assert str(tmp_path / out) in block.fields
    assert list(closed.iterdir()) == []


def test_a_file_in_the_place_of_an_output_folder_is_named(videos: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("mine")
    ended = copy(tmp_path, videos / "whole.mkv", "--out", "folder/copy.mp4")
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (3, "VF-OUTPUT", frozenset())
    assert f"{tmp_path / 'folder'} is not a folder" in block.fields


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_a_run_folder_that_cannot_be_made_is_refused_before_anything_starts(
    engine: str, videos: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    ended = copy(tmp_path, videos / "whole.mkv", "--run-dir", "closed/runs", engine=engine, bound=True)
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (3, "VF-OUTPUT", frozenset())
    assert block.message == "the run folder cannot be made"
    assert "Permission denied" in block.fields
    assert "--run-dir" in block.fields


def test_a_home_that_cannot_be_written_is_named(videos: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    ended = copy(tmp_path, videos / "whole.mkv", bound=True, home=closed)
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (3, "VF-OUTPUT", frozenset())
    assert "VIDEOFLOW_HOME" in block.fields


def test_a_disk_that_is_full_fails_the_run_and_leaves_what_is_durable(videos: Path, tmp_path: Path) -> None:
    ended = copy(tmp_path, videos / "whole.mkv", most_bytes=24_000)
    block = ended.block()
    assert (ended.status, block.code) == (3, "VF-OUTPUT")
    assert block.message.startswith("node video, item ")
    assert f"{tmp_path / 'copy.mp4'}: the file cannot be written: File too large" in block.fields
    assert "make room" in block.fields
    report = report_of(ended)
    assert report.verdict is Verdict.FAILED
    assert all(edge.closed for edge in report.edges)
    assert "copy.mp4" not in ended.made
    assert "copy.mp4 (not finished; copy.mp4.part, " in ended.err
    part = tmp_path / "copy.mp4.part"
    assert len(list(VideoReader(str(part)).frames())) == report.edges[0].delivered > 0
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == report.edges[-1].delivered


def test_a_disk_that_is_full_from_the_start_is_refused(videos: Path, tmp_path: Path) -> None:
    ended = copy(tmp_path, videos / "whole.mkv", most_bytes=2_000)
    block = ended.block()
    assert (ended.status, block.code, ended.made) == (3, "VF-OUTPUT", frozenset())
    assert block.message == "spec.json of the run cannot be written"
    assert "--run-dir" in block.fields


def test_a_report_can_be_asked_for_where_no_folder_is_yet(videos: Path, tmp_path: Path) -> None:
    ended = copy(tmp_path, videos / "whole.mkv", "--report", "new/folder/report.json")
    assert ended.status == 0, ended.err
    report = RunReport.from_json((tmp_path / "new/folder/report.json").read_bytes())
    assert report.verdict is Verdict.COMPLETE
