"""What one node keeps between inputs, encoded and within its bound: keyed state, and snapshots of itself.

Used by the nodes of a task, and by `drive`. What an attempt changed is taken when it succeeded; a snapshot is
taken once per commit. It refuses to keep more than the class of the node allows.
"""

from collections.abc import Mapping

from videoflow import wire
from videoflow.errors import StateTooLarge
from videoflow.graph import DELETED, State
from videoflow.wire import Value

_SNAPSHOT = ":snapshot"  # no name of a node ends like this


class Kept:
    """The state of one node in one partition.

    Args:
        node: Its name.
        most_bytes: What it may hold, keys and encoded values together.
        committed: What the task committed, of all its nodes.

    Attributes:
        state: What `ctx.state` gives.
    """

    def __init__(self, node: str, most_bytes: int, committed: Mapping[str, bytes]) -> None:
        self._node, self._most = node, most_bytes
        self._prefix, self._name = f"{node}/", node + _SNAPSHOT
        own = {key: body for key, body in committed.items() if key.startswith(self._prefix)}
        self._snapshot = committed.get(self._name)
        self._sizes = {key: len(key) + len(body) for key, body in own.items()}
        if self._snapshot is not None:
            self._sizes[self._name] = len(self._snapshot)
        self._total = sum(self._sizes.values())
        values = {key.removeprefix(self._prefix): wire.decode_value(body) for key, body in own.items()}
        self.state = State(values, wire.freeze, node)

    def keep(self) -> dict[str, bytes | None]:
        """Keeps what the attempt changed in the state; returns it for the commit, None for what was deleted.

        Raises:
            StateTooLarge: It would be more than the bound; nothing is kept.
        """
        overlay = self.state.changes()
        if not overlay:
            return {}
        changes = {
            self._prefix + key: None if value is DELETED else wire.encode_value(value).body
            for key, value in overlay.items()
        }
        self._take({key: len(key) + len(body) if body else 0 for key, body in changes.items()})
        self.state.keep()
        return changes

    def take_snapshot(self, value: Value) -> dict[str, bytes | None]:
        """Keeps what `snapshot` returned; returns it for the commit where it is not what stands there.

        Raises:
            StateTooLarge: It would be more than the bound.
            ValueRefused: No edge carries such a value.
        """
        body, name = wire.encode_value(wire.freeze(value)).body, self._name
        if body == self._snapshot:
            return {}
        self._take({name: len(body)})
        self._snapshot = body
        return {name: body}

    @property
    def has_snapshot(self) -> bool:
        """Whether a snapshot was committed before."""
        return self._snapshot is not None

    def snapshot(self) -> Value:
        """Returns the snapshot that was committed, None where there is none."""
        return None if self._snapshot is None else wire.decode_value(self._snapshot)

    def _take(self, sizes: Mapping[str, int]) -> None:
        total = self._total + sum(size - self._sizes.get(key, 0) for key, size in sizes.items())
        if total > self._most:
            raise self._too_large(sizes, total)
        self._total = total
        for key, size in sizes.items():
            self._sizes[key] = size
            if not size:
                del self._sizes[key]

    def _too_large(self, sizes: Mapping[str, int], total: int) -> StateTooLarge:
        key, size = max(sizes.items(), key=lambda item: item[1])
        of = "its snapshot" if key == self._name else f"ctx.state[{key[len(self._prefix) :]!r}]"
        return StateTooLarge(
            f"node {self._node} would keep {total} bytes, {size} of them in {of}",
            cause=f"its class allows max_state_bytes = {self._most}, keys and encoded values together",
            effect="the state is what it was before this input",
            remedy=f"delete what is not needed, or set max_state_bytes = {total} or more on the class",
        )
