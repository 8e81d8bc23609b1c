"""The ceilings on silenced checks, and the counter that holds them."""

import pytest

from tools.suppressions import (
    ROOT,
    Suppression,
    ceilings,
    found_in,
    in_code,
    in_comments,
    in_settings,
    problems,
)

# Directives are put together here, so that this file holds none of its own.
HASH = "#"
CHECKED = [
    ("noqa", f"x = 1  {HASH} noqa: BLE001 - user code may raise anything\n"),
    ("noqa", f"x = 1  {HASH} noqa: E501,F401 - user code may raise anything\n"),
    ("type-ignore", f"x = 1  {HASH} type: ignore[arg-type]  {HASH} the stub knows no memoryview\n"),
    ("no-cover", f"x = 1  {HASH} pragma: no cover - it runs elsewhere only\n"),
    ("whole-file", f"{HASH} ruff: noqa because of old code\n"),
    ("whole-file", f"{HASH} mypy: ignore-errors because of old code\n"),
    ("format-off", f"x = 1  {HASH} fmt: skip - read row by row\n"),
    ("skip", 'import pytest\npytest.skip("no video card here")\n'),
    ("skip", 'import pytest\n@pytest.mark.skipif(True, reason="no video card here")\ndef test_a(): ...\n'),
    ("skip", 'import pytest\npytest.importorskip("cv2", reason="OpenCV is not here")\n'),
    ("xfail", 'import pytest\npytestmark = pytest.mark.xfail(reason="a known defect here")\n'),
    ("warning-filter", f'import warnings\nwarnings.simplefilter("ignore")  {HASH} OpenCV warns of itself\n'),
    ("blind-suppress", f"import contextlib\ncontextlib.suppress(Exception)  {HASH} a cleanup may fail\n"),
]


@pytest.mark.parametrize(
    ("kind", "source"), CHECKED, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(CHECKED)]
)
def test_each_kind_is_found_with_its_reason(kind: str, source: str) -> None:
    found = [*in_comments("a.py", source), *in_code("a.py", source)]
    assert [each.kind for each in found] == [kind]
    assert found[0].has_reason


@pytest.mark.parametrize("source", [f"x = 1  {HASH} noqa: BLE001\n", f"x = 1  {HASH} type: ignore[misc]\n"])
def test_a_suppression_without_a_reason_is_a_problem(source: str) -> None:
    (sentence,) = problems(list(in_comments("a.py", source)), {"noqa": 1, "type-ignore": 1})
    assert sentence.startswith("a.py:1: ")


def test_a_kind_above_its_ceiling_is_a_problem_that_names_the_places() -> None:
    found = [Suppression("noqa", f"a.py:{line}", "a reason is here") for line in (1, 2)]
    assert problems(found, {"noqa": 2}) == []
    assert problems(found, {"noqa": 1}) == ["noqa: 2, the ceiling is 1 (a.py:1, a.py:2)"]
    assert problems(found, {}) == ["noqa: 2, the ceiling is 0 (a.py:1, a.py:2)"]


def test_settings_are_counted_and_their_reasons_are_comments() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = list(in_settings(settings))
    assert {each.kind for each in found} >= {"per-file-ignores", "rule-off", "untyped-library"}
    assert all(each.has_reason for each in found)
    bare = "\n".join(line.partition(" #")[0] for line in settings.splitlines())
    assert not any(each.has_reason for each in in_settings(bare))


def test_the_checkout_is_under_every_ceiling() -> None:
    assert problems(found_in(ROOT), ceilings()) == []
