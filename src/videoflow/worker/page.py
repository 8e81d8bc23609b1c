"""One page of memory that a worker writes and its engine reads, also after the worker has died.

Used by the local engine and by the process that it started. It holds what must not wait for a message:
how often something moved, and in whose code the worker is. It refuses a second writer of a word by its
shape: the engine reads, the worker writes.
"""

import mmap
import os
import time
from collections.abc import Sequence

from videoflow.worker._figures import TaskFigures

PAGE_BYTES = mmap.PAGESIZE
_STEPS, _CONCLUDED, _RECORDS, _WAITING, _CALLING, _SINCE = range(6)


def make_page() -> int:
    """Returns a descriptor of a new page."""
    descriptor = os.memfd_create("videoflow-figures", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, PAGE_BYTES)
    return descriptor


class Page:
    """The page as its engine reads it.

    Args:
        descriptor: Of the page; closed here.
        nodes: The nodes of the task, in order.
    """

    def __init__(self, descriptor: int, nodes: Sequence[str]) -> None:
        try:
            self._memory = mmap.mmap(descriptor, PAGE_BYTES)
        finally:
            os.close(descriptor)
        view = memoryview(self._memory)
        self._words = view.cast("q")
        self._seconds = view.cast("d")
        self._nodes = tuple(nodes)
        self._numbers = {node: number for number, node in enumerate(nodes, 1)}

    @property
    def steps(self) -> int:
        """Counts what the core did."""
        return self._words[_STEPS]

    @steps.setter
    def steps(self, count: int) -> None:
        self._words[_STEPS] = count

    @property
    def concluded(self) -> int:
        """Counts what cannot be lost again: publications that were new, and settlements."""
        return self._words[_CONCLUDED]

    @concluded.setter
    def concluded(self, count: int) -> None:
        self._words[_CONCLUDED] = count

    @property
    def records(self) -> int:
        """Counts started records of suspects."""
        return self._words[_RECORDS]

    @records.setter
    def records(self, count: int) -> None:
        self._words[_RECORDS] = count

    @property
    def waiting(self) -> bool:
        """Whether the worker waits for input."""
        return bool(self._words[_WAITING])

    @waiting.setter
    def waiting(self, waits: bool) -> None:
        self._words[_WAITING] = int(waits)

    @property
    def calling(self) -> tuple[str, float] | None:
        """The node in whose code the worker is, since when (monotonic seconds), or None."""
        number, since = self._words[_CALLING], self._seconds[_SINCE]
        return (self._nodes[number - 1], since) if number else None

    def enter(self, node: str, since: float) -> None:
        """Says that the code of a node is called now (monotonic seconds)."""
        self._seconds[_SINCE] = since
        self._words[_CALLING] = self._numbers[node]

    def leave(self) -> None:
        """Says that it has returned."""
        self._words[_CALLING] = 0

    @property
    def moved(self) -> int:
        """Counts progress that no death takes back."""
        return self.concluded + self.records

    def close(self) -> None:
        """Gives the memory back; what was read stays."""
        self._words.release()
        self._seconds.release()
        self._memory.close()


class SharedFigures(TaskFigures):
    """The figures of a replica whose moving parts are on a page; what each call changes is changed here."""

    def __init__(self, own: TaskFigures, page: Page) -> None:
        self._page = page
        self._words, self._seconds, self._numbers = page._words, page._seconds, page._numbers
        super().__init__(own.nodes)

    @property
    def steps(self) -> int:
        """See `Page`."""
        return self._page.steps

    @steps.setter
    def steps(self, count: int) -> None:
        self._page.steps = count

    @property
    def concluded(self) -> int:
        """See `Page`."""
        return self._page.concluded

    @concluded.setter
    def concluded(self, count: int) -> None:
        self._page.concluded = count

    @property
    def records(self) -> int:
        """See `Page`."""
        return self._page.records

    @records.setter
    def records(self, count: int) -> None:
        self._page.records = count

    @property
    def waiting(self) -> bool:
        """See `Page`."""
        return self._page.waiting

    @waiting.setter
    def waiting(self, waits: bool) -> None:
        self._page.waiting = waits

    @property
    def calling(self) -> tuple[str, float] | None:
        """See `Page`."""
        return self._page.calling

    @calling.setter
    def calling(self, call: tuple[str, float] | None) -> None:
        if call is None:
            self._page.leave()
        else:
            self._page.enter(*call)

    def move(self, steps: int, concluded: int = 0) -> None:
        """See `TaskFigures`."""
        words = self._words
        words[_STEPS] += steps
        words[_CONCLUDED] += concluded

    def enter(self, node: str) -> None:
        """See `Page`."""
        words = self._words
        words[_STEPS] += 1
        self._seconds[_SINCE] = time.monotonic()
        words[_CALLING] = self._numbers[node]

    def leave(self) -> None:
        """See `Page`."""
        self._words[_CALLING] = 0
