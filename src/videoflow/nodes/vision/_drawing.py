"""Drawing boxes, traces and counts on a picture. Used by the annotator node; it needs OpenCV.

Everything scales with the picture, so that a mark looks the same on a thumbnail and in 4K. A track keeps its
colour from its number alone, wherever and whenever it is drawn. It refuses nothing: the node checks what it
draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
Point = tuple[float, float]
FONT = cv2.FONT_HERSHEY_SIMPLEX
DARK: Colour = (22, 22, 22)
WHITE: Colour = (255, 255, 255)
UP_COLOUR: Colour = (120, 220, 120)
DOWN_COLOUR: Colour = (90, 170, 255)
PALETTE = (
    *(0xFF595E, 0x36BD6B, 0xE056FD, 0xC5CA30, 0x4267FF, 0xFF924C),  # 0xRRGGBB, each far from its neighbours
    *(0x1CC8C0, 0xFF70A6, 0x8AC926, 0x9B6BFF, 0xFFCA3A, 0x59B8FF),
)
REFERENCE_HEIGHT = 540
SUBPIXEL_BITS = 3
SMOOTHING = 3


def track_colour(track_id: int) -> Colour:
    """Returns the blue, green and red of a track; tracks near in number are far apart in colour.

    Example:
        >>> track_colour(7) == track_colour(7), track_colour(7) == track_colour(8)
        (True, False)
    """
    code = PALETTE[track_id % len(PALETTE)]
    return code & 255, code >> 8 & 255, code >> 16


@dataclass(frozen=True)
class Canvas:
    """A picture to draw on, in place.

    Attributes:
        image: (H, W, 3) uint8, writable.
        rgb: Whether its channels are red, green, blue; colours are given as blue, green, red all the same.
    """

    image: NDArray[np.uint8]
    rgb: bool = False

    @property
    def unit(self) -> float:
        """How many pixels a pixel of a picture of `REFERENCE_HEIGHT` is here."""
        height, width = self.image.shape[:2]
        return max(0.6, float(min(height, width)) / REFERENCE_HEIGHT)

    def _ink(self, colour: Colour) -> Colour:
        return (colour[2], colour[1], colour[0]) if self.rgb else colour

    def box(self, xyxy: Sequence[float], colour: Colour) -> None:
        """Draws a frame around a box, with a dark seam that keeps it visible on any ground."""
        left, top, right, bottom = (round(value) for value in xyxy)
        line = max(1, round(2 * self.unit))
        for ink, width in ((DARK, line + 2), (self._ink(colour), line)):
            cv2.rectangle(self.image, (left, top), (right, bottom), ink, width, cv2.LINE_8)

    def label(self, xyxy: Sequence[float], text: str, colour: Colour) -> None:
        """Writes a plate above a box, or inside its upper edge when there is no room above."""
        left, top = round(xyxy[0]), round(xyxy[1])
        scale, pad = 0.42 * self.unit, max(2, round(3 * self.unit))
        stroke = max(1, round(self.unit))
        (width, height), _ = cv2.getTextSize(text, FONT, scale, stroke)
        tall, wide = height + 2 * pad, width + 2 * pad
        x = min(max(0, left - 1), max(0, self.image.shape[1] - wide))
        y = top - tall if top >= tall else max(0, top)
        cv2.rectangle(self.image, (x, y), (x + wide, y + tall), self._ink(colour), cv2.FILLED)
        ink = DARK if _brightness(colour) > 110 else WHITE
        cv2.putText(self.image, text, (x + pad, y + pad + height), FONT, scale, ink, stroke, cv2.LINE_AA)

    def trace(self, points: Sequence[Point], colour: Colour) -> None:
        """Draws a path, smoothed, that grows thicker from its oldest point to its newest."""
        widest = 3.0 * self.unit
        one = 1 << SUBPIXEL_BITS
        places = [(round(x * one), round(y * one)) for x, y in _smoothed(points)]
        count = len(places) - 1
        for place in range(count):
            width = max(1, round(widest * (place + 1) / count))
            ends = places[place], places[place + 1]
            cv2.line(self.image, *ends, self._ink(colour), width, cv2.LINE_AA, SUBPIXEL_BITS)

    def crossing(self, xyxy: Sequence[float], way: str) -> None:
        """Marks a box that just crossed a line with an arrow head in a disc above its middle."""
        colour = UP_COLOUR if way == "up" else DOWN_COLOUR
        radius = max(5, round(10 * self.unit))
        middle = round((xyxy[0] + xyxy[2]) / 2), round((xyxy[1] + xyxy[3]) / 2)
        cv2.circle(self.image, middle, radius + 1, DARK, cv2.FILLED, cv2.LINE_AA)
        cv2.circle(self.image, middle, radius, self._ink(colour), cv2.FILLED, cv2.LINE_AA)
        self._arrow(middle, radius * 0.6, way, DARK)

    def counts(self, rows: Sequence[Sequence[tuple[str, int]]]) -> None:
        """Draws a dark panel in the upper left corner: one row per line or zone, of names and numbers.

        Args:
            rows: For each row, pairs of a name and a number; `up` and `down` get an arrow.
        """
        scale, stroke = 0.62 * self.unit, max(1, round(1.4 * self.unit))
        pad, gap = round(9 * self.unit), round(16 * self.unit)
        texts = [[(name, f"{name} {number}") for name, number in row] for row in rows]
        height = cv2.getTextSize("0", FONT, scale, stroke)[0][1]
        arrow, tall = round(height * 1.3), height + pad
        widths = [
            sum(arrow * (name in {"up", "down"}) + _width(text, scale, stroke) + gap for name, text in row)
            for row in texts
        ]
        self._shade(max(widths) - gap + 3 * pad, tall * len(texts) + pad)
        for number, row in enumerate(texts):
            x, base = round(1.5 * pad), pad + number * tall + height
            for name, text in row:
                if name in {"up", "down"}:
                    colour = UP_COLOUR if name == "up" else DOWN_COLOUR
                    centre = x + arrow // 2 - pad // 4, base - height // 2
                    self._arrow(centre, height * 0.55, name, self._ink(colour))
                    x += arrow
                cv2.putText(self.image, text, (x, base), FONT, scale, WHITE, stroke, cv2.LINE_AA)
                x += _width(text, scale, stroke) + gap

    def _shade(self, wide: int, tall: int) -> None:
        corner = self.image[:tall, :wide]
        corner[:] = (corner * 0.3 + np.array(DARK) * 0.7).astype(np.uint8)

    def _arrow(self, centre: tuple[int, int], reach: float, way: str, ink: Colour) -> None:
        turn = -1 if way == "up" else 1
        tips = ((0.0, 1.0), (-0.95, -0.75), (0.95, -0.75))
        corners = [(centre[0] + x * reach, centre[1] + turn * y * reach) for x, y in tips]
        polygon = np.round(np.array(corners) * (1 << SUBPIXEL_BITS)).astype(np.int32)
        cv2.fillPoly(self.image, [polygon], ink, cv2.LINE_AA, SUBPIXEL_BITS)


def colour_picture(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns a gray (H, W) picture as a new (H, W, 3) one."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR), np.uint8)


def _smoothed(points: Sequence[Point]) -> list[Point]:
    """Returns each point as the mean of those at most `SMOOTHING` before and after it, fewer at the ends."""
    path = np.array(points, np.float64).reshape(-1, 2)
    means = []
    for place in range(len(path)):
        reach = min(SMOOTHING, place, len(path) - 1 - place)
        x, y = path[place - reach : place + reach + 1].mean(axis=0).tolist()
        means.append((x, y))
    return means


def _width(text: str, scale: float, stroke: int) -> int:
    return int(cv2.getTextSize(text, FONT, scale, stroke)[0][0])


def _brightness(colour: Colour) -> float:
    blue, green, red = colour
    return 0.114 * blue + 0.587 * green + 0.299 * red
