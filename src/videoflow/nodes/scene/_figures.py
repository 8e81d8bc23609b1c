"""A walking person as a small picture with transparency.

Used by the scene. Shapes are drawn from distances, with additions, multiplications and square roots alone:
these are exact on every machine, so that a scene has the same bytes everywhere. It refuses nothing: its
arguments were checked by the scene.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PHASES = 8
"""Pictures in a cycle of two steps."""
WIDTH_SHARE = 0.56
"""Width of the picture over the height of the person."""

Colour = tuple[float, float, float]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sprite:
    """A person in one phase, at one size.

    Attributes:
        colours: (H, W, 3) uint16 BGR in 0..65025: 255 times the colour, weighted by the coverage.
        clear: (H, W, 1) uint16 in 0..255: how much of what is behind shines through.
        box: Left, top, right, bottom of what is more covered than not, in pixels of the picture.
    """

    colours: NDArray[np.uint16]
    clear: NDArray[np.uint16]
    box: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Limb:
    """A line of varying width; ends and radii in heights of the person."""

    start: Point
    end: Point
    radii: Point
    colour: Colour


class _Canvas:
    """A picture that shapes are laid on, the last on top."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.width = max(3, round(height * WIDTH_SHARE))
        self.colours = np.zeros((height, self.width, 3), np.float32)
        self.cover = np.zeros((height, self.width, 1), np.float32)

    def limb(self, limb: _Limb) -> None:
        """Lays a limb on the picture; lit from the upper left."""
        unit = np.float32(self.height)
        (ax, ay), (bx, by) = limb.start, limb.end
        widest = max(limb.radii)
        rows = self._reach(ay, by, widest, 0.0, self.height)
        columns = self._reach(ax, bx, widest, self.width / 2, self.width)
        y = (np.arange(rows.start, rows.stop, dtype=np.float32)[:, None] + np.float32(0.5)) / unit
        x = np.arange(columns.start, columns.stop, dtype=np.float32)[None, :] + np.float32(0.5)
        x = (x - np.float32(self.width / 2)) / unit
        along_x, along_y = np.float32(bx - ax), np.float32(by - ay)
        length = along_x * along_x + along_y * along_y
        from_x, from_y = x - np.float32(ax), y - np.float32(ay)
        share = np.clip((from_x * along_x + from_y * along_y) / max(length, np.float32(1e-9)), 0, 1)
        off_x, off_y = from_x - share * along_x, from_y - share * along_y
        radius = np.float32(limb.radii[0]) + share * np.float32(limb.radii[1] - limb.radii[0])
        distance = np.sqrt(off_x * off_x + off_y * off_y)
        cover = np.clip((radius - distance) * unit + np.float32(0.5), 0, 1)[..., None]
        light = np.float32(1) - np.float32(0.16) * (off_x + off_y)[..., None] / radius[..., None]
        colour = np.clip(light * np.array(limb.colour, np.float32), 0, 255)
        colours, covered = self.colours[rows, columns], self.cover[rows, columns]
        colours += (colour - colours) * cover
        covered += (1 - covered) * cover

    def _reach(self, a: float, b: float, widest: float, shift: float, limit: int) -> slice:
        """Returns the rows or columns that a limb can touch."""
        first = int((min(a, b) - widest) * self.height + shift) - 1
        last = int((max(a, b) + widest) * self.height + shift) + 2
        return slice(min(max(0, first), limit), max(0, min(last, limit)))

    def sprite(self) -> Sprite:
        """Returns what was drawn."""
        cover = np.rint(self.cover * 255).astype(np.uint16)
        solid = cover[..., 0] > 127
        rows, columns = np.flatnonzero(solid.any(1)), np.flatnonzero(solid.any(0))
        box = (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
        # What is not covered has no colour, so this is weighted already where the edge is soft.
        colours = np.rint(self.colours).astype(np.uint16) * cover
        return Sprite(colours, 255 - cover, box)


def draw_person(colour: Colour, phase: int, height: int) -> Sprite:
    """Returns a person who walks to the right.

    Args:
        colour: Blue, green and red of the clothes, in 0..255.
        phase: 0 to `PHASES` - 1, within two steps.
        height: Pixels from the top of the head to the soles.
    """
    canvas = _Canvas(height)
    for limb in _body(colour, phase / PHASES):
        canvas.limb(limb)
    return canvas.sprite()


def _body(colour: Colour, step: float) -> Sequence[_Limb]:
    swing, lift = _swing(step), 0.012 * abs(_swing(step + 0.25))
    dark, darker = _shade(colour, 0.62), _shade(colour, 0.48)
    shoe, skin, hair = _shade(colour, 0.22), (126.0, 168.0, 214.0), (38.0, 44.0, 58.0)
    hip, shoulder = (0.0, 0.52 - lift), (0.01, 0.21 - lift)
    return (
        *_leg(hip, -swing, darker, shoe),
        *_arm(shoulder, swing, _shade(colour, 0.72), skin),
        *_leg(hip, swing, dark, shoe),
        _Limb((0.005, 0.24 - lift), (0.0, 0.49 - lift), (0.088, 0.076), colour),
        _Limb((0.012, 0.135 - lift), (0.008, 0.19 - lift), (0.030, 0.036), _shade(skin, 0.88)),
        _Limb((0.018, 0.075 - lift), (0.022, 0.098 - lift), (0.060, 0.050), skin),
        _Limb((-0.004, 0.055 - lift), (0.022, 0.046 - lift), (0.052, 0.044), hair),
        *_arm(shoulder, -swing, _shade(colour, 1.12), skin),
    )


def _leg(hip: Point, swing: float, colour: Colour, shoe: Colour) -> Sequence[_Limb]:
    knee = (hip[0] + 0.105 * swing + 0.02, hip[1] + 0.225)
    # The foot stays behind the knee while the leg swings back, and its heel comes up.
    heel = (hip[0] + 0.20 * swing - 0.01, 0.965 - 0.05 * max(0.0, -swing))
    return (
        _Limb(hip, knee, (0.066, 0.048), colour),
        _Limb(knee, heel, (0.048, 0.032), colour),
        _Limb(heel, (heel[0] + 0.062, min(0.972, heel[1] + 0.006)), (0.027, 0.022), shoe),
    )


def _arm(shoulder: Point, swing: float, colour: Colour, skin: Colour) -> Sequence[_Limb]:
    elbow = (shoulder[0] + 0.075 * swing - 0.015, shoulder[1] + 0.145)
    hand = (elbow[0] + 0.085 * swing + 0.03, elbow[1] + 0.125)
    return (
        _Limb(shoulder, elbow, (0.040, 0.032), colour),
        _Limb(elbow, hand, (0.032, 0.025), colour),
        _Limb(hand, (hand[0] + 0.006, hand[1] + 0.014), (0.024, 0.022), skin),
    )


def _swing(step: float) -> float:
    """Returns how far a limb is forward, -1 to 1, as a parabola near the sine."""
    around = 2 * (step % 1.0) - 1
    return -4 * around * (1 - abs(around))


def _shade(colour: Colour, share: float) -> Colour:
    blue, green, red = (min(255.0, part * share) for part in colour)
    return (blue, green, red)
