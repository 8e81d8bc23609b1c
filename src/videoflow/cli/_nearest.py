"""The nearest known name to a misspelt one. Used wherever a person types a name."""

import difflib
from collections.abc import Iterable


def nearest(given: str, known: Iterable[str]) -> str:
    """Returns the remedy that names the nearest known name, or "" where none is near.

    >>> nearest("--sorce", ["--source", "--out"])
    "did you mean '--source'?"
    """
    found = difflib.get_close_matches(given, list(known), n=1)
    return f"did you mean {found[0]!r}?" if found else ""
