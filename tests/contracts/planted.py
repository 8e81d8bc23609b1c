"""Plants defects one after another in a copy of the product, and says which laws are found broken.

`python -m tests.contracts.planted FOLDER NAME…` runs in a process that sees the copy in FOLDER only, and
prints defect → the laws that the examiner finds broken. Without names: all defects.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.contracts.defect import Defect
from tests.contracts.defects import DEFECTS

PATIENCE_SECONDS = 0.5
HANGS_SECONDS = 5.0
_SUBJECTS = {
    "messaging memory": ("MessagingExaminer", "memory_subject", "MemorySubject"),
    "messaging shm": ("MessagingExaminer", "shm_subject", "ShmSubject"),
    "payload memory": ("PayloadExaminer", "payload_subjects", "MemoryPayloadSubject"),
    "payload shm": ("PayloadExaminer", "payload_subjects", "ShmPayloadSubject"),
    "store memory": ("RuntimeStoreExaminer", "store_subjects", "MemoryStoreSubject"),
    "store sqlite": ("RuntimeStoreExaminer", "store_subjects", "SqliteStoreSubject"),
    "flow memory": ("FlowRuntimeExaminer", "store_subjects", "MemoryStoreSubject"),
}
_OURS = ("memory_subject", "shm_subject", "payload_subjects", "store_subjects", "bad")


def examined(name: str, defect: Defect) -> list[str]:
    """Returns the laws that are broken, with everything imported anew."""
    for module in [m for m in sys.modules if m.split(".")[0] == "videoflow" or m.rpartition(".")[2] in _OURS]:
        del sys.modules[module]
    importlib.invalidate_caches()
    examiners: Any = importlib.import_module("videoflow.testing.examiners")
    for module in ("_examiner", "_messaging_subject", "_payload", "_store", "_flow"):
        impatient: Any = importlib.import_module(f"videoflow.testing.examiners.{module}")
        impatient.PATIENCE_SECONDS = PATIENCE_SECONDS
        impatient.HANGS_SECONDS = HANGS_SECONDS
    examiner, module, subject = _SUBJECTS[defect.tried]
    if defect.change is None:
        made = importlib.import_module("tests.contracts.bad").BAD[name]
    else:
        made = getattr(importlib.import_module(f"tests.contracts.{module}"), subject)

    tried = type("Tried", (getattr(examiners, examiner),), {"make_subject": lambda _: made()})
    found = examiners.examine(tried, defect.tests)
    return sorted({finding.law.name for finding in found})


def main(folder: Path, names: list[str]) -> None:
    """Plants, examines, and puts the file back."""
    found: dict[str, list[str]] = {}
    for name in names or list(DEFECTS):
        defect = DEFECTS[name]
        if defect.change is None:
            found[name] = examined(name, defect)
            continue
        path = folder / "videoflow" / defect.change.file
        whole = path.read_text(encoding="utf-8")
        defect.change.apply(folder / "videoflow")
        try:
            found[name] = examined(name, defect)
        finally:
            path.write_text(whole, encoding="utf-8")
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # a law that hangs has left a thread behind


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
