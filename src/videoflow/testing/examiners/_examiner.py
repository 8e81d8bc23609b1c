"""What all examiners share: how a subject is made, what it cannot do, and how its laws are tried.

Used through the examiners. With pytest, an examiner is a class to inherit from; without, `examine` tries
every law and returns what is broken. It refuses a name in `cannot` that is no test, and a test that hangs.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from videoflow.testing.examiners._law import Law, law_of

PATIENCE_SECONDS = 10.0
HANGS_SECONDS = 30.0


class Subject(ABC):
    """One implementation under test, with its clock and its raw probes."""

    @abstractmethod
    def close(self) -> None:
        """Ends the implementation, and removes what it made."""


S = TypeVar("S", bound=Subject)


class Examiner(ABC, Generic[S]):
    """Tries the laws of one contract; inherit in a class whose name begins with `Test`.

    Attributes:
        cannot: Name of a test → why the implementation cannot pass it. Such a test must fail: when it passes,
            the entry is out of date, and that fails.
    """

    cannot: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name, reason in vars(cls).get("cannot", {}).items():
            test = getattr(cls, name, None)
            if test is None or law_of(test) is None:
                raise TypeError(f"{cls.__name__}.cannot names {name}, which is no test of a law")
            inability = pytest.mark.xfail(strict=True, reason=reason)  # as `cannot` says why
            setattr(cls, name, inability(_copied(test)))

    @abstractmethod
    def make_subject(self) -> S:
        """Returns a new implementation, empty; it is closed after each test."""

    @pytest.fixture
    def subject(self) -> Iterator[S]:
        """The implementation under test."""
        with closing(self.make_subject()) as made:
            yield made

    @classmethod
    def laws(cls) -> dict[str, Law]:
        """Returns test → law, in order of name."""
        found = {name: law_of(getattr(cls, name)) for name in sorted(dir(cls)) if name.startswith("test_")}
        return {name: tried for name, tried in found.items() if tried is not None}


@dataclass(frozen=True)
class Finding:
    """A law that is broken.

    Attributes:
        test: The test that shows it.
        law: Which one.
        seen: What was seen, in one paragraph.
    """

    test: str
    law: Law
    seen: str

    def __str__(self) -> str:
        return f"{self.test}: {self.seen}\n{self.law.complaint()}"


def examine(examiner: type[Examiner[Any]], names: Sequence[str] = ()) -> list[Finding]:
    """Tries the laws of an examiner without pytest.

    Args:
        examiner: A class with `make_subject`.
        names: Only these tests; none: all.

    Returns:
        What is broken. A test that `cannot` names is broken when it passes.
    """
    findings = []
    for name, tried in examiner.laws().items():
        if names and name not in names:
            continue
        seen = _tried(examiner(), name)
        if name in examiner.cannot:
            seen = "" if seen else f"it passes, although it cannot: {examiner.cannot[name]}"
        if seen:
            findings.append(Finding(name, tried, seen))
    return findings


def _tried(examiner: Examiner[Any], name: str) -> str:
    def attempt() -> None:
        with closing(examiner.make_subject()) as subject:
            getattr(examiner, name)(subject)

    pool = ThreadPoolExecutor(1)
    ended = pool.submit(attempt)
    pool.shutdown(wait=False)
    try:
        error = ended.exception(timeout=HANGS_SECONDS)
    except TimeoutError:
        return f"it hangs for more than {HANGS_SECONDS:.0f} s"
    return "" if error is None else f"{type(error).__name__}: {error}".strip()


def _copied(test: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(test)
    def same(*args: object, **kwargs: object) -> None:
        test(*args, **kwargs)

    return same
