"""Sizes and durations as people write and read them. Used by every command that takes or shows one.

It refuses a number whose unit it does not know, instead of guessing bytes or seconds.
"""

import re

from videoflow.errors import ArgumentInvalid

_SIZES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_DURATIONS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_STEP = 1024
_LONG_MILLISECONDS = 1000


def parse_bytes(text: str) -> int:
    """Returns a size in bytes.

    >>> parse_bytes("2 GiB"), parse_bytes("500MB"), parse_bytes("65536")
    (2147483648, 500000000, 65536)

    Raises:
        ArgumentInvalid: Not a size.
    """
    return int(_quantity(text, _SIZES, "a size", '"2 GiB", "500 MB" or a number of bytes'))


def parse_duration(text: str) -> float:
    """Returns a duration in seconds.

    >>> parse_duration("90"), parse_duration("2 h"), parse_duration("7d")
    (90.0, 7200.0, 604800.0)

    Raises:
        ArgumentInvalid: Not a duration.
    """
    return _quantity(text, _DURATIONS, "a duration", '"90 s", "10 min", "2 h" or "7 d"')


def _quantity(text: str, units: dict[str, int] | dict[str, float], what: str, example: str) -> float:
    match = _QUANTITY.fullmatch(text)
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ArgumentInvalid(
            f"{text!r} is not {what}", effect="nothing was started", remedy=f"write {example}"
        )
    return float(match[1]) * unit


def show_bytes(size: float) -> str:
    """Returns a size for people.

    >>> show_bytes(512), show_bytes(9822028), show_bytes(2147483648)
    ('512 B', '9.4 MiB', '2.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEP:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} TiB"


def show_seconds(seconds: float) -> str:
    """Returns a duration for people.

    >>> show_seconds(7.25), show_seconds(75), show_seconds(7384)
    ('7.2 s', '1:15', '2:03:04')
    """
    if seconds < _DURATIONS["m"]:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_call(seconds: float | None) -> str:
    """Returns the time of one call for people, in milliseconds or seconds; nothing for None.

    >>> show_call(0.0371), show_call(0.00002), show_call(1.5), show_call(None)
    ('37.1 ms', '0.02 ms', '1.50 s', '')
    """
    if seconds is None:
        return ""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f} ms" if milliseconds >= 1 else f"{milliseconds:.2f} ms"


def show_milliseconds(seconds: float | None) -> str:
    """Returns a time in milliseconds, without the unit; nothing for None.

    >>> show_milliseconds(0.0371), show_milliseconds(0.00002), show_milliseconds(1.5), show_milliseconds(None)
    ('37.1', '0.02', '1500', '')
    """
    if seconds is None:
        return ""
    milliseconds = seconds * 1000
    if milliseconds >= _LONG_MILLISECONDS:
        return f"{milliseconds:.0f}"
    return f"{milliseconds:.1f}" if milliseconds >= 1 else f"{milliseconds:.2f}"


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun.

    >>> plural(1, "run"), plural(3, "run")
    ('1 run', '3 runs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
