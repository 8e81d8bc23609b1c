"""`Tracker`: gives boxes of one thing one number. It needs the extra `video`, loaded when it opens.

Used behind a detector. It refuses parameters that cannot be, when the flow is built.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from videoflow.errors import LibraryMissing
from videoflow.graph import Context, NodeOptions, Processor
from videoflow.media import Detections
from videoflow.nodes._arguments import require, require_input
from videoflow.nodes.vision._bytetrack import Seen, Settings, Tracks, follow

if TYPE_CHECKING:
    from videoflow.nodes.vision._bytetrack import Assign


class Tracker(Processor):
    """Follows objects from frame to frame by ByteTrack, for each source on its own.

    Reads `Detections`, makes `Detections` with `track_id` set: the boxes of confirmed tracks, unchanged and
    in their order; boxes of no track, and of tracks not confirmed, are left out. A track is confirmed by its
    second frame in a row, or at once when it begins in the first frame of its source; it gets its number
    then, 1, 2, 3 and so on. How long somebody may be out of sight is measured by the frames' times, so that
    it means the same at every frame rate and after dropped frames; where frames have no time, each counts
    for 0.04 s. All that it knows is in `ctx.state`: a restart changes nothing.

    Args:
        activate: Least confidence of a box that begins a track, in 0..1. Boxes below it only continue one.
        match_iou: Least overlap of a box with where its track was expected, in 0..1.
        lost_seconds: How long a track out of sight is remembered.

    Raises:
        ArgumentInvalid: A number out of range.

    Example:
        >>> Tracker(lost_seconds=1.5, name="track")
        <Tracker 'track'>
    """

    stateful = True
    max_item_bytes: int = 1 << 18

    def __init__(
        self,
        *,
        activate: float = 0.4,
        match_iou: float = 0.2,
        lost_seconds: float = 2.0,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        require(0 <= activate <= 1, "Tracker", "activate", activate, "0 to 1")
        require(0 <= match_iou <= 1, "Tracker", "match_iou", match_iou, "0 to 1")
        require(lost_seconds >= 0, "Tracker", "lost_seconds", lost_seconds, "0 or more")
        self._settings = Settings(activate, match_iou, lost_seconds)
        self._assign: Assign | None = None

    def open(self) -> None:
        """Loads the solver of the assignment problem.

        Raises:
            LibraryMissing: SciPy is not installed.
        """
        try:
            from scipy.optimize import linear_sum_assignment
        except ImportError as error:
            raise LibraryMissing(
                "Tracker needs SciPy", cause=str(error), remedy='pip install "videoflow[video]"'
            ) from error
        self._assign = linear_sum_assignment

    def process(self, detections: Detections, ctx: Context) -> Detections:
        """Returns the boxes that belong to confirmed tracks, with their numbers.

        Raises:
            TypeError: The input is no `Detections`.
        """
        require_input(detections, Detections, "Tracker", "wire it to a Detector")
        if self._assign is None:
            raise RuntimeError("Tracker.process was called before open")
        source = detections.source or ctx.source
        known = ctx.state.get(source)
        tracks = Tracks.none() if known is None else Tracks.from_state(known)
        seen = Seen(detections.xyxy, detections.confidence, detections.class_id)
        tracks, numbers = follow(tracks, seen, ctx.time_seconds, self._settings, self._assign)
        ctx.state[source] = tracks.state()
        numbered = replace(detections, track_id=numbers)
        return numbered[numbers > 0]
