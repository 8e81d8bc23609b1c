"""The table of laws, properties and defects, as `docs/reference/laws.md` shows it.

`python -m tests.contracts.table DATE` plants every defect, which takes minutes, and prints the page.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.contracts.defects import DEFECTS
from tests.promises.planting import Planted
from videoflow.testing.examiners import (
    Examiner,
    FlowRuntimeExaminer,
    Law,
    MessagingExaminer,
    PayloadExaminer,
    RuntimeStoreExaminer,
)

EXAMINERS: tuple[tuple[str, type[Examiner[Any]]], ...] = (
    ("Messaging", MessagingExaminer),
    ("Payload store", PayloadExaminer),
    ("Runtime store", RuntimeStoreExaminer),
    ("Flow runtime", FlowRuntimeExaminer),
)
_AT_ONCE = 4
_RULE = "|---|---|---|---|---|"


def noticed(folder: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Plants defects in a copy of the product; returns defect → the laws that were found broken."""
    planted = Planted(folder)
    found: dict[str, list[str]] = {}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        ran = planted.module("tests.contracts.planted", str(planted.folder), *some)
        assert ran.status == 0, ran.output
        found |= json.loads(ran.output[ran.output.index("{") :])
    return found


def page(date: str, found: Mapping[str, Sequence[str]]) -> str:
    """Returns the page."""
    missed = sum(DEFECTS[name].law not in laws for name, laws in found.items())
    patches = sum(defect.change is not None for defect in DEFECTS.values())
    lines = [
        "# The laws of the contracts",
        "",
        "What the examiners of `videoflow.testing.examiners` try, what rests on it, and the defects by",
        "which it is known that they notice. A *change* is a small patch of the product in a copy; an",
        "*implementation* is wrong at run time. Printed by `python -m tests.contracts.table`.",
        "",
        f"{date}: {len(found)} defects planted, {patches} of them changes; {missed} were not noticed.",
    ]
    for title, examiner in EXAMINERS:
        lines += [
            "",
            f"## {title}",
            "",
            "| law | promise | properties | tests | defects |",
            "|---|---|---|---|---|",
        ]
        tests: dict[str, int] = {}
        laws: dict[str, Law] = {}
        for law in examiner.laws().values():
            tests[law.name] = tests.get(law.name, 0) + 1
            laws[law.name] = law
        lines += [_row(law, tests[name], found) for name, law in sorted(laws.items())]
    return "\n".join(lines) + "\n"


def _row(law: Law, tests: int, found: Mapping[str, Sequence[str]]) -> str:
    told = []
    for name, defect in DEFECTS.items():
        if defect.law == law.name:
            kind = "implementation" if defect.change is None else "change"
            told.append(f"{name} ({kind}{'' if law.name in found.get(name, ()) else ', NOT NOTICED'})")
    properties = " ".join(law.properties) or "-"
    name, defects = law.name.partition(".")[2], "; ".join(told)
    return f"| `{name}` | {law.sentence} | {properties} | {tests} | {defects} |"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write(page(sys.argv[1], noticed(Path(scratch), list(DEFECTS))))
