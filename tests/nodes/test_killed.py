"""Workers that are killed for real: the files that they leave are those of a run without a kill."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import videoflow as vf
from tests.media.clips import Clip, write_clip
from videoflow.faults import Fault, FaultAction
from videoflow.media.decoding import VideoReader
from videoflow.nodes import JsonlSink, VideoSink, VideoSource

FRAMES = 50


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty frames with a key frame every ten."""
    return write_clip(
        tmp_path_factory.mktemp("clips") / "street.mp4", Clip(frames=FRAMES, options={"g": "10"})
    )


def flow_of(street: Path, folder: Path) -> vf.Flow:
    camera = VideoSource(street, name="camera")
    video = VideoSink(folder / "a.mp4", fragment_frames=8, name="video")(camera)
    return vf.Flow([video, JsonlSink(folder / "a.jsonl", name="log")(camera)], name="killed")


@pytest.fixture(scope="module")
def undisturbed(street: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run without a kill, in threads."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert flow_of(street, folder).run("threads").verdict == "complete"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kills(record: Path, plan: Mapping[str, tuple[tuple[str, int], ...]]) -> dict[str, tuple[Fault, ...]]:
    return {
        task: tuple(Fault(barrier, FaultAction.CRASH, hit, str(record)) for barrier, hit in hits)
        for task, hits in plan.items()
    }


PLANS: tuple[dict[str, tuple[tuple[str, int], ...]], ...] = (
    {"video": (("effect.done", 3), ("effect.done", 21)), "log": (("effect.done", 33),)},
    {"video": (("commit.before", 2),), "log": (("commit.before", 1),)},
    {"camera": (("source.item", 5),), "video": (("commit.after", 5),), "log": (("settle.sent", 1),)},
    {
        "camera": (("publish.accepted", 2),),
        "video": (("terminator.sent", 1),),
        "log": (("terminator.sent", 1),),
    },
)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_kill_changes_no_byte(
    plan: dict[str, tuple[tuple[str, int], ...]], street: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out, record = tmp_path / "out", tmp_path / "hits"
    report = flow_of(street, out).run(
        "local", runs_folder=tmp_path / "runs", faults=kills(record, plan), restart_backoff_seconds=0.01
    )
    hit = [text.split()[0] for text in record.read_text().splitlines()]
    assert set(hit) == {barrier for hits in plan.values() for barrier, _ in hits}
    assert (report.verdict, report.dead_letters) == ("complete", [])
    assert sum(node.restarts for node in report.nodes) >= 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == undisturbed
    assert len(list(VideoReader(str(out / "a.mp4")).frames())) == FRAMES
