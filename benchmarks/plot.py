"""Draws a result: for each workload a row per contender, on a logarithmic axis of ratios to the floor.

Used by the command. SVG as text, so that a result can be committed. It refuses nothing; what was not measured
is not drawn.
"""

import math
from html import escape

from benchmarks.rounds import Outcome, middle, ratios

_WIDTH, _NAMES, _ROW, _HEAD, _MARGIN = 900, 300, 18, 34, 12
_DECADES = (-4, 1)
_COLOURS = {"ours": "#c0392b", "floor": "#7f8c8d", "peer": "#2c6fa6"}


def draw(outcomes: list[Outcome]) -> str:
    """Returns a picture of every workload that has ratios."""
    parts: list[str] = []
    y = _MARGIN
    for outcome in outcomes:
        rows = _rows(outcome)
        if len(rows) < 2:
            continue
        what = "median of a hop" if outcome.workload.job.per_second else "rate"
        title = f"{outcome.workload.name}: {outcome.workload.title} ({what}, x {outcome.workload.floor})"
        parts.append(_text(_MARGIN, y + 16, title, bold=True))
        y += _HEAD
        parts += _axis(y - 8, y + _ROW * len(rows))
        for name, ratio, kind in rows:
            parts += _bar(y, name, ratio, kind)
            y += _ROW
        y += 2 * _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + _MARGIN}"'
        ' font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _rows(outcome: Outcome) -> list[tuple[str, float, str]]:
    """Returns (name, ratio, kind) of each contender, the best first; paced ones all have the same rate."""
    found, paced = [], outcome.workload.job.per_second > 0
    for contender in outcome.workload.contenders:
        figure = "hop_us.p50" if paced else "per_second"
        ratio = middle(ratios(outcome, contender.name, outcome.workload.floor, figure))
        if ratio:
            ours = contender.name.startswith("videoflow") and "1.0.4" not in contender.name
            kind = "floor" if contender.is_floor else "ours" if ours else "peer"
            found.append((contender.name, ratio, kind))
    return sorted(found, key=lambda row: row[1] if paced else -row[1])


def _x(ratio: float) -> float:
    low, high = _DECADES
    share = (min(max(math.log10(ratio), low), high) - low) / (high - low)
    return _NAMES + share * (_WIDTH - _NAMES - 70)


def _bar(y: float, name: str, ratio: float, kind: str) -> list[str]:
    width = max(1.0, _x(ratio) - _NAMES)
    box = f'<rect x="{_NAMES}" y="{y}" width="{width:.1f}" height="{_ROW - 5}" fill="{_COLOURS[kind]}"/>'
    label = f'<text x="{_NAMES - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>'
    return [box, label, _text(_x(ratio) + 5, y + 11, f"{ratio:.3g}")]


def _axis(top: float, bottom: float) -> list[str]:
    lines = []
    for decade in range(_DECADES[0], _DECADES[1] + 1):
        x = _x(10.0**decade)
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="#dddddd"/>')
        label = f"{10.0**decade:g}"
        lines.append(f'<text x="{x:.1f}" y="{bottom + 9}" text-anchor="middle" font-size="9">{label}</text>')
    return lines


def _text(x: float, y: float, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y}"{weight}>{escape(text)}</text>'
