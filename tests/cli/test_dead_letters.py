"""`dead-letters list|show`: what a person finds out about an input that was put aside."""

import json
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.cli.helpers import NEWER, OLDER, command, finished_run, letter, put_letters
from videoflow.graph.report import Verdict
from videoflow.media import Detections, Frame
from videoflow.wire import encode_value, freeze

Capture = pytest.CaptureFixture[str]


def frame() -> Frame:
    image = np.zeros((12, 16, 3), np.uint8)
    image[:, :8] = (255, 0, 0)
    return Frame(image=image, pts=318, time_base=Fraction(1, 25), index=318, source="street.mp4")


def body(value: object) -> bytes:
    return encode_value(freeze(value)).body


def test_list_shows_the_newest_run_by_default(capfd: Capture) -> None:
    put_letters(finished_run(OLDER), letter(1, run_id=OLDER))
    put_letters(finished_run(NEWER, Verdict.INCOMPLETE), letter(318), letter(7))
    ending = command(capfd, "dead-letters", "list")
    assert ending.status == 0
    lines = ending.out.splitlines()
    assert lines[0].split() == ["label", "node", "time", "attempts", "error"]
    assert [line.split()[0] for line in lines[1:]] == ["7-7f3a", "318-7f3a"]
    assert "12.720 s" in lines[2]
    assert "1-7f3a" in command(capfd, "dead-letters", "list", OLDER).out


def test_list_as_json(capfd: Capture) -> None:
    put_letters(finished_run(NEWER), letter(318))
    (row,) = json.loads(command(capfd, "dead-letters", "list", "--json").out)
    assert (row["label"], row["node"], row["origin"], row["attempts"]) == (
        "318-7f3a",
        "detect",
        "camera/0/318",
        4,
    )


def test_a_run_without_dead_letters_says_so(capfd: Capture) -> None:
    finished_run(NEWER)
    ending = command(capfd, "dead-letters", "list")
    assert (ending.status, ending.out) == (0, "")
    assert "has no dead letters" in ending.err


@pytest.mark.parametrize("text", ["318-7f3a", "318", f"{NEWER}/318-7f3a", "last/318-7f3a"])
def test_show_tells_all_about_one(capfd: Capture, text: str) -> None:
    found = Detections.from_arrays([[1, 2, 3, 4]], confidence=[0.9], class_id=[0], class_names=["person"])
    put_letters(
        finished_run(NEWER), letter(318, camera=body(frame()), detect=body(found), note=body({"a": [1]}))
    )
    ending = command(capfd, "dead-letters", "show", text)
    assert ending.status == 0
    for part in (
        "item 318 of camera",
        "street.mp4",
        "12.720 s",
        "ValueError: expected an image",
        "flow.py:31 in process",
        "camera: Frame(16x12 bgr, index=318",
        "detect: 1 detection",
        "person",
        "note: {'a': [1]}",
        "Traceback (most recent call last):",
    ):
        assert part in ending.out, part


def test_show_saves_the_frames_as_pictures(capfd: Capture, tmp_path: Path) -> None:
    put_letters(finished_run(NEWER), letter(318, camera=body(frame()), crops=body([frame(), frame()])))
    ending = command(capfd, "dead-letters", "show", "318-7f3a", "--save", str(tmp_path / "out"))
    assert ending.status == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["318-7f3a-camera.png", "318-7f3a-crops-1.png", "318-7f3a-crops-2.png"]
    picture = cv2.imread(str(tmp_path / "out" / "318-7f3a-camera.png"))
    assert picture is not None
    assert np.array_equal(picture, frame().image)


def test_a_value_that_cannot_be_decoded_does_not_hide_the_rest(capfd: Capture) -> None:
    put_letters(finished_run(NEWER), letter(318, camera=body(frame()), broken=b"\xc1"))
    ending = command(capfd, "dead-letters", "show", "318-7f3a")
    assert ending.status == 0
    assert "broken: 1 B that cannot be shown here" in ending.out
    assert "camera: Frame" in ending.out


def test_an_unknown_label_is_refused_with_the_nearest(capfd: Capture) -> None:
    put_letters(finished_run(NEWER), letter(318), letter(319))
    ending = command(capfd, "dead-letters", "show", "318-7f3b")
    assert ending.status == 2
    assert "there is no dead letter '318-7f3b'" in ending.err
    assert "did you mean '318-7f3a'?" in ending.err
    ending = command(capfd, "dead-letters", "show", "31")
    assert ending.status == 2
    assert "names 2 dead letters" in ending.err
