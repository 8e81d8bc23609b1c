"""What random graphs may have, how often it is drawn, and what some of them are to have much of.

Used by who makes the graphs, and by the search.
"""

FEATURES = frozenset(
    (
        "joins",
        "merges",
        "many",
        "replicas",
        "latest",
        "fused",
        "flush",
        "skips",
        "state",
        "checkpoints",
        "poison",
        "killer",
        "flaky",
        "fatal",
        "large",
        "live",
        "unordered",
        "moody",
        "partitions",
        "join-replicas",
        "deep-joins",
        "snapshots",
        "markers",
        "effect-keys",
        "batches",
    )
)
"""What a graph may have."""

SHARES = {
    "moody": (0.1, 0.5),
    "latest": (0.25, 0.75),
    "fatal": (0.12, 0.8),
    "effect-keys": (0.4, 0.9),
    "snapshots": (0.4, 0.9),
}
"""Feature → how often it is drawn where it could be: usually, and in a graph that is to have much of it."""
WISHES: tuple[frozenset[str], ...] = tuple(
    frozenset(wished.split())
    for wished in (
        "moody",
        "beside",
        "latest",
        "fatal",
        "moody latest",
        "beside",
        "moody",
        "snapshots latest",
        "effect-keys",
        "beside latest",
        "fatal",
        "snapshots",
        "snapshots latest",
    )
)
"""What graphs are to have much of, in turn; `beside`: nodes with state in the task of a source.

They are odd in number, so that each of two processes that share a search comes to all of them.
"""
