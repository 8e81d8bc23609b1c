"""How often each point of each kind of task is chosen for a fault, so that rare ones are hit, too.

Used where faults are chosen; a schedule depends on its seed and on this table alone. It was made from what
searches hit: the figures have no meaning but that each cell of the table of hits is hit often enough.
"""

from videoflow.simulation._kinds import KINDS

_CHANCES: dict[str, tuple[float, ...]] = {
    "acquire.after": (0.11, 0.54, 0.14, 4.5, 1.1, 0.52, 1, 1.3, 0.65, 0.079, 0.13),
    "receive.after": (0, 0, 0.43, 4.5, 3.3, 1.5, 1.8, 4.3, 0.92, 0.17, 0.57),
    "process.before": (0, 0, 0.6, 4.5, 3.1, 1.5, 1.9, 4.1, 1.1, 0.19, 0.57),
    "process.after": (0.1, 0.52, 0.46, 4.5, 3.1, 2.2, 1.7, 5.8, 0, 0, 0),
    "payload.sealed": (0.39, 6.2, 2.9, 0, 27, 8.8, 18, 26, 0, 0, 0),
    "publish.sent": (0.14, 0.66, 0.51, 4.5, 3.3, 2.2, 1.8, 4.5, 0, 0, 0),
    "publish.accepted": (0.15, 0.73, 0.56, 4.5, 4.2, 2.1, 2.1, 6.4, 0, 0, 0),
    "commit.before": (0.16, 0.55, 0, 4.5, 0, 1.3, 0, 5, 0, 0.19, 0.63),
    "commit.after": (0.2, 0.49, 0, 4.5, 0, 0.043, 0, 0.55, 0, 0.18, 0.6),
    "outbox.published": (0, 0, 0, 30, 0, 2.2, 0, 6.9, 0, 0, 0),
    "settle.sent": (0, 0, 0.56, 4.5, 3, 1.7, 2, 5.5, 0.86, 0.21, 0.62),
    "release.before": (0, 0, 0.57, 14, 3, 2, 2.2, 4.8, 0.87, 0.22, 0.64),
    "tombstone.before": (25, 25, 25, 38, 74, 80, 25, 25, 0, 0, 0),
    "flush.published": (0, 0, 0, 0, 0, 8.1, 0, 29, 0, 0, 0),
    "terminator.sent": (0.13, 0.62, 0.22, 4.5, 2.1, 0.96, 1.5, 3.1, 1, 0.14, 0.42),
    "source.item": (0.12, 0.28, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "effect.done": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0.18, 0),
    "call:publish": (0.21, 0.74, 0.79, 4.5, 5.9, 2.8, 2.2, 6.1, 0, 0, 0),
    "call:settle": (0, 0, 0.45, 4.5, 4.6, 1.9, 2.2, 4.5, 0.74, 0.18, 0.67),
    "call:commit": (0.066, 0.35, 4.5, 4.2, 0.96, 0.56, 0.82, 2, 0.5, 0.079, 0.22),
    "call:look": (0.032, 0.1, 0.047, 4.5, 0.45, 0.23, 0.31, 0.77, 0.27, 0.029, 0.14),
    "call:receive": (0, 0, 0.14, 3.7, 1.2, 0.57, 0.83, 2.5, 0.63, 0.078, 0.23),
    "call:observe": (0, 0.43, 0.054, 1.8, 0.74, 0.25, 0.47, 0.82, 0.44, 0.031, 0.14),
    "call:acquire": (0, 0, 0, 0, 0.4, 0.2, 0.34, 0.7, 0.29, 0.03, 0.097),
    "call:terminate": (0.043, 0.22, 0.057, 2.2, 0.51, 0.36, 0.4, 1.1, 0, 0, 0),
    "call:wake": (0, 0, 0.098, 2.2, 1.3, 0.45, 0.61, 1.2, 0.55, 0.04, 0.15),
    "call:put": (0.11, 1.5, 0.71, 0, 7.4, 1.9, 4.6, 6.6, 0, 0, 0),
    "call:read": (0, 0, 0.71, 4.5, 3.1, 1.2, 0.97, 3.9, 1.6, 0.13, 0.59),
    "fence:Pull": (0, 0, 0, 0, 0.79, 0.46, 1.1, 1.2, 0.41, 0.047, 0.18),
    "fence:Publish": (0.04, 0, 0, 0, 0.99, 0.53, 0.42, 1.4, 0, 0, 0),
    "fence:Commit": (0.062, 0, 0, 0, 0, 0.32, 0, 1.4, 0, 0.06, 0.17),
    "fence:Settle": (0, 0, 0, 0, 0.87, 0.74, 0.7, 2, 0.23, 0.081, 0.18),
    "fence:Terminate": (0.073, 0, 0, 0, 0.61, 0.27, 0.36, 1, 0.49, 0.033, 0.081),
}
"""Point → how often it is chosen, for each of `KINDS`."""


def chance_of(point: str, kind: str) -> float:
    """Returns how often a point of a kind of task is chosen, compared with others."""
    return _CHANCES[point][KINDS.index(kind)] or 1.0
