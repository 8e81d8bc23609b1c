"""The nearest known name to a misspelt one. Used wherever a person types a name."""

import difflib
import re
import sys
from collections.abc import Iterable

_NOT_IN_MODULE = re.compile(r"cannot import name '(\w+)' from|module '\S+' has no attribute '(\w+)'")
_MODULE = re.compile(r"(?:from|module) '(\S+)'")


def nearest(given: str, known: Iterable[str]) -> str:
    """Returns the remedy that names the nearest known name, or "" where none is near.

    >>> nearest("--sorce", ["--source", "--out"])
    "did you mean '--source'?"
    """
    found = difflib.get_close_matches(given, list(known), n=1)
    return f"did you mean {found[0]!r}?" if found else ""


def meant(error: BaseException | None) -> str:
    """Returns the remedy for what a misspelt name raised, or "" where no name is near.

    Args:
        error: What a flow file raised, such as the `ImportError` of `from videoflow.nodes import Colect`.

    >>> try:
    ...     from pathlib import Pth
    ... except ImportError as error:
    ...     meant(error)
    "did you mean 'Path'?"
    """
    if isinstance(error, ImportError | AttributeError):
        text = str(error)
        name, module = _NOT_IN_MODULE.search(text), _MODULE.search(text)
        if name is not None and module is not None and module[1] in sys.modules:
            return nearest(name[1] or name[2], _public(sys.modules[module[1]]))
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        return nearest(error.name, _public(error.obj))
    if isinstance(error, NameError) and error.name and error.__traceback__ is not None:
        frame = error.__traceback__
        while frame.tb_next is not None:
            frame = frame.tb_next
        return nearest(error.name, {*frame.tb_frame.f_globals, *frame.tb_frame.f_locals})
    return ""


def _public(owner: object) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]
