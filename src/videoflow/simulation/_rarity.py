"""How often each point of each kind of task is chosen for a fault, so that rare ones are hit, too.

Used where faults are chosen; a schedule depends on its seed and on this table alone. It was made from what
searches hit: the figures have no meaning but that each cell of the table of hits is hit often enough.
"""

from videoflow.simulation._kinds import KINDS

_CHANCES: dict[str, tuple[float, ...]] = {
    "acquire.after": (0.065, 0.36, 0.06, 44, 1.6, 0.27, 0.99, 0.37, 0.21, 0.06, 0.06),
    "receive.after": (0, 0, 0.24, 44, 2.2, 0.81, 4.1, 2.1, 1.1, 0.083, 0.29),
    "process.before": (0, 0, 0.29, 22.5, 2.5, 1, 5.6, 2, 0.96, 0.095, 0.27),
    "process.after": (0.06, 0.35, 0.31, 44, 3.3, 0.91, 4.7, 3.3, 0, 0, 0),
    "payload.sealed": (0.25, 2.8, 2.3, 0, 11, 3.8, 17, 13, 0, 0, 0),
    "publish.sent": (0.073, 0.4, 0.34, 44, 2.4, 1, 5.3, 3.1, 0, 0, 0),
    "publish.accepted": (0.079, 0.41, 0.34, 44, 2.9, 1.1, 5.4, 3.3, 0, 0, 0),
    "commit.before": (0.073, 0.32, 0, 44, 0, 1, 0, 2.7, 0, 0.11, 0.29),
    "commit.after": (0.091, 0.37, 0, 44, 0, 1, 0, 2.7, 0, 0.11, 0.31),
    "outbox.published": (0, 0, 0, 200, 0, 1.3, 0, 2.9, 0, 0, 0),
    "settle.sent": (0, 0, 0.31, 44, 2.6, 0.98, 5.7, 2.8, 1, 0.09, 0.35),
    "release.before": (0, 0, 0.33, 135, 2.6, 0.97, 6.4, 4, 0.97, 0.09, 0.35),
    "tombstone.before": (11, 14, 36, 120, 59, 39, 219, 147, 0, 0, 0),
    "flush.published": (0, 0, 0, 0, 0, 5.5, 0, 14, 0, 0, 0),
    "terminator.sent": (0.072, 0.44, 0.16, 44, 2.2, 0.79, 1.9, 1.9, 1.2, 0.1, 0.28),
    "source.item": (0.074, 0.22, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "effect.done": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0.098, 0),
    "call:publish": (0.09, 0.57, 0.44, 22.5, 3.4, 1.2, 6.4, 4.4, 0, 0, 0),
    "call:settle": (0, 0, 0.28, 44, 2.8, 1, 5.1, 2.8, 0.86, 0.08, 0.33),
    "call:commit": (0.06, 0.17, 3.25, 41, 1.4, 0.47, 0.85, 1, 0.62, 0.06, 0.11),
    "call:look": (0.06, 0.11, 0.06, 34, 0.6, 0.17, 0.47, 0.41, 0.22, 0.06, 0.07),
    "call:receive": (0, 0, 0.098, 30, 1.2, 0.47, 0.86, 1.4, 0.57, 0.06, 0.17),
    "call:observe": (0, 0.18, 0.06, 22.5, 0.99, 0.34, 0.95, 0.99, 0.26, 0.06, 0.07),
    "call:acquire": (0, 0, 0, 0, 0.54, 0.2, 0.35, 0.61, 0.27, 0.06, 0.064),
    "call:terminate": (0.06, 0.16, 0.06, 22.5, 0.99, 0.26, 0.44, 0.66, 0, 0, 0),
    "call:wake": (0, 0, 0.06, 22.5, 1.2, 0.28, 0.85, 1, 0.36, 0.06, 0.11),
    "call:put": (0.06, 0.94, 0.49, 0, 3.6, 0.86, 4.3, 3.5, 0, 0, 0),
    "call:read": (0, 0, 0.22, 22.5, 5.4, 0.79, 1.6, 2.7, 0.89, 0.1, 0.17),
    "fence:Pull": (0, 0, 0, 0, 0.69, 0.28, 0.71, 0.55, 0.26, 0.06, 0.06),
    "fence:Publish": (0.06, 0, 0, 0, 0.81, 0.23, 1.2, 0.92, 0, 0, 0),
    "fence:Commit": (0.06, 0, 0, 0, 0, 0.23, 0, 0.66, 0, 0.06, 0.069),
    "fence:Settle": (0, 0, 0, 0, 0.52, 0.38, 1.1, 1.2, 0.18, 0.06, 0.096),
    "fence:Terminate": (0.06, 0, 0, 0, 0.73, 0.22, 0.5, 0.69, 0.24, 0.06, 0.076),
}
"""Point → how often it is chosen, for each of `KINDS`."""


def chance_of(point: str, kind: str) -> float:
    """Returns how often a point of a kind of task is chosen, compared with others."""
    return _CHANCES[point][KINDS.index(kind)] or 1.0
