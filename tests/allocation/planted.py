"""Plants defects in a copy of an allocation package that is imported under another name, in this process.

A law that cannot fail shows nothing. The copy is text of the product with one small change (old → new, found
exactly once); what is examined is the copy, and the product is not touched.
"""

import importlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType

from tests.promises.planting import PRODUCT, Change

# What allocators share; each copied package has a copy of it.
SHARED = (
    "videoflow.backends.allocation.lifecycle",
    "videoflow.backends.allocation.planning",
    "videoflow.deploy.kubernetes_records",
)
RECORDED = "lifecycle/_recorded.py"
TERMS = "planning/_terms.py"
_numbers = count()


@dataclass(frozen=True)
class Defect:
    """A change of an allocation package, and the law that must notice it.

    Attributes:
        properties: Ids of the properties that it breaks.
        test: Name of the law's test that must fail.
        changes: Files are named within the package.
    """

    properties: tuple[str, ...]
    test: str
    changes: tuple[Change, ...]


def defect(properties: str, test: str, *changes: tuple[str, str, str]) -> Defect:
    """Returns a defect as tables write it: properties in one text, the test without its `test_alloc_`."""
    return Defect(tuple(properties.split()), f"test_alloc_{test}", tuple(Change(*one) for one in changes))


@contextmanager
def planted(folder: Path, package: str, changes: Sequence[Change]) -> Iterator[ModuleType]:
    """Yields a copy of a package of ours with some changes, and inside it one of what allocators share."""
    name = f"planted_allocation_{next(_numbers)}"
    inside = {package: name} | {shared: f"{name}.{shared.rpartition('.')[2]}" for shared in SHARED}
    for original, copy in inside.items():
        source, target = PRODUCT.joinpath(*original.split(".")[1:]), folder.joinpath(*copy.split("."))
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    for change in changes:
        change.apply(folder / name)
    for path in (folder / name).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for original, copy in inside.items():
            text = text.replace(original, copy)
        path.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for module in [module for module in sys.modules if module.split(".")[0] == name]:
            del sys.modules[module]
