"""What a person sees while a run goes on: tables on a terminal, now and then a line elsewhere.

Used by `run-local`. Both write to standard error. It refuses control characters where nobody looks.
"""

import sys
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from videoflow.cli._console import columns
from videoflow.cli._rates import Rates
from videoflow.cli._table import Table
from videoflow.cli._units import plural, show_call, show_seconds
from videoflow.graph.running import NodeStatus, RunPhase, RunStatus
from videoflow.graph.spec import FlowSpec, NodeKind

_BAR_COLUMNS = 24
_LINE_SECONDS = 5.0
_LATER_LINE_SECONDS = 30.0
_LATER_SECONDS = 60.0


class Progress(Protocol):
    """A display of a run that goes on."""

    def show(self, status: RunStatus) -> None:
        """Shows the figures of now."""
        ...

    def note(self, text: str, *, style: str = "") -> None:
        """Says something that stays on the screen."""
        ...

    def close(self) -> None:
        """Leaves the terminal as it was; doing it twice is doing it once."""
        ...


def progress_on(console: Console, spec: FlowSpec, engine: str, *, quiet: bool) -> Progress:
    """Returns the display that suits the console; with `quiet` one that shows nothing."""
    if quiet:
        return NoProgress()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console, spec, engine)
    return PlainProgress(console, spec)


class NoProgress:
    """Shows nothing."""

    def show(self, status: RunStatus) -> None:
        """Shows nothing."""

    def note(self, text: str, *, style: str = "") -> None:
        """Says nothing."""

    def close(self) -> None:
        """Has nothing to leave."""


class LiveProgress:
    """Two tables that are drawn over: sources with rate and time left, the other nodes with their load.

    Args:
        console: A terminal.
        spec: The flow that runs.
        engine: Where it runs.
    """

    def __init__(self, console: Console, spec: FlowSpec, engine: str) -> None:
        self._console = console
        self._title = f"{spec.flow_id} on {engine}"
        self._sources = _sources(spec)
        self._rates = Rates()
        # What a flow prints to a file or a pipe must arrive there, and not above the tables.
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty()
        )
        self._live.start()

    def show(self, status: RunStatus) -> None:
        """Draws the figures of now over those of before."""
        self._rates.add(status)
        self._live.update(Group(*self._lines(status)), refresh=True)

    def note(self, text: str, *, style: str = "") -> None:
        """Prints a line above the tables."""
        self._live.console.print(text, style=style or None)

    def close(self) -> None:
        """Removes the tables and shows the cursor again."""
        self._live.stop()

    def _lines(self, status: RunStatus) -> Iterator[Text]:
        width = columns(self._console)
        yield Text.assemble(
            (self._title, "bold"), "  ", (_state(status), "cyan"), f"  {show_seconds(status.seconds)}"
        )
        sources = [node for node in status.nodes if node.node in self._sources]
        others = [node for node in status.nodes if node.node not in self._sources]
        yield from self._source_table(sources, ending=status.state == RunPhase.STOPPING).lines(width)
        if others:
            yield from self._node_table(others).lines(width)

    def _source_table(self, nodes: list[NodeStatus], *, ending: bool) -> Table:
        made = Table(("source", "frames", "of", "", "rate", "left"), numbers=("frames", "of", "rate", "left"))
        for node in nodes:
            left = None if ending else self._rates.seconds_left(node)
            made.add(
                node.node,
                str(node.items),
                "" if node.expected is None else str(node.expected),
                (_bar(node), "green"),
                _rate(self._rates.rate(node.node)),
                "" if left is None else show_seconds(left),
            )
        return made.without_zeros("of", "", *(("left",) if ending else ()))

    def _node_table(self, nodes: list[NodeStatus]) -> Table:
        made = Table(
            ("node", "items", "rate", "per item", "queue", "dropped", "errors", "restarts"),
            numbers=("items", "rate", "per item", "queue", "dropped", "errors", "restarts"),
        )
        for node in nodes:
            made.add(
                node.node,
                str(node.items),
                _rate(self._rates.rate(node.node)),
                show_call(node.seconds_per_item),
                "" if node.queue is None else str(node.queue),
                (str(node.drops), "yellow" if node.drops else ""),
                (str(node.errors), "red" if node.errors else ""),
                (str(node.restarts), "red" if node.restarts else ""),
            )
        return made.without_zeros("dropped", "errors", "restarts")


class PlainProgress:
    """One line now and then: after five seconds, later every half minute.

    Args:
        console: Where the lines go.
        spec: The flow that runs.
    """

    def __init__(self, console: Console, spec: FlowSpec) -> None:
        self._console = console
        self._sources = _sources(spec)
        self._rates = Rates()
        self._next_seconds = _LINE_SECONDS

    def show(self, status: RunStatus) -> None:
        """Prints a line when it is time for one."""
        self._rates.add(status)
        if status.seconds < self._next_seconds:
            return
        later = status.seconds >= _LATER_SECONDS
        self._next_seconds = status.seconds + (_LATER_LINE_SECONDS if later else _LINE_SECONDS)
        ending = status.state == RunPhase.STOPPING
        words = "; ".join(self._words(node, ending=ending) for node in status.nodes)
        self._console.print(f"{show_seconds(status.seconds):>8}  {'stopping: ' if ending else ''}{words}")

    def note(self, text: str, *, style: str = "") -> None:
        """Prints a line."""
        self._console.print(text)

    def close(self) -> None:
        """Has nothing to leave."""

    def _words(self, node: NodeStatus, *, ending: bool) -> str:
        if node.node in self._sources:
            rate = self._rates.rate(node.node)
            left = None if ending else self._rates.seconds_left(node)
            of = "" if node.expected is None else f" of {node.expected}"
            more = [_rate(rate)] if rate is not None else []
            more += [f"{show_seconds(left)} left"] if left is not None else []
        else:
            of = ""
            more = [show_call(node.seconds_per_item)] if node.seconds_per_item is not None else []
            more += [f"{node.queue} waiting"] if node.queue else []
        more += [f"{node.drops} dropped"] if node.drops else []
        more += [plural(node.errors, "error")] if node.errors else []
        more += [plural(node.restarts, "restart")] if node.restarts else []
        return f"{node.node} {node.items}{of}" + (f" ({', '.join(more)})" if more else "")


def _sources(spec: FlowSpec) -> frozenset[str]:
    return frozenset(node.name for node in spec.nodes if node.kind == NodeKind.PRODUCER)


def _state(status: RunStatus) -> str:
    """Returns the state of a run; without a first item it looks like one that stands still, so it says so."""
    waits = status.state == RunPhase.RUNNING and not any(node.items for node in status.nodes)
    return f"{status.state}, no item yet" if waits else status.state


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}/s"


def _bar(node: NodeStatus) -> str:
    """Returns a bar as long as the part of the source that is done; nothing where its length is unknown."""
    if not node.expected:
        return ""
    done = round(_BAR_COLUMNS * min(1.0, node.items / node.expected))
    return "━" * done + "─" * (_BAR_COLUMNS - done)
