"""What an input looks like to a person: frames, detections, arrays and plain values in a few lines.

Used by `videoflow dead-letters show`. It refuses to fill the screen: long values are shortened, and say so.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from videoflow.cli._letters import Undecoded
from videoflow.cli._units import plural, show_bytes
from videoflow.errors import OutputUnwritable
from videoflow.media import Detections, Frame
from videoflow.wire import Value

_MOST_CHARACTERS = 400
_MOST_ROWS = 10


def describe(name: str, value: Value) -> Iterator[str]:
    """Yields the lines on one member."""
    match value:
        case Undecoded():
            yield f"{name}: {show_bytes(value.size_bytes)} that cannot be shown here: {value.reason}"
        case Frame():
            yield f"{name}: {value!r}"
        case Detections():
            yield f"{name}: {plural(len(value), 'detection')} in {value.source or 'an unnamed source'}"
            for row in value.rows()[:_MOST_ROWS]:
                yield f"  {_short(row)}"
            if len(value) > _MOST_ROWS:
                yield f"  and {len(value) - _MOST_ROWS} more"
        case np.ndarray():
            yield f"{name}: array of shape {value.shape}, {value.dtype.name}"
        case bytes():
            yield f"{name}: {show_bytes(len(value))}"
        case list() if any(isinstance(item, Frame | Detections | np.ndarray) for item in value):
            yield f"{name}: list of {plural(len(value), 'item')}"
            for index, item in enumerate(value[:_MOST_ROWS]):
                yield from (f"  {line}" for line in describe(f"[{index}]", item))
        case _:
            yield f"{name}: {_short(value)}"


def save_frames(members: Mapping[str, Value], label: str, folder: Path) -> Iterator[Path]:
    """Writes every frame among the members as `<label>-<input>.png`, and yields the paths.

    Raises:
        OutputUnwritable: The folder cannot be made or written.
    """
    frames = [(name, item) for name, value in members.items() for item in _frames(value)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, (name, frame) in enumerate(frames):
            several = sum(1 for other, _ in frames if other == name) > 1
            path = folder / f"{label}-{name.replace('/', '_')}{f'-{number}' if several else ''}.png"
            frame.save(path)
            yield path
    except OSError as error:
        raise OutputUnwritable(
            "the frames cannot be saved",
            cause=error.strerror or str(error),
            where=str(folder),
            remedy="name a folder that can be written",
        ) from error


def _frames(value: Value) -> list[Frame]:
    if isinstance(value, Frame):
        return [value]
    return [item for item in value if isinstance(item, Frame)] if isinstance(value, list) else []


def _short(value: Value) -> str:
    text = repr(value)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}… ({len(text)} characters)"
