"""Signs in a file's own structure that it breaks off: MP4 boxes, RIFF sizes, Matroska segments.

Only what a container states exactly is taken as evidence; counts and durations in headers are not. Used by
the reader when a file has ended. It refuses to guess: without such a sign nothing is said.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_SEGMENT_ID = b"\x18\x53\x80\x67"
_HEADER_BYTES = 4096


def broken_off(path: Path, format_name: str) -> str:
    """Return how the file shows that its end is missing; an empty string when it does not.

    Args:
        path: The file.
        format_name: FFmpeg's names of the container, as in `mov,mp4,m4a`.
    """
    names = set(format_name.split(","))
    size = path.stat().st_size
    with path.open("rb") as file:
        if "mp4" in names:
            return _cut_box(file, size)
        if "avi" in names:
            return _cut_riff(file, size)
        if "matroska" in names:
            return _cut_segment(file, size)
    return ""


def _cut_box(file: BinaryIO, size: int) -> str:
    at = 0
    while at < size:
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            return f"the file ends inside a box header at byte {at}"
        length, name = struct.unpack(">I4s", head[:8])
        if length == 1 and len(head) == 16:
            length = struct.unpack(">Q", head[8:])[0]
        elif length == 0:
            return ""
        if length < 8:
            return ""
        if at + length > size:
            missing = at + length - size
            return f"the file ends {missing} bytes before the end of its last box ({name.decode('latin-1')})"
        at += length
    return ""


def _cut_riff(file: BinaryIO, size: int) -> str:
    head = file.read(8)
    stated = struct.unpack("<I", head[4:8])[0] + 8 if len(head) == 8 else 0
    if stated > size:
        return f"the file ends {stated - size} bytes before the end of its RIFF list"
    return ""


def _cut_segment(file: BinaryIO, size: int) -> str:
    head = file.read(_HEADER_BYTES)
    at = head.find(_SEGMENT_ID)
    if at < 0 or at + 12 > len(head):
        return ""
    first = head[at + 4]
    width = 9 - first.bit_length()
    if not first or width > 8:
        return ""
    stated = int.from_bytes(head[at + 4 : at + 4 + width], "big") & ((1 << 7 * width) - 1)
    if stated == (1 << 7 * width) - 1:
        return ""
    missing = at + 4 + width + stated - size
    return f"the file ends {missing} bytes before the end of its segment" if missing > 0 else ""
