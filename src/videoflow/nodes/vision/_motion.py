"""Where a box is likely to be: a Kalman filter of constant velocity. Used by the tracker; plain NumPy.

The state of a box is centre x, centre y, width and height, each with its velocity. The four coordinates do
not influence one another (the noise is diagonal), so each has a filter of two numbers, and all filters of
all tracks are stepped in one array operation. Noise in proportion to the size of the box follows N. Wojke et
al., "Simple online and realtime tracking with a deep association metric", 2017, and, for width and height in
place of aspect and height, N. Aharon et al., "BoT-SORT", 2022. Their unit of time is a frame; here it is
`STEP_SECONDS`, so that the filter means the same at every frame rate. The noise of the velocity is half of
theirs: on annotated pedestrians with some boxes left out, that kept more identities. It refuses nothing: the
tracker passes arrays that it made.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

STEP_SECONDS = 0.04
POSITION_NOISE = 1 / 20
VELOCITY_NOISE = 1 / 320
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """The filters of T boxes.

    Attributes:
        place: (T, 4) float64: centre x, centre y, width, height in pixels.
        velocity: (T, 4) float64: their change per `STEP_SECONDS`.
        spread: (T, 4, 3) float64: variance of the place, covariance, variance of the velocity.
    """

    place: Floats
    velocity: Floats
    spread: Floats

    @classmethod
    def begin(cls, xyxy: NDArray[np.floating]) -> "Motion":
        """Returns filters for boxes seen for the first time, at rest.

        Args:
            xyxy: (T, 4) boxes: left, top, right, bottom in pixels.
        """
        place = measured(xyxy)
        size = _sizes(place)
        spread = np.zeros((*place.shape, 3))
        spread[..., 0] = (2 * POSITION_NOISE * size) ** 2
        spread[..., 2] = (10 * VELOCITY_NOISE * size) ** 2
        return cls(place, np.zeros_like(place), spread)

    def boxes(self) -> Floats:
        """Returns the places as (T, 4) left, top, right, bottom."""
        half = self.place[:, 2:] / 2
        return np.concatenate([self.place[:, :2] - half, self.place[:, :2] + half], axis=1)

    def after(self, elapsed_seconds: float, hidden: NDArray[np.bool_]) -> "Motion":
        """Returns the filters as predicted for a later moment.

        Args:
            elapsed_seconds: Seconds to go forward, 0 or more.
            hidden: (T,) bool: boxes out of sight, which keep their size while they move on.
        """
        steps = elapsed_seconds / STEP_SECONDS
        velocity = self.velocity.copy()
        velocity[hidden, 2:] = 0.0
        size = _sizes(self.place)
        place_var, both, velocity_var = np.moveaxis(self.spread, -1, 0)
        spread = np.stack(
            [
                place_var + 2 * steps * both + steps**2 * velocity_var + steps * (POSITION_NOISE * size) ** 2,
                both + steps * velocity_var,
                velocity_var + steps * (VELOCITY_NOISE * size) ** 2,
            ],
            axis=-1,
        )
        place = self.place + steps * velocity
        place[:, 2:] = np.maximum(place[:, 2:], 1.0)
        return Motion(place, velocity, spread)

    def corrected(self, which: NDArray[np.intp], xyxy: NDArray[np.floating]) -> "Motion":
        """Returns the filters after some of the boxes were seen.

        Args:
            which: (K,) positions of the filters, each at most once.
            xyxy: (K, 4) boxes seen, in the same order.
        """
        seen = measured(xyxy)
        place_var, both, velocity_var = np.moveaxis(self.spread[which], -1, 0)
        total = place_var + (POSITION_NOISE * _sizes(self.place[which])) ** 2
        surprise = seen - self.place[which]
        place, velocity, spread = self.place.copy(), self.velocity.copy(), self.spread.copy()
        place[which] += place_var / total * surprise
        velocity[which] += both / total * surprise
        rest = 1 - place_var / total
        spread[which] = np.stack([rest * place_var, rest * both, velocity_var - both**2 / total], axis=-1)
        return replace(self, place=place, velocity=velocity, spread=spread)

    def pick(self, which: NDArray[np.bool_]) -> "Motion":
        """Returns some of the filters."""
        return Motion(self.place[which], self.velocity[which], self.spread[which])

    def joined(self, other: "Motion") -> "Motion":
        """Returns these filters followed by the other ones."""
        return Motion(
            np.concatenate([self.place, other.place]),
            np.concatenate([self.velocity, other.velocity]),
            np.concatenate([self.spread, other.spread]),
        )


def measured(xyxy: NDArray[np.floating]) -> Floats:
    """Returns (N, 4) boxes as centre x, centre y, width, height."""
    boxes = xyxy.astype(np.float64)
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)


def _sizes(place: Floats) -> Floats:
    return np.maximum(np.tile(place[:, 2:], 2), 1.0)
