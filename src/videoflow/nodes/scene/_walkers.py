"""Where everybody is at a frame: walks to and fro, as plain functions of the frame's number.

Used by the scene. Any frame can be had by itself. Positions are whole numbers of pixels. It refuses nothing:
its arguments were checked by the scene.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from videoflow.nodes.scene._figures import PHASES, Colour

_NEAR, _FAR = 0.92, 0.46
_TALL_FAR, _TALL_NEAR = 0.20, 0.34
_STEP_SHARE = 0.95
_GOLDEN = 0.6180339887


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody stands.

    Attributes:
        x: Pixels from the left to the middle between the feet.
        y: Pixels from the top to the soles.
        height: Pixels from the soles to the top of the head.
        phase: Of the walk.
        to_the_right: Which way they go.
    """

    x: int
    y: int
    height: int
    phase: int
    to_the_right: bool


@dataclass(frozen=True, slots=True)
class Walker:
    """Somebody who walks between a far and a near point, and back.

    Attributes:
        far: x and y of the far point, in widths and heights of the picture.
        near: x and y of the near point.
        frames: Frames from one to the other.
        start: Frames walked before frame 0.
        colour: Blue, green and red of the clothes.
    """

    far: tuple[float, float]
    near: tuple[float, float]
    frames: int
    start: int
    colour: Colour

    def at(self, frame: int, width: int, height: int) -> Place:
        """Returns where they are.

        Args:
            frame: Number of the frame.
            width: Of the picture, in pixels.
            height: Of the picture, in pixels.
        """
        lap, along = divmod(frame + self.start, self.frames)
        coming = lap % 2 == 0
        share = along / self.frames if coming else 1 - along / self.frames
        x = self.far[0] + (self.near[0] - self.far[0]) * share
        y = self.far[1] + (self.near[1] - self.far[1]) * share
        tall = _TALL_FAR + (_TALL_NEAR - _TALL_FAR) * (y - _FAR) / (_NEAR - _FAR)
        mean = (_TALL_FAR + _TALL_NEAR) / 2 * height
        path = abs(self.near[0] - self.far[0]) * width
        steps = along * path / self.frames / (mean * _STEP_SHARE)
        right = (self.near[0] > self.far[0]) == coming
        return Place(
            round(x * width), round(y * height), _level(tall * height), int(steps * PHASES) % PHASES, right
        )


def walkers(people: int, generator: np.random.Generator) -> tuple[Walker, ...]:
    """Returns so many people, each with a colour of their own.

    Args:
        people: How many.
        generator: Where their ways come from.
    """
    made = []
    for number in range(people):
        left, right = generator.integers(6, 30, 2) / 100
        from_left = bool(generator.integers(0, 2))
        ends = (left, 1 - right) if from_left else (1 - right, left)
        far_y = _FAR + generator.integers(0, 7) / 100
        near_y = _NEAR - generator.integers(0, 25) / 100
        frames = int(generator.integers(130, 230))
        start = int(generator.integers(0, 2 * frames))
        made.append(Walker((ends[0], far_y), (ends[1], near_y), frames, start, _colour(number)))
    return tuple(made)


def _level(height: float) -> int:
    """Returns a height rounded to steps of about four in a hundred, so that few pictures are drawn."""
    step = max(2, int(height) // 24)
    return max(8, round(height / step) * step)


def _colour(number: int) -> Colour:
    """Returns a vivid colour; neighbours in number are far apart in hue."""
    hue = number * _GOLDEN % 1.0 * 6
    sector, share = int(hue), hue % 1.0
    rise, fall = 40 + 190 * share, 40 + 190 * (1 - share)
    red, green, blue = (
        (230.0, rise, 40.0),
        (fall, 230.0, 40.0),
        (40.0, 230.0, rise),
        (40.0, fall, 230.0),
        (rise, 40.0, 230.0),
        (230.0, 40.0, fall),
    )[sector]
    return (blue, green, red)


RATE = Fraction(25)
"""Frames per second."""
