"""How the planner writes figures and lists for people.

Used where the planner explains itself. It refuses nothing.
"""

from collections.abc import Sequence

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: int) -> str:
    """Returns a size with at most one decimal, such as `5.9 MiB`."""
    amount = float(size_bytes)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            text = f"{amount:.1f}".removesuffix(".0")
            return f"{text} {unit}"
        amount /= 1024
    raise AssertionError("unreachable: the last unit takes any amount")


def count_text(count: int, noun: str) -> str:
    """Returns `1 item` or `3 items`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def list_text(names: Sequence[str], last: str = "and") -> str:
    """Returns `a`, `a and b` or `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def time_text(seconds: float) -> str:
    """Returns a time with two or three digits, such as `0.4 µs`, `120 µs`, `3.1 ms` or `2.5 s`."""
    for unit, factor in (("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            amount = seconds * factor
            return f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}"
    return f"{seconds:.1f} s"
