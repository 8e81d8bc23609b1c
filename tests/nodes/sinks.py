"""A sink as a worker runs it, crashes included: what was not committed is lost, and its inputs come again."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from videoflow.graph import DELETED, Consumer, Context, Invoker, State
from videoflow.wire import decode_value, encode_value, freeze


class SinkRun:
    """Gives inputs to a sink, and makes it anew after a crash.

    Args:
        make: Makes the sink, as each new process does.
        inputs: What it is given, each once unless it is given again after a crash.
        release: Closes what the system closes for a process that was killed.
    """

    def __init__(
        self,
        make: Callable[[], Consumer],
        inputs: Sequence[Any],
        release: Callable[[Consumer], None] = lambda sink: None,
    ) -> None:
        self._make = make
        self._release = release
        self._inputs = inputs
        self._committed: dict[str, bytes] = {}
        self.settled = 0
        self.start()

    def start(self) -> None:
        """Starts a new process, which knows what is committed and nothing else."""
        values = {key: decode_value(value) for key, value in self._committed.items()}
        self._invoker = Invoker(self._make())
        self._context = Context(node="sink", keyed_state=State(values, freeze))
        self._pending: dict[str, bytes | None] = {}
        self._given = self.settled
        self._attempt(lambda: self._invoker.open(self._context))

    def give(self, count: int, *, crash_before_commit: bool = False) -> None:
        """Gives so many inputs more; with the last, the crash may come before its checkpoint is committed."""
        for number in range(count):
            if self._given == len(self._inputs):
                return
            value = self._inputs[self._given]
            self._context.ordinal = self._given
            self._context.time_seconds = getattr(value, "time_seconds", self._given / 25)
            self._attempt(partial(self._invoker.consume, (value,), self._context))
            self._given += 1
            last = number == count - 1
            self._checkpoint(commit=not (last and crash_before_commit))

    def crash(self) -> None:
        """Ends the process where it stands, and starts another."""
        self.kill()
        self.start()

    def kill(self) -> None:
        """Ends the process where it stands."""
        node = self._invoker.node
        assert isinstance(node, Consumer)
        self._release(node)

    def drain(self) -> None:
        """Gives what is left, makes the last checkpoint, and closes."""
        self.give(len(self._inputs))
        self.last_checkpoint()
        self._invoker.close()

    def last_checkpoint(self) -> None:
        """Makes the last checkpoint, after which nothing may be unsettled."""
        self._context.draining = True
        self._checkpoint(commit=True)
        assert self.settled == self._given

    def abort(self) -> None:
        """Closes without a last checkpoint, as after a failure elsewhere."""
        self._invoker.close()

    @property
    def summary(self) -> dict[str, Any]:
        """What the sink says of itself."""
        return self._invoker.summary()

    def _checkpoint(self, *, commit: bool) -> None:
        durable = self._attempt(lambda: self._invoker.checkpoint(self._context)) or 0
        unsettled = self._given - self.settled - durable
        assert 0 <= unsettled <= self._invoker.node.holds_items
        if durable and commit:
            for key, value in self._pending.items():
                self._committed.pop(key, None) if value is None else self._committed.update({key: value})
            self._pending = {}
            self.settled += durable

    def _attempt(self, call: Callable[[], Any]) -> Any:
        state = self._context.state
        state.begin()
        result = call()
        for key, value in state.keep().items():
            self._pending[key] = None if value is DELETED else encode_value(value).body
        return result
