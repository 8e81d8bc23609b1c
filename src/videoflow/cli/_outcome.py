"""How a run ended, as the blocks that a person reads last: its failure and its dead letters.

Used by `run-local`.
"""

from collections.abc import Iterator

from videoflow.cli._units import plural
from videoflow.errors import BLOCK_FIELDS, NodeFailed, format_block
from videoflow.graph.report import DeadLetterReport, RunReport

_MOST_BLOCKS = 3


def ending_blocks(report: RunReport) -> Iterator[str]:
    """Yields the error blocks of a run: what failed it, then its first dead letters."""
    failure = report.failure
    if failure is not None:
        fields = {name: getattr(failure, name) for name in BLOCK_FIELDS}
        yield format_block(failure.code, failure.message, fields)
    for letter in report.dead_letters[:_MOST_BLOCKS]:
        yield _dead_letter_block(letter, report)


def more_dead_letters(report: RunReport) -> str:
    """Returns a sentence on the dead letters without a block, or ""."""
    more = len(report.dead_letters) - _MOST_BLOCKS
    return f"and {plural(more, 'more dead letter')}: videoflow dead-letters list" if more > 0 else ""


def _dead_letter_block(letter: DeadLetterReport, report: RunReport) -> str:
    effect = f"put aside as dead letter {letter.label}; verdict {report.verdict}"
    fields = {
        "cause": letter.error,
        "where": "",
        "effect": effect,
        "remedy": f"videoflow dead-letters show {letter.label}; mend the node and run again",
    }
    return format_block(NodeFailed.code, f"node {letter.node}, {letter.origin}", fields)
