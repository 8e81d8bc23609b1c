"""Plants a defect: a copy of the product with one small change, in which a test or a flow must fail.

A check that cannot fail shows nothing. So each promise has its defect here: the change is text (old → new, to
be found exactly once), the copy lies in the test's own folder, and what is run there sees the copy only.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

import videoflow

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = Path(videoflow.__file__).parent
_TEST = """
import sys, videoflow
assert videoflow.__file__.startswith(sys.argv[1]), videoflow.__file__
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""
_SECONDS = 55.0
_OPTIONS = (
    "-x",
    "-q",
    "-n",
    "0",
    "-p",
    "no:cacheprovider",
    "-o",
    "timeout=50",
    "--tb",
    "short",
    "--no-header",
)


@dataclass(frozen=True)
class Change:
    """A change of one file of the product; `old` is there exactly once."""

    file: str
    old: str
    new: str

    def apply(self, product: Path) -> None:
        """Makes the change in a copy."""
        path = product / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, (
            f"{self.file} holds {text.count(self.old)} times\n{self.old}\nplant it where this is done now"
        )
        path.unlink()
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


def sampled(names: Iterable[str], always: Collection[str]) -> list[ParameterSet]:
    """Returns the names of planted defects: some are tried in every run, all of them in the nightly one."""
    return [pytest.param(name, marks=() if name in always else pytest.mark.nightly) for name in names]


@dataclass(frozen=True)
class Ran:
    """How something ended that was run in a copy."""

    status: int
    output: str


class Planted:
    """A copy of the product with some changes.

    Args:
        folder: Where to make it.
        changes: What is changed.
    """

    def __init__(self, folder: Path, changes: Sequence[Change] = ()) -> None:
        self.folder = folder / "planted"
        ignored = shutil.ignore_patterns("models", "*.pyc.*")
        shutil.copytree(PRODUCT, self.folder / "videoflow", ignore=ignored)
        for change in changes:
            change.apply(self.folder / "videoflow")

    def test(self, *ids: str) -> Ran:
        """Runs tests of this checkout on the copy."""
        return self._run(["-c", _TEST, str(self.folder), *_OPTIONS, *ids])

    def flow(self, name: str, engine: str) -> dict[str, Any]:
        """Runs a flow of `probes` on the copy, and returns its report."""
        ran = self._run(["-m", "tests.promises.probes", name, engine, str(self.folder)])
        assert ran.status == 0, ran.output
        report: dict[str, Any] = json.loads(ran.output[ran.output.index("{") :])
        return report

    def module(self, name: str, *arguments: str) -> Ran:
        """Runs a module of this checkout on the copy."""
        return self._run(["-m", name, *arguments])

    def run(self, *arguments: str, seconds: float = _SECONDS) -> Ran:
        """Runs Python on the copy, at most so long."""
        return self._run(arguments, seconds)

    def _run(self, arguments: Sequence[str], seconds: float = _SECONDS) -> Ran:
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Ran(ended.returncode, ended.stdout)

    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(self.folder), str(ROOT))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "VIDEOFLOW_HOME": str(self.folder / "home"),
        }
