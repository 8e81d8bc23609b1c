"""The place where people walk: a wall, and slabs that lead away from it.

Used by the scene. Grays and soft browns alone, so that the people are what has colour. It refuses nothing:
its arguments were checked by the scene.
"""

import numpy as np
from numpy.typing import NDArray

HORIZON = 0.40
"""Where the ground begins, in heights of the picture."""
_WALL = (150.0, 160.0, 166.0)
_GROUND = (128.0, 134.0, 136.0)
_SLABS = 7
_BRICK = (18, 46)


def draw_backdrop(width: int, height: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Returns a picture (height, width, 3) uint8 BGR.

    Args:
        width: Pixels along x.
        height: Pixels along y.
        generator: Where its irregularities come from.
    """
    picture = np.zeros((height, width, 3), np.float32)
    edge = round(height * HORIZON)
    picture[:edge] = _wall(width, edge, generator)
    picture[edge:] = _ground(width, height - edge, generator)
    kerb = max(1, height // 90)
    picture[edge : edge + kerb] *= np.float32(0.72)
    picture += _cloud((height, width), height // 6, generator)[..., None] * np.float32(14)
    picture += generator.integers(-5, 6, (height, width, 1)).astype(np.float32)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _wall(width: int, height: int, generator: np.random.Generator) -> NDArray[np.float32]:
    rows, columns = np.arange(height) // _BRICK[0], np.arange(width)
    bricks = (columns[None, :] + (rows[:, None] % 2) * (_BRICK[1] // 2)) // _BRICK[1]
    tones = generator.integers(-9, 10, (height // _BRICK[0] + 1, width // _BRICK[1] + 2))
    tone = tones[rows[:, None], bricks]
    joint = np.arange(height)[:, None] % _BRICK[0] == 0
    joint = joint | ((columns[None, :] + (rows[:, None] % 2) * (_BRICK[1] // 2)) % _BRICK[1] == 0)
    bright = 1 + 0.12 * (np.arange(height)[:, None] / max(1, height)) + tone / 255 - 0.10 * joint
    wall: NDArray[np.float32] = (bright[..., None] * np.array(_WALL)).astype(np.float32)
    return wall


def _ground(width: int, height: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Slabs in perspective: a row of the picture shows ground at a depth of 1/row."""
    depth = 2.2 / (0.18 + (np.arange(height) + 0.5) / height)
    across = (np.arange(width) + 0.5 - width / 2) / width
    rows = np.floor(depth * 1.6).astype(np.int64)
    columns = np.floor(across[None, :] * depth[:, None] * _SLABS / 2 + 64).astype(np.int64)
    tones = generator.integers(-7, 8, (int(rows.max()) + 1, 128))
    tone = tones[rows[:, None], np.clip(columns, 0, 127)]
    joint = np.zeros((height, width), bool)
    joint[1:] |= (rows[1:] != rows[:-1])[:, None]
    joint[:, 1:] |= columns[:, 1:] != columns[:, :-1]
    near = 1 + 0.14 * (np.arange(height)[:, None] / max(1, height)) + tone / 255 - 0.13 * joint
    ground: NDArray[np.float32] = (near[..., None] * np.array(_GROUND)).astype(np.float32)
    return ground


def _cloud(shape: tuple[int, int], cell: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Returns values in -1..1 that change slowly: random corners of cells, and straight between them."""
    cell = max(2, cell)
    height, width = shape
    corners = generator.integers(-100, 101, (height // cell + 2, width // cell + 2)) / 100
    y, x = np.arange(height) / cell, np.arange(width) / cell
    top, left = y.astype(int), x.astype(int)
    down, right = (y - top)[:, None], (x - left)[None, :]
    upper = corners[top][:, left] * (1 - right) + corners[top][:, left + 1] * right
    lower = corners[top + 1][:, left] * (1 - right) + corners[top + 1][:, left + 1] * right
    cloud: NDArray[np.float32] = (upper * (1 - down) + lower * down).astype(np.float32)
    return cloud
