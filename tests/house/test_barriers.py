"""The points at which a fault can be planted: what is reached can be armed, and what is listed is reached."""

import importlib
import re
from pathlib import Path

import videoflow
from videoflow.faults import BARRIERS, Fault, FaultAction

SOURCE = Path(videoflow.__file__).parent
LISTING = ("faults.py", "simulation", "testing")  # which name barriers, and reach none of the list
TEXTS = {
    path.relative_to(SOURCE.parent): path.read_text(encoding="utf-8")
    for path in SOURCE.rglob("*.py")
    if path.relative_to(SOURCE).parts[0] not in LISTING
}


def test_every_barrier_that_is_reached_can_be_armed() -> None:
    for path, text in TEXTS.items():
        if "faults.declare(" in text:
            importlib.import_module(".".join(path.with_suffix("").parts))
    reached = {name for text in TEXTS.values() for name in re.findall(r'\breach\("([^"]+)"\)', text)}
    assert len(reached) > len(BARRIERS) / 2
    for name in reached:
        Fault(name, FaultAction.RAISE)


def test_every_barrier_of_the_list_is_reached() -> None:
    assert [name for name in BARRIERS if not any(f'"{name}"' in text for text in TEXTS.values())] == []
