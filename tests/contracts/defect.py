"""What a defect of a contract is, and how the tables of defects write one down."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.promises.planting import Change

MESSAGING_MEMORY, MESSAGING_SHM = "messaging memory", "messaging shm"
PAYLOAD_MEMORY, PAYLOAD_SHM = "payload memory", "payload shm"
STORE_MEMORY, STORE_SQLITE = "store memory", "store sqlite"
FLOW_MEMORY = "flow memory"


@dataclass(frozen=True)
class Defect:
    """What is planted, in what it is tried, and the law that must be found broken.

    Attributes:
        law: Name of the law.
        tried: Which examination notices it.
        change: Of the product; None: `tests.contracts.bad` has an implementation of that name.
        tests: Only these tests are run; none: all.
    """

    law: str
    tried: str
    change: Change | None = None
    tests: tuple[str, ...] = ()


def changing(tried: str, file: str) -> Callable[..., Defect]:
    """Returns what makes defects of one file: from a law, the old text, the new one, and names of tests."""
    return partial(_changed, tried, file)


def _changed(tried: str, file: str, law: str, old: str, new: str, *tests: str) -> Defect:
    return Defect(law, tried, Change(file, old, new), tests)
