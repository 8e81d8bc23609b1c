"""The profile of a run as tables, and what limits it as sentences. Used by `run-local`, at the end.

It shows what stands in the report, and computes shares and means of it alone.
"""

from collections.abc import Iterator

from rich.text import Text

from videoflow.cli._table import Table, indented
from videoflow.graph.report import HopTimes, ProfileReport, TaskTimes

_SHARES = ("nodes", "hops", "records", "rest", "starved", "blocked", "paused")
_STEPS = ("encode", "publish", "receive", "decode", "settle")
_LEAST_SECONDS = 0.005
_WAITS = ("blocked\ns", "starved\ns")
_HOP_NUMBERS = ("items", *_STEPS, "an item", *_WAITS)


def profile_lines(profile: ProfileReport, width: int | None) -> Iterator[Text]:
    """Yields the profile line by line.

    Args:
        profile: Of a run that has ended.
        width: Columns to keep to, or None for lines as long as they are.
    """
    yield Text.assemble(
        ("profile", "bold"),
        f": {profile.items} source items in {profile.seconds:.1f} s, {profile.bottleneck.rate:.3g} items/s",
    )
    for table in (_tasks(profile), _hops(profile)):
        if table.rows:
            yield Text("")
            yield from table.lines(width)
    yield Text("")
    yield Text("bottleneck", style="bold")
    yield from indented(profile.bottleneck.text, width)


def _tasks(profile: ProfileReport) -> Table:
    made = Table(("task", "at work", *_SHARES, "processor\ns"), numbers=("at work", *_SHARES, "processor\ns"))
    for task in profile.tasks:
        style = "bold yellow" if profile.bottleneck.node in task.nodes else ""
        name = task.task if task.replicas == 1 else f"{task.task} x{task.replicas}"
        made.add((name, "cyan"), (_percent(task, task.work_seconds), style), *_shares(task))
        inside = [node for node in profile.nodes if node.task == task.task and len(task.nodes) > 1]
        for node in inside:
            made.add(f"  {node.node}", "", _percent(task, node.seconds), *[""] * len(_SHARES))
    return made.without_zeros("records", "paused", "blocked")


def _shares(task: TaskTimes) -> list[str]:
    parts = (
        task.busy_seconds,
        task.hop_seconds,
        task.commit_seconds,
        task.other_seconds,
        task.starved_seconds,
        task.blocked_seconds,
        task.paused_seconds,
    )
    return [*(_percent(task, part) for part in parts), f"{task.processor_seconds:.2f}"]


def _percent(task: TaskTimes, seconds: float) -> str:
    share = task.share(seconds)
    return "0" if share < 0.0005 else f"{share:.1%}" if share < 0.01 else f"{share:.0%}"


def _hops(profile: ProfileReport) -> Table:
    """The hops, in microseconds for each item."""
    made = Table(("hop (µs an item)", *_HOP_NUMBERS), numbers=_HOP_NUMBERS)
    for hop in profile.hops:
        parts = (
            hop.encode_seconds,
            hop.publish_seconds,
            hop.receive_seconds,
            hop.decode_seconds,
            hop.settle_seconds,
            hop.seconds,
        )
        cells = [_microseconds(hop, part) for part in parts]
        waits = [_waited(hop.blocked_seconds), _waited(hop.starved_seconds)]
        made.add((f"{hop.parent} → {hop.child}", "cyan"), str(hop.items), *cells, *waits)
    return made.without_zeros(*_WAITS)


def _waited(seconds: float) -> str:
    return "0" if seconds < _LEAST_SECONDS else f"{seconds:.2f}"


def _microseconds(hop: HopTimes, seconds: float) -> str:
    return f"{seconds * 1e6 / hop.items:.0f}" if hop.items else ""
