"""An event loop of one node, used by whoever calls its coroutines, always in the same thread."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """Runs coroutines one at a time, to their ends; what they started goes on while a later one runs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Returns what a coroutine returns, and raises what it raises."""
        return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        """Ends what coroutines left running, and the loop."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self.run(_all_ended(left))
        self.run(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _all_ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
