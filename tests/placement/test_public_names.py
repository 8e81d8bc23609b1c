"""The public face of placement: one frozen list, each name documented."""

import inspect
from pathlib import Path

from videoflow import placement
from videoflow.placement import check

NAMES = """
    Aim Answer Assignment Card CardModel Catalogue Certificate DEFAULT_BUDGET Demand Device Explanation
    Host Kind Label Link Maskable Measure Operator Problem Profile Proof Refusal Relaxation Row Rule
    Slice UNKNOWN_DISTANCE Verdict Visible classify_labels explain footprint fulfils is_legal layout
    legal_starts load_catalogue most_slices narrowest resolve_mask solve stranded_slots uncheckable
"""


def test_the_names_are_these_and_each_is_documented() -> None:
    assert sorted(placement.__all__) == sorted(NAMES.split())
    for name in placement.__all__:
        found = getattr(placement, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__doc__, name


def test_the_checker_shares_only_values_with_the_solver() -> None:
    files = list(Path(check.__file__).parent.glob("*.py"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    imported = {line.split()[1] for line in lines if line.startswith("from videoflow")}
    inside = {name for name in imported if name.startswith(f"{check.__name__}._")}
    allowed = {"_answer", "_catalogue", "_problem", "_rules"}
    assert imported - inside == {f"videoflow.placement.{name}" for name in allowed}
