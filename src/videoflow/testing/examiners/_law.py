"""Laws, and what an examiner says when one is broken.

Used by every examiner: each of its tests is tied to the law that it tries. What is broken comes with the
sentence of the contract and with what to mend, whatever tool runs the test.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
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


def law(tried: Law) -> Callable[[F], F]:
    """Ties a test to the law that it tries; its failure tells what to mend."""

    def tie(test: F) -> F:
        @functools.wraps(test)
        def told(*args: object, **kwargs: object) -> None:
            try:
                test(*args, **kwargs)
            except BaseException as error:
                error.add_note(tried.complaint())
                raise

        setattr(told, LAW, tried)
        return told  # type: ignore[return-value]  # the same signature, as `wraps` says at run time

    return tie


def law_of(test: Callable[..., object]) -> Law | None:
    """Returns the law that a test tries, or None for a function that is no test of a law."""
    found = getattr(test, LAW, None)
    return found if isinstance(found, Law) else None
