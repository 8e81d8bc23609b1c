"""Runs the coroutines of users' nodes, for the invoker.

What runs them needs `asyncio`, which would be a tenth of what a worker loads: it comes with the first of
them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from videoflow.graph._coroutines._loop import Loop

__all__ = ["Loop"]


def __getattr__(name: str) -> object:
    if name in __all__:
        found: object = getattr(import_module("videoflow.graph._coroutines._loop"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
