"""What a call of user code may ask for: ids, log, state, times.

Made by the worker and by `drive`, given to methods that declare `ctx: vf.Context`. It refuses state to a node
that was not judged stateful, and the name of an effect where there is no input.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from videoflow.errors import UsageError
from videoflow.graph._state import State
from videoflow.ids import hash_id


def _never() -> bool:
    return False


@dataclass(kw_only=True)
class Context:
    """The surroundings of one call; the same object for every call of a node, with other figures.

    Attributes:
        run_id: ULID of the run.
        node: Name of the node.
        task: Name of the task that it runs in.
        slot: Number of the replica, from 0.
        logger: Writes to the log of the worker.
        time_seconds: Event time of the input, or None.
        source: The `source` of the source item that the input derives from, else the name of its node.
        ordinal: Number of the source item that the input derives from, from 0; None outside of a call.
        attempt: 1 for the first attempt on this input.
        missing: Parent (`node`, or `node.port`) → cause, for inputs that are None because they are missing.
        devices: Devices granted to the replica.
        draining: True where `checkpoint` is to make everything durable: at the end, and where fused nodes
            above skip so much that the inputs kept are all that may wait. More may come after it.
        keyed_state: What `state` gives; None in a node that was judged stateless.
        ask_stopping: Says whether the run is to end.
        input_id: Identity of the input, None outside of a call for one.
        make_array: Makes what `empty` returns.
    """

    node: str
    task: str = ""
    run_id: str = ""
    slot: int = 0
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("videoflow.node"))
    time_seconds: float | None = None
    source: str = ""
    ordinal: int | None = None
    attempt: int = 1
    missing: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Any, ...] = ()
    draining: bool = False
    keyed_state: State | None = None
    ask_stopping: Callable[[], bool] = _never
    input_id: str | None = None
    make_array: Callable[[tuple[int, ...], DTypeLike], NDArray[Any]] = np.empty

    def empty(self, shape: Sequence[int], dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Returns a new array for an output, to be written before it is emitted; as `numpy.empty` does.

        In a process of its own a node writes it where the next one reads it, so that no copy is made: emit
        the array, or a view of it, and write to it no more. Elsewhere, and where several are kept, it is like
        any other.

        Args:
            shape: Its shape.
            dtype: Its dtype.
        """
        return self.make_array(tuple(shape), dtype)

    @property
    def state(self) -> State:
        """Keyed state, committed with outputs and positions; see `State`.

        Raises:
            UsageError: The node was judged stateless.
        """
        if self.keyed_state is None:
            raise UsageError(
                f"node {self.node} uses ctx.state but was planned without state",
                cause="no method of its class that declares ctx names .state, so it was judged stateless",
                remedy="set stateful = True on the class",
            )
        return self.keyed_state

    @property
    def stopping(self) -> bool:
        """Whether the run is to end; a producer returns at its next item boundary."""
        return self.ask_stopping()

    @property
    def effect_key(self) -> str:
        """The name of what this node does for this input, equal however often the input comes again.

        To be handed to the outside system that is written to, which takes a repetition for what it is; the
        class then says `effect_key_seconds`.

        Raises:
            UsageError: There is no input: this is `open`, `flush`, `checkpoint` or `close`.
        """
        if self.input_id is None:
            raise UsageError(
                f"node {self.node} asks for ctx.effect_key outside of a call for an input",
                cause="the key names what is done for one input",
                remedy="use it in consume or process",
            )
        return hash_id(self.run_id, self.node, self.input_id)
