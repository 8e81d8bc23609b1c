"""What the documentation shows is executed: examples in docstrings, and Python blocks of Markdown pages."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import videoflow

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_names() -> list[str]:
    found = pkgutil.walk_packages(videoflow.__path__, "videoflow.", onerror=lambda name: None)
    return sorted(module.name for module in found if not module.name.endswith("__main__"))


def pages() -> list[Path]:
    """Every Markdown page for readers of the project."""
    patterns = ("*.md", "docs/**/*.md", "examples/**/*.md")
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


@pytest.mark.parametrize("name", module_names())
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0, (
        f"{result.failed} of {result.attempted} examples failed; they are printed above"
    )


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of one page run in order and share their names, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "shown"}
    text = page.read_text(encoding="utf-8")
    for block in PYTHON_BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block.group(1), str(page), "exec"), namespace)
