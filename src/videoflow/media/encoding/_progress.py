"""What a writer must remember to continue a file: `Progress`, as plain data.

Used by the writer and kept by sinks in their state. It refuses data of another version.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from videoflow.errors import ContractBroken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from videoflow.media._frame import Frame

_VERSION = 1
_LEAST_TICKS = 10_000
_MOST_TICKS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a file stands after its last whole fragment; all numbers are whole, so that it is JSON.

    Attributes:
        crf: Quality of x264.
        fragment_frames: Frames in a fragment.
        timescale: Ticks in a second; 0 before the first frame.
        first_numerator: Time of the first frame in seconds: numerator.
        first_denominator: The same: denominator.
        width: Pixels along x of the frames.
        height: Pixels along y of the frames.
        aspect_numerator: Width of a pixel, in parts.
        aspect_denominator: Height of a pixel, in the same parts.
        fragments: Whole fragments.
        frames: Frames in them.
        durable_bytes: Length of the working file that holds them.
        last_ticks: Time of the last frame in ticks.
        step_ticks: Ticks between the last two frames; 0 with fewer.
        end_ticks: End of the last frame in ticks.
        times_rounded: Frames whose time is no whole number of ticks.
        times_moved: Frames whose time equalled the one before, and was put a tick later.
    """

    crf: int
    fragment_frames: int
    timescale: int = 0
    first_numerator: int = 0
    first_denominator: int = 1
    width: int = 0
    height: int = 0
    aspect_numerator: int = 1
    aspect_denominator: int = 1
    fragments: int = 0
    frames: int = 0
    durable_bytes: int = 0
    last_ticks: int = 0
    step_ticks: int = 0
    end_ticks: int = 0
    times_rounded: int = 0
    times_moved: int = 0

    def as_state(self) -> dict[str, int]:
        """Return it as JSON-like data."""
        return {"version": _VERSION, **dataclasses.asdict(self)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Progress:
        """Return what `as_state` gave.

        Args:
            state: JSON-like data.

        Raises:
            ContractBroken: It comes from another version.
        """
        values = dict(state)
        if values.pop("version", None) != _VERSION:
            raise ContractBroken(
                "the state of a video file cannot be read",
                cause=f"expected version {_VERSION}, got {state.get('version')!r}",
                remedy="write the file anew",
            )
        return cls(**values)

    @property
    def first_time(self) -> Fraction:
        """Time of the first frame in seconds, exact."""
        return Fraction(self.first_numerator, self.first_denominator)

    @property
    def aspect_ratio(self) -> Fraction:
        """Width of a pixel over its height."""
        return Fraction(self.aspect_numerator, self.aspect_denominator)

    def begun(self, frame: Frame) -> Progress:
        """Return it with what the first frame decides: size, time scale, start."""
        per_second = frame.time_base.denominator
        timescale = min(per_second * -(-_LEAST_TICKS // per_second), _MOST_TICKS)
        return dataclasses.replace(
            self,
            timescale=timescale,
            first_numerator=frame.time_exact.numerator,
            first_denominator=frame.time_exact.denominator,
            width=frame.width,
            height=frame.height,
            aspect_numerator=frame.sample_aspect_ratio.numerator,
            aspect_denominator=frame.sample_aspect_ratio.denominator,
        )
