"""`SyntheticScene`: people who walk, drawn, and where they are.

Used where no footage is at hand, and in tests as truth. It refuses sizes that hold no person.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from videoflow.graph import Item, NodeOptions, Producer
from videoflow.media import Detections, Frame
from videoflow.nodes._arguments import require
from videoflow.nodes.scene._backdrop import draw_backdrop
from videoflow.nodes.scene._figures import Sprite, draw_person
from videoflow.nodes.scene._walkers import RATE, Place, Walker, walkers

_SMALLEST = 16
_BESIDE_PIXELS_BYTES = 4096
_SPRITES_KEPT = 512
_SHADOW_SHARE = (0.21, 0.035)
_SHADOW_CLEAR = 165
_NOTHING = np.zeros((0, 0, 3), np.uint16)


class SyntheticScene(Producer):
    """Draws people who walk to and fro, with the truth about where they are.

    Makes on the port `out` one `Frame` in BGR per frame, 25 a second, and on `truth` the `Detections` of
    everybody in it: the box of the whole person, also where somebody stands before them, with track numbers
    from 1 and the class `person`. Everybody has a colour of their own, and the background has none. The same
    arguments give the same bytes on every machine, and any frame can be made by itself, so that it resumes
    anywhere. `source` is `scene-` and the seed.

    Args:
        frames: How many frames.
        size: Width and height in pixels, at least 16 each.
        people: How many people.
        seed: Other numbers give other ways, other places and another source.

    Raises:
        ArgumentInvalid: A number out of its range.

    Example:
        >>> from videoflow.testing import drive
        >>> scene = SyntheticScene(frames=2, size=(320, 180), people=3)
        >>> drive(scene, [])[1]
        Frame(320x180 bgr, index=1, time_seconds=0.04, source='scene-0')
        >>> drive(scene, [], port="truth")[1].track_id.tolist()
        [1, 2, 3]
    """

    ports = ("out", "truth")

    def __init__(
        self,
        frames: int = 300,
        size: tuple[int, int] = (640, 360),
        people: int = 5,
        seed: int = 0,
        **options: Unpack[NodeOptions],
    ) -> None:
        super().__init__(**options)
        require(frames >= 0, "SyntheticScene", "frames", frames, "0 or more")
        require(min(size) >= _SMALLEST, "SyntheticScene", "size", size, f"at least {_SMALLEST} each way")
        require(people >= 0, "SyntheticScene", "people", people, "0 or more")
        require(seed >= 0, "SyntheticScene", "seed", seed, "0 or more")
        self._frames = frames
        self._size = size
        self._people = people
        self._seed = seed
        self._yielded_all = False
        self._begun = False

    def max_item_bytes(self) -> int:
        """Returns the size of a frame."""
        return self._size[0] * self._size[1] * 3 + _BESIDE_PIXELS_BYTES

    def produce(self, resume: int | None) -> Iterator[Item]:
        """Yields the frames from index `resume` on."""
        self._begun = True
        scene = _Scene(self._size, self._people, self._seed)
        for index in range(resume or 0, self._frames):
            places = scene.places(index)
            frame = Frame(
                image=scene.picture(places),
                pts=index,
                time_base=1 / RATE,
                index=index,
                source=scene.name,
                key_frame=True,
                duration_pts=1,
            )
            truth = scene.truth(places)
            yield Item(frame, offset=index, time_seconds=frame.time_seconds, ports={"truth": truth})
        self._yielded_all = True

    def summary(self) -> dict[str, Any]:
        """Returns how it ended, and how many items there are."""
        if not self._begun:
            return {"expected": self._frames}
        return {"expected": self._frames, "outcome": "complete" if self._yielded_all else "stopped"}


class _Scene:
    """A place and its people."""

    def __init__(self, size: tuple[int, int], people: int, seed: int) -> None:
        self.name = f"scene-{seed}"
        self._size = size
        generator = np.random.default_rng(seed)
        self._walkers = walkers(people, generator)
        self._backdrop = draw_backdrop(*size, generator)
        self._sprite = lru_cache(_SPRITES_KEPT)(self._drawn)
        self._shadow = lru_cache(_SPRITES_KEPT)(_shadow)

    def places(self, index: int) -> list[Place]:
        """Returns where everybody is at a frame."""
        return [walker.at(index, *self._size) for walker in self._walkers]

    def picture(self, places: list[Place]) -> NDArray[np.uint8]:
        """Returns the picture, (height, width, 3) uint8 BGR: who is nearer stands before the others."""
        picture = self._backdrop.copy()
        order = sorted(range(len(places)), key=lambda number: (places[number].y, number))
        for number in order:
            place = places[number]
            clear = self._shadow(place.height)
            high, wide = clear.shape[:2]
            _blend(picture, place.x - wide // 2, place.y - high // 2, _NOTHING, clear)
        for number in order:
            place = places[number]
            _lay(picture, self._of(number, place), place)
        return picture

    def truth(self, places: list[Place]) -> Detections:
        """Returns the boxes of everybody, as far as they are in the picture."""
        boxes = [self._box(number, place) for number, place in enumerate(places)]
        seen = [
            number for number, (left, top, right, bottom) in enumerate(boxes) if left < right and top < bottom
        ]
        return Detections.from_arrays(
            [boxes[number] for number in seen],
            track_id=[number + 1 for number in seen],
            class_names=("person",),
            image_size=self._size,
            source=self.name,
        )

    def _of(self, number: int, place: Place) -> Sprite:
        return self._sprite(number, place.phase, place.height)

    def _drawn(self, number: int, phase: int, height: int) -> Sprite:
        walker: Walker = self._walkers[number]
        return draw_person(walker.colour, phase, height)

    def _box(self, number: int, place: Place) -> tuple[int, int, int, int]:
        sprite = self._of(number, place)
        left, top, right, bottom = sprite.box
        wide = sprite.clear.shape[1]
        if not place.to_the_right:
            left, right = wide - right, wide - left
        x, y = _corner(place, wide)
        width, height = self._size
        return max(0, x + left), max(0, y + top), min(width, x + right), min(height, y + bottom)


def _corner(place: Place, wide: int) -> tuple[int, int]:
    return place.x - wide // 2, place.y - place.height


def _lay(picture: NDArray[np.uint8], sprite: Sprite, place: Place) -> None:
    colours, clear = sprite.colours, sprite.clear
    if not place.to_the_right:
        colours, clear = colours[:, ::-1], clear[:, ::-1]
    x, y = _corner(place, clear.shape[1])
    _blend(picture, x, y, colours, clear)


def _shadow(height: int) -> NDArray[np.uint16]:
    """Returns how much of the ground shines through the shadow of a person, (H, W, 1) in 0..255."""
    wide, high = (max(2, int(share * height)) for share in _SHADOW_SHARE)
    across = (np.arange(-wide, wide) + 0.5)[None, :] / wide
    down = (np.arange(-high, high) + 0.5)[:, None] / high
    dark = np.clip(1 - (across * across + down * down), 0, 1)
    clear = np.rint(255 - (255 - _SHADOW_CLEAR) * dark)
    return clear.astype(np.uint16)[..., None]


def _blend(
    picture: NDArray[np.uint8], x: int, y: int, colours: NDArray[np.uint16], clear: NDArray[np.uint16]
) -> None:
    """Lays colours, or none, over a part of a picture; what lies outside of the picture is left out."""
    top, left = max(0, -y), max(0, -x)
    bottom = min(clear.shape[0], picture.shape[0] - y)
    right = min(clear.shape[1], picture.shape[1] - x)
    if top >= bottom or left >= right:
        return
    part = picture[y + top : y + bottom, x + left : x + right]
    mixed = part * clear[top:bottom, left:right]
    if colours.size:
        mixed += colours[top:bottom, left:right]
    part[...] = (mixed + 1 + (mixed >> 8)) >> 8  # divided by 255, exactly
