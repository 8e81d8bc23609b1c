"""Every planted defect finds its text in the product, so that no change of that leaves one behind."""

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

from tests.allocation.planted import SHARED
from tests.promises.planting import PRODUCT, ROOT, Change

TABLES = [
    path.relative_to(ROOT)
    for path in sorted((ROOT / "tests").rglob("*.py"))
    if re.search(r"\bChange\(|^DEFECTS\b", path.read_text(encoding="utf-8"), re.MULTILINE)
]


def changes_in(value: object, depth: int = 0) -> Iterator[Change]:
    """Yields the changes that a value holds, however it holds them."""
    if isinstance(value, Change):
        yield value
    elif isinstance(value, Mapping):
        yield from changes_in(tuple(value.values()), depth)
    elif isinstance(value, tuple | list) and depth < 4:
        for part in value:
            yield from changes_in(part, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type) and depth < 4:
        yield from changes_in(tuple(getattr(value, field.name) for field in fields(value)), depth + 1)


def roots(module: ModuleType) -> Iterator[Path]:
    """Yields what the files of a table may be relative to: the product, or a package that is copied."""
    yield PRODUCT
    if package := getattr(module, "PACKAGE", ""):
        yield PRODUCT.joinpath(*package.split(".")[1:])
        yield from (PRODUCT.joinpath(*shared.split(".")[1:-1]) for shared in SHARED)


def test_every_planted_defect_finds_its_text_once() -> None:
    lost, seen = set(), 0
    for table in TABLES:
        module = importlib.import_module(".".join(table.with_suffix("").parts))
        for change in changes_in(tuple(vars(module).values())):
            seen += 1
            found = [path for root in roots(module) if (path := root / change.file).exists()]
            if not any(path.read_text(encoding="utf-8").count(change.old) == 1 for path in found):
                lost.add(f"{table}: {change.file}: {change.old.strip()[:80]}")
    assert sorted(lost) == []
    assert seen > 200
