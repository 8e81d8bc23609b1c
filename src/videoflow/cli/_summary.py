"""The account of a run as tables. Used by `run-local`, at the end.

It shows what stands in the report. Columns that hold nothing but zeros are left out; a ledger that does not
close, or is unknown, is never left out.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from rich.text import Text

from videoflow.cli._console import home_short
from videoflow.cli._profile import profile_lines
from videoflow.cli._table import Table
from videoflow.cli._units import plural, show_bytes, show_milliseconds, show_seconds
from videoflow.graph.report import EdgeReport, NodeReport, RunReport, Verdict

_VERDICT_STYLES = {
    Verdict.COMPLETE: "bold green",
    Verdict.INCOMPLETE: "bold yellow",
    Verdict.STOPPED: "bold cyan",
    Verdict.STALLED: "bold red",
    Verdict.FAILED: "bold red",
}
_LEDGER = {True: ("closes", "green"), False: ("does not close", "bold red"), None: ("unknown", "bold yellow")}
_DEVICE_FIGURES = ("memory", "declared", "used at most")
_SIZES_SHOWN = 6  # the most frequent
_CLOCK_SECONDS = 1.0  # by so much the clocks of a file system and of a run may differ
_EDGE_COUNTS = ("announced", "delivered", "skipped", "dropped", "dead\nletters", "abandoned", "in\nflight")
_NODE_COUNTS = ("items", "outputs", "errors", "dead\nletters", "restarts")
_NODE_FIGURES = (*_NODE_COUNTS, "p50\nms", "p95\nms", "p99\nms", "busy")


def summary_lines(report: RunReport, folder: Path, width: int | None) -> Iterator[Text]:
    """Yields the account line by line.

    Args:
        report: Of a run that has ended.
        folder: What the paths of outputs are relative to.
        width: Columns to keep to, or None for lines as long as they are.
    """
    yield Text.assemble(
        (report.flow_id, "bold"),
        ": ",
        (report.verdict.value, _VERDICT_STYLES[report.verdict]),
        f" after {show_seconds(report.seconds)} on {report.engine}",
    )
    nodes = (_nodes(report), _batches(report))
    tables = (_sources(report), _edges(report), *nodes, _devices(report), _gaps(report))
    for table in (*tables, _results(report, folder)):
        if table.rows:
            yield Text("")
            yield from table.lines(width)
    if report.profile is not None:
        yield Text("")
        yield from profile_lines(report.profile, width)


def _sources(report: RunReport) -> Table:
    made = Table(("source", "outcome", "items", "detail"), numbers=("items",))
    for source in report.sources:
        good = source.outcome in ("complete", "stopped")
        style = "green" if good else ("red" if source.required else "yellow")
        optional = "" if source.required or good else "optional"
        detail = "; ".join(part for part in (source.detail, optional) if part)
        made.add((source.node, "cyan"), (source.outcome, style), str(source.items), detail)
    return made.without_zeros("detail")


def _edges(report: RunReport) -> Table:
    made = Table(("edge", *_EDGE_COUNTS, "ledger"), numbers=_EDGE_COUNTS)
    for edge in report.edges:
        made.add(
            (f"{edge.parent} → {edge.reader}", "cyan"),
            str(edge.announced),
            str(edge.delivered),
            str(sum(edge.skipped.values())),
            (str(sum(edge.dropped.values())), "yellow"),
            (str(edge.dead_lettered), "yellow"),
            (str(edge.abandoned), "yellow"),
            (str(edge.in_flight), "yellow"),
            _LEDGER[edge.closed],
            notes=_reasons(edge),
        )
    return made.without_zeros(*_EDGE_COUNTS[2:])


def _reasons(edge: EdgeReport) -> list[str]:
    """Returns why something was skipped or dropped, where the column does not say it."""
    reasons = [f"{count} skipped: {cause}" for cause, count in edge.skipped.items() if cause != "skipped"]
    reasons += [f"{count} dropped: {reason}" for reason, count in edge.dropped.items() if reason != "dropped"]
    return [part for part in (", ".join(reasons), edge.detail) if part]


def _nodes(report: RunReport) -> Table:
    made = Table(("node", *_NODE_FIGURES), numbers=_NODE_FIGURES)
    for node in report.nodes:
        made.add((node.node, "cyan"), *_node_cells(node))
    return made.without_zeros(*_NODE_FIGURES[1:])


def _node_cells(node: NodeReport) -> list[str | tuple[str, str]]:
    return [
        str(node.items),
        str(node.outputs),
        (str(node.errors), "red"),
        (str(node.dead_letters), "yellow"),
        (str(node.restarts), "yellow"),
        show_milliseconds(node.p50_seconds),
        show_milliseconds(node.p95_seconds),
        show_milliseconds(node.p99_seconds),
        "" if node.busy_share is None else f"{node.busy_share:.0%}",
    ]


def _batches(report: RunReport) -> Table:
    figures = ("calls", "inputs\nper call", "waited\np50 ms", "p95\nms", "p99\nms")
    made = Table(("batches of", *figures, "calls by their inputs"), numbers=figures)
    for node in report.nodes:
        found = node.batches
        if found is None or not found.calls:
            continue
        most = sorted(found.sizes, key=lambda size: -found.sizes[size])[:_SIZES_SHOWN]
        shown = ", ".join(f"{found.sizes[size]} of {size}" for size in sorted(most))
        made.add(
            (node.node, "cyan"),
            str(found.calls),
            f"{found.mean_items:.1f}",
            show_milliseconds(found.p50_wait_seconds),
            show_milliseconds(found.p95_wait_seconds),
            show_milliseconds(found.p99_wait_seconds),
            shown + ("" if len(most) == len(found.sizes) else ", …"),
        )
    return made


def _devices(report: RunReport) -> Table:
    made = Table(("GPU of", "device", "memory", "declared", "used at most"), numbers=_DEVICE_FIGURES)
    for device in report.devices:
        sizes = (device.memory_bytes, device.declared_peak_bytes, device.highest_used_bytes)
        shown = ["unknown" if size is None else show_bytes(size) for size in sizes]
        shown[1] = "" if device.declared_peak_bytes is None else shown[1]
        alone = "" if device.exclusive else " (shared)"
        made.add((device.workload, "cyan"), f"{device.product} {device.device}{alone}", *shown)
    return made.without_zeros("declared")


def _gaps(report: RunReport) -> Table:
    made = Table(("missing or in doubt", "what", "cause"))
    said = {(source.node, f"the source ended as {source.outcome}") for source in report.sources}
    alike: dict[tuple[str, str], list[str]] = {}
    for gap in report.gaps:
        if (gap.where, gap.what) not in said:  # the table of sources says it
            alike.setdefault((gap.what, gap.cause), []).append(gap.where.replace(" -> ", " → "))
    for (what, cause), places in alike.items():
        made.add((", ".join(places), "yellow"), what, cause)
    return made.without_zeros("cause")


def _results(report: RunReport, folder: Path) -> Table:
    """What the run left: values, files with their sizes, the report."""
    made = Table(("", ""))
    for name, value in report.values.items():
        made.add("value", f"{name}, {plural(len(value), 'item')}" if isinstance(value, list) else name)
    for output in report.outputs:
        made.add("output", _output(output, folder, report.started_at))
    if report.folder:
        made.add("report", home_short(Path(report.folder) / "report.json"))
    return made


def _output(output: str, folder: Path, started_at: str) -> str:
    if "://" in output:
        return output
    path = folder / output
    shown = _from_here(path)
    begun = path.with_name(f"{path.name}.part")
    if not path.exists() and begun.exists():
        return f"{shown} (not finished; {shown}.part, {show_bytes(begun.stat().st_size)})"
    if not path.exists():
        return f"{shown} (not written)"
    if path.is_dir():
        return shown
    found = path.stat()
    if started_at and found.st_mtime < datetime.fromisoformat(started_at).timestamp() - _CLOCK_SECONDS:
        return f"{shown} (not written; that of an earlier run, {show_bytes(found.st_size)}, is still there)"
    return f"{shown}, {show_bytes(found.st_size)}"


def _from_here(path: Path) -> str:
    """Returns a path as one would type it here."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else home_short(absolute)
