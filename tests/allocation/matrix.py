"""Prints which implementation is held to which property, by how many laws, shown by how many planted defects.

`python -m tests.allocation.matrix > docs/reference/allocation-matrix.md`
"""

import sys
from datetime import UTC, datetime

from tests.allocation.implementations import (
    IMPLEMENTATIONS,
    PROPERTIES,
    Implementation,
    laws_of,
    missing,
    tried,
)

HEAD = """# Allocation: properties by implementation

Each property is held by laws of `videoflow.testing.examiners.allocation`, which run over every implementation
that can be set up so. For each property that is tried at least one law is shown to fail, by a defect that is
planted in a copy of that implementation. Where a property is not tried, the reason is that of the
implementation.

Printed on {date} by `python -m tests.allocation.matrix`.

"""


def cell(implementation: Implementation, identity: str) -> str:
    """What one implementation shows of one property."""
    laws = tried(implementation, identity)
    if not laws:
        reasons = dict.fromkeys(
            reason for test in laws_of(identity) for reason in missing(implementation, test)
        )
        return f"not here: {'; '.join(reasons)}"
    defects = [defect for defect in implementation.defects.values() if identity in defect.properties]
    return f"{counted(len(laws), 'law')}, {counted(len(defects), 'defect')}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def page(date: str) -> str:
    """The whole page."""
    names = [implementation.name for implementation in IMPLEMENTATIONS]
    lines = [f"| property | in short | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for identity, title in PROPERTIES.items():
        cells = " | ".join(cell(implementation, identity) for implementation in IMPLEMENTATIONS)
        lines.append(f"| {identity} | {title} | {cells} |")
    return HEAD.format(date=date) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(str(datetime.now(UTC).date())))
