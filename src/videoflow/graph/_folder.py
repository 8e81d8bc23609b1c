"""The folder that the relative paths of a node are relative to: where the flow was built.

Used by nodes with paths, through `flow_folder()`, and by whoever makes nodes on behalf of a flow. It refuses
nothing: outside of a flow the working folder is meant.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_folder: ContextVar[Path | None] = ContextVar("videoflow_folder", default=None)


def flow_folder() -> Path:
    """Returns the folder that relative paths of a node are relative to.

    To be called in `__init__` and `outputs`, which run within the folder of the flow wherever the process
    stands; in another method the working folder of the process may be a different one.

    Example:
        >>> flow_folder() == Path.cwd()
        True
    """
    return _folder.get() or Path.cwd()


@contextmanager
def within_folder(folder: str | Path) -> Iterator[None]:
    """Makes nodes, or looks at them, on behalf of a flow that was built in a folder.

    Args:
        folder: An absolute path.
    """
    token = _folder.set(Path(folder))
    try:
        yield
    finally:
        _folder.reset(token)
