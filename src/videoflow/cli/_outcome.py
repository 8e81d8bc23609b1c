"""How a run ended, as the blocks that a person reads last: its failure and its dead letters.

Used by `run-local`.
"""

from videoflow.cli._units import plural
from videoflow.errors import (
    BLOCK_FIELDS,
    NodeFailed,
    RunFailed,
    SourceUnreadable,
    UnobservableState,
    format_block,
)
from videoflow.graph.report import DeadLetterReport, RunReport, SourceReport, Verdict
from videoflow.graph.spec import FlowSpec

_MOST_BLOCKS = 3
_GOOD_OUTCOMES = ("complete", "stopped")
_CUT_OFF = "unknown"  # what the failure of another node may make of a source that did not end
_GOOD_VERDICTS = (Verdict.COMPLETE, Verdict.STOPPED)


def ending_blocks(report: RunReport, spec: FlowSpec) -> list[str]:
    """Returns the error blocks of a run: what failed it, sources that ended badly, its first dead letters.

    None for a run that is complete or was stopped with nothing wrong; at least one for any other.
    """
    blocks = [_failure_block(report)] if report.failure is not None else []
    failed = report.failure.node if report.failure is not None else ""
    explained = _GOOD_OUTCOMES if report.failure is None else (*_GOOD_OUTCOMES, _CUT_OFF)
    blocks += [
        _source_block(source, report)
        for source in report.sources
        if source.outcome not in explained and source.node != failed and report.verdict not in _GOOD_VERDICTS
    ]
    blocks += [_dead_letter_block(letters, report, spec) for letters in _alike(report)[:_MOST_BLOCKS]]
    if not blocks and report.verdict not in _GOOD_VERDICTS:
        blocks.append(_gaps_block(report))
    return blocks


def more_dead_letters(report: RunReport) -> str:
    """Returns a sentence on the dead letters without a block, or ""."""
    more = sum(map(len, _alike(report)[_MOST_BLOCKS:]))
    return (
        f"and {plural(more, 'more dead letter')}: videoflow dead-letters list {report.run_id}"
        if more > 0
        else ""
    )


def _alike(report: RunReport) -> list[list[DeadLetterReport]]:
    """Returns the dead letters, those together that failed in one node in the same way."""
    found: dict[tuple[str, str, str], list[DeadLetterReport]] = {}
    for letter in report.dead_letters:
        found.setdefault((letter.node, letter.error, letter.where), []).append(letter)
    return list(found.values())


def _failure_block(report: RunReport) -> str:
    failure = report.failure
    assert failure is not None
    return format_block(
        failure.code, failure.message, {name: getattr(failure, name) for name in BLOCK_FIELDS}
    )


def _source_block(source: SourceReport, report: RunReport) -> str:
    optional = "" if source.required else ", which is optional,"
    return format_block(
        SourceUnreadable.code,
        f"source {source.node}{optional} ended as {source.outcome}",
        {
            "cause": source.detail,
            "effect": f"{plural(source.items, 'item')} came from it; verdict {report.verdict}",
            "remedy": "mend or replace the source; --allow-incomplete accepts what there is",
        },
    )


def _gaps_block(report: RunReport) -> str:
    """Returns the block of a run that is not complete although no node, source or input failed."""
    gaps = "\n".join(f"{gap.where}: {gap.what}" for gap in report.gaps)
    lost = any(edge.closed is False for edge in report.edges)
    message = "the ledger does not close" if lost else "what became of some items is unknown"
    remedy = "this is a defect; please report it with report.json and plan.json" if lost else "run it again"
    return format_block(
        RunFailed.code if lost else UnobservableState.code,
        message,
        {
            "cause": gaps,
            "effect": f"verdict {report.verdict}",
            "remedy": remedy,
        },
    )


def _dead_letter_block(letters: list[DeadLetterReport], report: RunReport, spec: FlowSpec) -> str:
    """Returns the block of the first of some dead letters that failed alike."""
    letter = letters[0]
    origin, _, ordinal = letter.origin.split("/")
    noun = "frame" if letter.source not in ("", origin) else "item"
    when = f" ({letter.event_time:.3f} s)" if letter.event_time is not None else ""
    allowed = spec.node(letter.node).options.retries + 1
    message = (
        f"node {letter.node}, {noun} {ordinal} of {letter.source or origin}{when},"
        f" attempt {letter.attempts} of {max(allowed, letter.attempts)}"
    )
    others = f", and {plural(len(letters) - 1, 'other')} that failed alike" if len(letters) > 1 else ""
    return format_block(
        NodeFailed.code,
        message,
        {
            "cause": letter.error,
            "where": letter.where,
            "effect": f"put aside as dead letter {letter.label}{others}; {_completed(origin, noun, report)}"
            f"verdict {report.verdict}",
            "remedy": f"videoflow dead-letters show {letter.label}; mend the node and run again",
        },
    )


def _completed(origin: str, noun: str, report: RunReport) -> str:
    """Returns how many items of a source met no dead letter, or "" where the source did not say."""
    announced = next((source.items for source in report.sources if source.node == origin), 0)
    lost = {letter.origin for letter in report.dead_letters if letter.origin.startswith(f"{origin}/")}
    return f"{announced - len(lost)} of {announced} {noun}s completed; " if announced else ""
