"""Following boxes from frame to frame. Used by the tracker node; plain NumPy, its state is plain arrays.

The method is Y. Zhang et al., "ByteTrack: Multi-object tracking by associating every detection box", 2022:
predicted tracks are matched with the confident boxes first, and those left over with the doubtful boxes, so
that a person half hidden keeps their number. What differs: time is the frames' time and not a count of
frames; boxes of another class never match; a number is given when a track is confirmed, so that numbers are
dense.

A track that starts in the first frame is confirmed at once. Any other is confirmed when the next frame shows
it again, and forgotten otherwise. It refuses nothing: the node checks its arguments.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from videoflow.nodes.vision._boxes import overlaps
from videoflow.nodes.vision._motion import STEP_SECONDS, Motion

DOUBTFUL_FLOOR = 0.1
DOUBTFUL_IOU = 0.5
UNCONFIRMED = 0
LEAST_SECONDS = 1e-6
Indices = NDArray[np.intp]
Assign = Callable[[NDArray[np.float64]], tuple[Indices, Indices]]
"""Solves the assignment problem: from an (N, M) cost matrix to rows and columns of the cheapest pairing."""


@dataclass(frozen=True)
class Settings:
    """How tracks are made and kept.

    Attributes:
        activate: Least confidence of a box that starts a track or is matched in the first round, in 0..1.
        match_iou: Least overlap of a box with a track's predicted box, in 0..1.
        lost_seconds: How long a track out of sight is kept.
    """

    activate: float
    match_iou: float
    lost_seconds: float


@dataclass(frozen=True)
class Tracks:
    """Everything a tracker knows about one source.

    Attributes:
        motion: Filters of the T tracks.
        track_id: (T,) int64 numbers from 1; `UNCONFIRMED` for a track without one.
        class_id: (T,) int32.
        unseen_seconds: (T,) float64: how long ago each was last seen; 0 in the last frame.
        next_id: The number that the next confirmed track gets.
        time_seconds: Time of the last frame; None before the first one or where frames have no times.
        frames: Frames seen.
    """

    motion: Motion
    track_id: NDArray[np.int64]
    class_id: NDArray[np.int32]
    unseen_seconds: NDArray[np.float64]
    next_id: int = 1
    time_seconds: float | None = None
    frames: int = 0

    @classmethod
    def none(cls) -> "Tracks":
        """Returns the knowledge before the first frame."""
        return cls(Motion.begin(np.zeros((0, 4))), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))

    def state(self) -> dict[str, Any]:
        """Returns everything as numbers and arrays, from which `from_state` makes an equal object."""
        return {
            "place": self.motion.place,
            "velocity": self.motion.velocity,
            "spread": self.motion.spread,
            "track_id": self.track_id,
            "class_id": self.class_id,
            "unseen_seconds": self.unseen_seconds,
            "next_id": self.next_id,
            "time_seconds": self.time_seconds,
            "frames": self.frames,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Tracks":
        """Returns the object that `state` described."""
        rest = {key: value for key, value in state.items() if key not in {"place", "velocity", "spread"}}
        return cls(motion=Motion(state["place"], state["velocity"], state["spread"]), **rest)


@dataclass(frozen=True)
class Seen:
    """The boxes of one frame: `xyxy` (N, 4) pixels, `confidence` (N,), `class_id` (N,)."""

    xyxy: NDArray[np.float32]
    confidence: NDArray[np.float32]
    class_id: NDArray[np.int32]


def follow(
    tracks: Tracks, seen: Seen, time_seconds: float | None, settings: Settings, assign: Assign
) -> tuple[Tracks, NDArray[np.int64]]:
    """Returns the tracks after one more frame, and the number of each box's track.

    Args:
        tracks: What was known before; it is not changed.
        seen: The boxes of the frame.
        time_seconds: Time of the frame; None where it has none, which counts as `STEP_SECONDS` later. A time
            not after the last one counts as `LEAST_SECONDS` later.
        settings: Thresholds.
        assign: Solver of the assignment problem.

    Returns:
        The tracks, and (N,) int64: track numbers, -1 for a box of no confirmed track.
    """
    elapsed = _elapsed(tracks.time_seconds, time_seconds)
    visible = tracks.unseen_seconds == 0
    moved = tracks.motion.after(elapsed, ~visible)
    likeness = overlaps(moved.boxes(), seen.xyxy)
    likeness[tracks.class_id[:, None] != seen.class_id[None, :]] = 0.0
    owner = np.full(len(seen.xyxy), -1, np.intp)

    confident = seen.confidence >= settings.activate
    doubtful = ~confident & (seen.confidence >= DOUBTFUL_FLOOR)
    confirmed = tracks.track_id != UNCONFIRMED
    rounds = (
        (confirmed, confident, settings.match_iou),
        (confirmed & visible, doubtful, max(settings.match_iou, DOUBTFUL_IOU)),
        (~confirmed, confident, settings.match_iou),
    )
    for some_tracks, some_boxes, least in rounds:
        rows = np.flatnonzero(some_tracks & ~np.isin(np.arange(len(some_tracks)), owner))
        columns = np.flatnonzero(some_boxes & (owner < 0))
        row, column = _pair(likeness[np.ix_(rows, columns)], least, assign)
        owner[columns[column]] = rows[row]

    aged = replace(tracks, motion=moved, unseen_seconds=tracks.unseen_seconds + elapsed)
    kept, numbers = _settle(aged, seen, owner, settings.lost_seconds)
    fresh = seen.xyxy[confident & (owner < 0)], seen.class_id[confident & (owner < 0)]
    grown, new_numbers = _started(kept, *fresh)
    numbers[confident & (owner < 0)] = new_numbers
    return replace(grown, time_seconds=time_seconds, frames=tracks.frames + 1), numbers


def _elapsed(before: float | None, now: float | None) -> float:
    if before is None or now is None:
        return STEP_SECONDS
    return max(LEAST_SECONDS, now - before)


def _pair(likeness: NDArray[np.float64], least: float, assign: Assign) -> tuple[Indices, Indices]:
    """Returns the rows and columns of the best pairing in which every pair is at least so much alike.

    A pair below the limit costs what leaving both alone costs, so it never displaces a good one.
    """
    cost = 1.0 - np.where(likeness >= least, likeness, least)
    rows, columns = assign(cost)
    fits = likeness[rows, columns] >= max(least, 1e-9)
    return rows[fits], columns[fits]


def _settle(
    tracks: Tracks, seen: Seen, owner: Indices, lost_seconds: float
) -> tuple[Tracks, NDArray[np.int64]]:
    """Returns the tracks corrected by their boxes, without those given up, and the number of each box."""
    boxes = np.flatnonzero(owner >= 0)
    matched = owner[boxes]
    motion = tracks.motion.corrected(matched, seen.xyxy[boxes])
    unseen, track_id = tracks.unseen_seconds.copy(), tracks.track_id.copy()
    unseen[matched] = 0.0
    newly = matched[track_id[matched] == UNCONFIRMED]
    track_id[newly] = tracks.next_id + np.arange(len(newly))
    numbers = np.full(len(owner), -1, np.int64)
    numbers[boxes] = track_id[matched]
    keep = (track_id != UNCONFIRMED) & (unseen <= lost_seconds)
    kept = Tracks(
        motion.pick(keep),
        track_id[keep],
        tracks.class_id[keep],
        unseen[keep],
        tracks.next_id + len(newly),
        tracks.time_seconds,
        tracks.frames,
    )
    return kept, numbers


def _started(
    tracks: Tracks, xyxy: NDArray[np.float32], class_id: NDArray[np.int32]
) -> tuple[Tracks, NDArray[np.int64]]:
    """Returns the tracks with new ones for these boxes, and their numbers: -1 while unconfirmed."""
    count = len(xyxy)
    at_once = tracks.frames == 0
    given = tracks.next_id + np.arange(count) if at_once else np.full(count, UNCONFIRMED)
    grown = replace(
        tracks,
        motion=tracks.motion.joined(Motion.begin(xyxy)),
        track_id=np.concatenate([tracks.track_id, given.astype(np.int64)]),
        class_id=np.concatenate([tracks.class_id, class_id]),
        unseen_seconds=np.concatenate([tracks.unseen_seconds, np.zeros(count)]),
        next_id=tracks.next_id + (count if at_once else 0),
    )
    return grown, given.astype(np.int64) if at_once else np.full(count, -1, np.int64)
