"""Every refusal of the planner beside its legal neighbour, and the page that collects what a user reads.

`python -m tests.planner.refusals` prints the page; a test compares it with `refusals.golden.md`.
"""

import sys
from collections.abc import Iterator

from tests.planner.refusal_parts import Case
from tests.planner.refusals_of_channels import DURABLE, EFFECTS, FAILURES, PROFILES
from tests.planner.refusals_of_runs import ENGINES, SEVERAL, SIZES
from videoflow.errors import FlowError

CHAPTERS = {
    "What a channel promises": PROFILES,
    "What outlives the processes": DURABLE,
    "Lost servers": FAILURES,
    "Effects that happen once": EFFECTS,
    "Sizes and limits": SIZES,
    "Engines, hosts, clocks and devices": ENGINES,
    "Everything at once": SEVERAL,
}
CASES = [case for cases in CHAPTERS.values() for case in cases]


def error_of(case: Case) -> FlowError:
    try:
        case.refused()
    except FlowError as error:
        return error
    raise AssertionError(f"this was not refused: {case.asked}")


def page() -> str:
    """Returns the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# What the planner refuses, and what it says"
    yield ""
    yield "Made by `python -m tests.planner.refusals`, and compared by a test. Each heading is what is asked;"
    yield "the block is what a person reads who asks for it; below it stands what is admitted instead."
    for chapter, cases in CHAPTERS.items():
        yield f"\n## {chapter}"
        for case in cases:
            yield f"\n### {case.asked[0].upper()}{case.asked[1:]}\n"
            yield f"```\n{error_of(case).block()}\n```"
            yield f"Admitted: {case.beside}."


if __name__ == "__main__":
    sys.stdout.write(page() + "\n")
