"""How a run ended, as the blocks that a person reads last: its failure and its dead letters.

Used by `run-local`.
"""

from collections.abc import Iterator

from videoflow.cli._units import plural
from videoflow.errors import BLOCK_FIELDS, NodeFailed, format_block
from videoflow.graph.report import DeadLetterReport, RunReport
from videoflow.graph.spec import FlowSpec

_MOST_BLOCKS = 3


def ending_blocks(report: RunReport, spec: FlowSpec) -> Iterator[str]:
    """Yields the error blocks of a run: what failed it, then its first dead letters."""
    failure = report.failure
    if failure is not None:
        yield format_block(
            failure.code, failure.message, {name: getattr(failure, name) for name in BLOCK_FIELDS}
        )
    for letter in report.dead_letters[:_MOST_BLOCKS]:
        yield _dead_letter_block(letter, report, spec)


def more_dead_letters(report: RunReport) -> str:
    """Returns a sentence on the dead letters without a block, or ""."""
    more = len(report.dead_letters) - _MOST_BLOCKS
    return f"and {plural(more, 'more dead letter')}: videoflow dead-letters list" if more > 0 else ""


def _dead_letter_block(letter: DeadLetterReport, report: RunReport, spec: FlowSpec) -> str:
    origin, _, ordinal = letter.origin.split("/")
    noun = "frame" if letter.source else "item"
    when = f" ({letter.event_time:.3f} s)" if letter.event_time is not None else ""
    allowed = spec.node(letter.node).options.retries + 1
    message = (
        f"node {letter.node}, {noun} {ordinal} of {letter.source or origin}{when},"
        f" attempt {letter.attempts} of {max(allowed, letter.attempts)}"
    )
    return format_block(
        NodeFailed.code,
        message,
        {
            "cause": letter.error,
            "where": letter.where,
            "effect": f"put aside as dead letter {letter.label}; {_completed(origin, noun, report)}"
            f"verdict {report.verdict}",
            "remedy": f"videoflow dead-letters show {letter.label}; mend the node and run again",
        },
    )


def _completed(origin: str, noun: str, report: RunReport) -> str:
    """Returns how many items of a source met no dead letter, or "" where the source did not say."""
    announced = next((source.items for source in report.sources if source.node == origin), 0)
    lost = {letter.origin for letter in report.dead_letters if letter.origin.startswith(f"{origin}/")}
    return f"{announced - len(lost)} of {announced} {noun}s completed; " if announced else ""
