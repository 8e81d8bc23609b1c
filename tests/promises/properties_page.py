"""The page of properties, as `docs/reference/properties.md` shows it.

`python -m tests.promises.properties_page DATE` prints it; no test is run for that, which is what the tests of
planted defects are for.
"""

import sys
from collections.abc import Mapping

from tests.contracts.defects import DEFECTS as CONTRACTS
from tests.contracts.table import EXAMINERS
from tests.planner.planted import DEFECTS as PLANNER
from tests.promises.properties import PROPERTIES
from tests.promises.test_planted_batching import DEFECTS as BATCHING
from tests.promises.test_planted_ledger import CAUGHT as LEDGER
from tests.promises.test_planted_rules import DEFECTS as RULES
from tests.promises.test_planted_worker import DEFECTS as WORKER
from tests.simulation.defects import DEFECTS as SIMULATION
from tests.state.test_planted_state import DEFECTS as STATE

_TABLES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("rule", RULES),
    ("worker", WORKER),
    ("batching", BATCHING),
    ("ledger", LEDGER),
    ("state", STATE),
    ("planner", PLANNER),
    ("simulation", SIMULATION),
)


def laws_of(name: str) -> list[str]:
    """Returns the laws of the contracts that a property rests on."""
    laws = {law.name: law for _, examiner in EXAMINERS for law in examiner.laws().values()}
    return sorted(law.name for law in laws.values() if name in law.properties)


def defects_of(name: str) -> list[tuple[str, str, bool]]:
    """Returns the defects that a property is tried with: where, name, and whether it changes the product."""
    laws = laws_of(name)
    found = [
        ("law", defect, made.change is not None) for defect, made in CONTRACTS.items() if made.law in laws
    ]
    for defect in PROPERTIES[name].defects:
        found += [(where, defect, True) for where, table in _TABLES if defect in table]
    return found


def page(date: str) -> str:
    """Returns the page."""
    here = [name for name, each in PROPERTIES.items() if not each.not_here]
    tried = {(where, defect, change) for name in here for where, defect, change in defects_of(name)}
    changes = sum(change for _, _, change in tried)
    lines = [
        "# The properties of one machine",
        "",
        "What is promised, which [laws of the contracts](laws.md) and which tests show it, and the planted",
        "defects that make these fail. A defect is a small change of the product in a copy, unless it says",
        "otherwise. Defects of laws, rules, the ledger, the worker, state and the planner are planted in",
        "every run or in the nightly one; those of the simulation when [its table](simulation.md) is made.",
        "Printed by `python -m tests.promises.properties_page`.",
        "",
        f"{date}: {len(PROPERTIES)} properties, {len(here)} of them of one machine;"
        f" {len(tried)} defects, {changes} of them changes.",
        "",
        "| property | promise | laws | tests | defects |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(name) for name in here]
    lines += ["", "## What one machine has nothing of", "", "| property | promise | why |", "|---|---|---|"]
    lines += [
        f"| {name} | {each.says} | {each.not_here} |" for name, each in PROPERTIES.items() if each.not_here
    ]
    return "\n".join(lines) + "\n"


def _row(name: str) -> str:
    laws = " ".join(f"`{law}`" for law in laws_of(name)) or "-"
    tests = " ".join(f"`{test.rpartition('::')[2]}`" for test in PROPERTIES[name].tests) or "-"
    defects = "; ".join(
        f"{defect} ({where}{'' if change else ', implementation'})"
        for where, defect, change in defects_of(name)
    )
    return f"| {name} | {PROPERTIES[name].says} | {laws} | {tests} | {defects} |"


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))
