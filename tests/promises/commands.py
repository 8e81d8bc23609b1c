"""The real command line in a process of its own: how it ended, what it said, and what it left behind."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOME = "home"
_FIELD = re.compile(r"  (?:cause|where|effect|remedy) {2,4}\S.*|           \S.*")
_BOUND = """
import ctypes, os, sys
library = ctypes.CDLL(None, use_errno=True)
for capability in (1, 2):  # to write and to read what permission bits forbid
    if os.geteuid() == 0 and library.prctl(24, capability, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
_LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@dataclass(frozen=True)
class Block:
    """An error block: its code, its message, its fields."""

    code: str
    message: str
    fields: str


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        status: Exit status.
        out: Standard output.
        err: Standard error.
        folder: Where it ran.
        made: Files that are there since, relative to the folder; those in its home begin with `home/`.
    """

    status: int
    out: str
    err: str
    folder: Path
    made: frozenset[str]

    def block(self) -> Block:
        """Returns the one error block, which is the last that is said; fails where there is not one."""
        assert "Traceback" not in self.err + self.out
        lines = self.err.splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("error VF-")]
        assert len(starts) == 1, self.err
        first, *fields = lines[starts[0] :]
        assert all(_FIELD.fullmatch(line) for line in fields), self.err
        assert any(line.startswith("  remedy ") for line in fields), self.err
        _, code, message = first.split(maxsplit=2)
        return Block(code, message, "\n".join(fields))

    def run_folder(self) -> Path:
        """Returns the folder of the one run that was made."""
        (folder,) = (self.folder / HOME / "runs").iterdir()
        return folder

    def beside_home(self) -> frozenset[str]:
        """Returns what was made outside its home."""
        return frozenset(name for name in self.made if not name.startswith(f"{HOME}/"))


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of a command that runs in a folder; its home marks its processes."""
    return {**os.environ, "VIDEOFLOW_HOME": str(folder / HOME), "PYTHONUNBUFFERED": "1", "COLUMNS": "400"}


def command(
    folder: Path,
    *words: str,
    bound: bool = False,
    most_bytes: int = 0,
    home: Path | None = None,
    left_running: bool = False,
) -> Ended:
    """Runs a command in a folder, and looks that no process of it is left.

    Args:
        folder: Where; its home lies in it.
        words: The command line.
        bound: Whether permission bits bind it although it may run as root.
        most_bytes: Size beyond which it cannot write a file, as on a full disk; 0: any.
        home: Another home.
        left_running: Something else of the same home runs meanwhile, and goes on.
    """
    before = files_in(folder)
    start = ["-m", "videoflow", *words]
    start = ["-c", _BOUND, *start] if bound else start
    start = ["-c", _LIMITED, str(most_bytes), *start] if most_bytes else start
    around = environment(folder) if home is None else {**environment(folder), "VIDEOFLOW_HOME": str(home)}
    ended = subprocess.run(
        [sys.executable, *start],
        cwd=folder,
        env=around,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert left_running or processes_of(folder) == []
    return Ended(ended.returncode, ended.stdout, ended.stderr, folder, files_in(folder) - before)


@contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that is under way, with what it says in one stream."""
    with subprocess.Popen(
        [sys.executable, "-m", "videoflow", *words],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def files_in(folder: Path) -> frozenset[str]:
    """Returns the files below a folder, but compiled Python."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
    return frozenset(name for name in names if "__pycache__" not in name)


def processes_of(folder: Path) -> list[int]:
    """Returns the processes that were started with a home in this folder, and with them their memory."""
    mark = f"VIDEOFLOW_HOME={folder}/".encode()
    return [number for number in _processes() if mark in _environment_of(number)]


def _processes() -> Sequence[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment_of(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/environ").read_bytes()
    except OSError:
        return b""
