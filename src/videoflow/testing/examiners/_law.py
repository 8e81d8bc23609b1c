"""Laws, and what an examiner says when one is broken.

Used by every examiner: each of its tests is tied to the law that it tries. What is broken comes with the
sentence of the contract and with what to mend, whatever tool runs the test.
"""

from collections.abc import Callable
from contextlib import ContextDecorator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeVar

F = TypeVar("F", bound=Callable[..., None])
LAW: Final = "__law__"


@dataclass(frozen=True)
class Law:
    """One promise of a contract.

    Attributes:
        name: `contract.law`, stable.
        sentence: What the contract says.
        mend: What the author of an adapter should look at when it is broken.
        properties: Ids of the properties that rest on it.
    """

    name: str
    sentence: str
    mend: str
    properties: tuple[str, ...] = ()

    def complaint(self) -> str:
        """Returns what is said to the author of an adapter that breaks it."""
        return f"broken law {self.name}: {self.sentence}\nmend: {self.mend}"


class _Complaining(ContextDecorator):
    """Adds to whatever ends a test the complaint of the law that it tries."""

    def __init__(self, tried: Law) -> None:
        self._tried = tried

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self._tried.complaint())


def law(tried: Law) -> Callable[[F], F]:
    """Ties a test to the law that it tries; its failure tells what to mend."""

    def tie(test: F) -> F:
        told = _Complaining(tried)(test)
        setattr(told, LAW, tried)
        return told

    return tie


def law_of(test: Callable[..., object]) -> Law | None:
    """Returns the law that a test tries, or None for a function that is no test of a law."""
    found = getattr(test, LAW, None)
    return found if isinstance(found, Law) else None
