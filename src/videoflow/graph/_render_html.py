"""A run report as HTML, for notebooks. Used by `RunReport._repr_html_`.

Colours are taken only for the verdict, so that it reads on a light page and on a dark one. It refuses to
show text as markup: everything that comes from a flow is escaped.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from videoflow.errors import BLOCK_FIELDS, format_block

if TYPE_CHECKING:
    from videoflow.graph.report import EdgeReport, RunReport

_COLOURS = {"complete": "#1a7f37", "incomplete": "#9a6700", "stopped": "#0969da"}
_FAILED = "#cf222e"
_CELL = "padding:2px 12px 2px 0;border:0;vertical-align:top"


def report_html(report: "RunReport") -> str:
    """Returns the report as one `<div>`: verdict, sources, edges, nodes, dead letters, gaps, outputs."""
    colour = _COLOURS.get(report.verdict.value, _FAILED)
    badge = (
        f'<span style="background:{colour};color:#fff;border-radius:4px;padding:1px 8px;font-weight:600">'
        f"{escape(report.verdict.value)}</span>"
    )
    title = f"<b>{escape(report.flow_id)}</b> {badge} in {report.seconds:.1f} s on {escape(report.engine)}"
    parts = [
        f'<div style="margin-bottom:6px">{title}</div>',
        _failure(report),
        _table(
            ("source", "outcome", "items", ""),
            [(s.node, s.outcome, s.items, s.detail) for s in report.sources],
        ),
        _table(
            ("edge", "announced", "delivered", "skipped", "dropped", "dead letters", "rest", "ledger"),
            [_edge(edge) for edge in report.edges],
        ),
        _table(
            ("node", "items", "outputs", "errors", "restarts", "p50 ms", "p95 ms", "busy"),
            [
                (
                    node.node,
                    node.items,
                    node.outputs,
                    node.errors,
                    node.restarts,
                    _milliseconds(node.p50_seconds),
                    _milliseconds(node.p95_seconds),
                    "" if node.busy_share is None else f"{node.busy_share:.0%}",
                )
                for node in report.nodes
            ],
        ),
        _table(
            ("dead letter", "node", "attempts", "error"),
            [(letter.label, letter.node, letter.attempts, letter.error) for letter in report.dead_letters],
        ),
        _table(("missing or in doubt", "", ""), [(gap.where, gap.what, gap.cause) for gap in report.gaps]),
        _table(("output",), [(path,) for path in report.outputs]),
        "" if report.profile is None else f"<div>{escape(report.profile.bottleneck.text)}</div>",
    ]
    return f"<div>{''.join(parts)}</div>"


def _failure(report: "RunReport") -> str:
    failure = report.failure
    if failure is None:
        return ""
    block = format_block(
        failure.code, failure.message, {name: getattr(failure, name) for name in BLOCK_FIELDS}
    )
    return f'<pre style="margin:0 0 6px;white-space:pre-wrap">{escape(block)}</pre>'


def _edge(edge: "EdgeReport") -> tuple[object, ...]:
    ledger = {True: "closes", False: "does not close", None: "unknown"}[edge.closed]
    return (
        f"{edge.parent} → {edge.reader}",
        edge.announced,
        edge.delivered,
        sum(edge.skipped.values()),
        sum(edge.dropped.values()),
        edge.dead_lettered,
        edge.abandoned + edge.in_flight,
        ledger,
    )


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.1f}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    if not body:
        return ""
    top = "".join(f'<th style="{_CELL};text-align:left">{escape(head)}</th>' for head in heads)
    return f'<table style="margin:0 0 8px;border-collapse:collapse"><tr>{top}</tr>{body}</table>'


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int | float) else "left"
    return f'<td style="{_CELL};text-align:{side}">{escape(str(value))}</td>'
