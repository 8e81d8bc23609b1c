"""The nodes of the published videoflow 1.0.4, for `videoflow1.py`; imported by its workers."""

import json
from typing import Any

from benchmarks.work import Array, Job, Maker, Meter, remake
from videoflow.core.node import ConsumerNode, ProcessorNode, ProducerNode


class First(ProducerNode):
    """Makes items."""

    def __init__(self, job: str, **kwargs: Any) -> None:
        self._job = job
        super().__init__(**kwargs)

    def open(self) -> None:
        """Prepares."""
        self._maker = Maker(Job(**json.loads(self._job)))
        self._indices = self._maker.indices()

    def next(self) -> Array:
        """Returns the next item."""
        return self._maker.make(next(self._indices))


class Middle(ProcessorNode):
    """Makes a new item of each."""

    def process(self, item: Array) -> Array:
        """Returns the new item."""
        return remake(item)


class End(ConsumerNode):
    """Looks at each item."""

    def __init__(self, job: str, **kwargs: Any) -> None:
        self._job = job
        super().__init__(**kwargs)

    def open(self) -> None:
        """Prepares."""
        self._meter = Meter(Job(**json.loads(self._job)))

    def consume(self, item: Array) -> None:
        """Notes an item."""
        self._meter.take(item)

    def close(self) -> None:
        """Writes the figures."""
        self._meter.finish()
