"""Each promise of the planner has a defect here, planted in a copy of it, that its check must notice."""

import json
from typing import Any

import pytest

from tests.planner.planted import DEFECTS
from tests.promises.planting import Planted


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each check said; one copy for all defects, since a copy costs more than a check."""
    copy = Planted(tmp_path_factory.mktemp("planner"))
    ran = copy.module("tests.planner.planted", str(copy.folder))
    assert ran.status == 0, ran.output
    found: dict[str, Any] = json.loads(ran.output[ran.output.index("{") :])
    return found


@pytest.mark.parametrize("name", DEFECTS)
def test_a_check_notices(name: str, said: dict[str, Any]) -> None:
    assert said[name] is not None, "the defect went unnoticed"
    assert DEFECTS[name].complaint in said[name]


def test_nothing_is_noticed_where_nothing_is_planted(said: dict[str, Any]) -> None:
    assert said[""] is None
