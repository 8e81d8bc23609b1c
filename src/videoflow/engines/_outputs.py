"""Claims on the files that a run writes, so that two runs never write one path.

Used by the engines before anything starts. A claim is a locked file in the home folder, keyed by the path;
the kernel drops the lock when its holder dies, so a stale claim hinders nobody. It refuses a path that
another run holds, and one that cannot be written.
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

import msgspec

from videoflow.engines._home import home_folder
from videoflow.errors import OutputUnwritable, UsageError, plain_text
from videoflow.graph.spec import FlowSpec
from videoflow.ids import hash_id

_LONGEST_NAME, _LONGEST_PATH = 80, 400  # characters that are shown


class _Claim(msgspec.Struct, frozen=True):
    run_id: str
    path: str


class OutputClaims:
    """The claims of one run, until `release`, the end of a `with`, or the death of the process."""

    def __init__(self) -> None:
        self._held: list[tuple[int, Path]] = []

    def release(self) -> None:
        """Gives every path back; doing it twice is doing it once."""
        while self._held:
            descriptor, lock = self._held.pop()
            lock.unlink(missing_ok=True)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _take(self, descriptor: int, lock: Path) -> None:
        self._held.append((descriptor, lock))


def outputs_of(spec: FlowSpec) -> tuple[Path, ...]:
    """Returns the absolute paths that a flow writes; addresses such as `rtmp://` are not among them."""
    named = (output for node in spec.nodes for output in node.traits.outputs)
    return tuple(Path(spec.folder, output) for output in named if "://" not in output)


def claim_outputs(paths: Iterable[Path], run_id: str, *, locks: Path | None = None) -> OutputClaims:
    """Claims every path for one run, or none.

    Args:
        paths: Absolute paths of files or folders to be written.
        run_id: Who claims.
        locks: Folder of the locks; None for `outputs` in the home folder.

    Raises:
        UsageError: A path is written twice by this run, or is held by another one, which is named.
        OutputUnwritable: A path cannot be written, or the claims cannot be kept.
    """
    named = [_resolved(path.parent) / path.name for path in paths]
    _refuse_twice(named)
    for path in named:
        require_writable(path)
    # A node may replace a symbolic link, or write through it: both names are taken.
    resolved = list(dict.fromkeys(each for path in named for each in (path, _resolved(path))))
    folder = locks if locks is not None else home_folder() / "outputs"
    claims = OutputClaims()
    try:
        if resolved:
            folder.mkdir(parents=True, exist_ok=True)
        for path in resolved:
            claims._take(*_locked(folder / f"{hash_id(str(path))}.lock", _Claim(run_id, str(path))))
    except OSError as error:
        claims.release()
        raise OutputUnwritable(
            "the claims on outputs cannot be kept",
            cause=error.strerror or str(error),
            where=str(folder),
            effect="nothing was started",
            remedy="let VIDEOFLOW_HOME name a folder on a local disk that can be written",
        ) from error
    except UsageError:
        claims.release()
        raise
    return claims


def sweep_claims(*, locks: Path | None = None, dry_run: bool = False) -> int:
    """Removes the locks that killed runs left, and returns how many; with `dry_run` only counts them."""
    folder = locks if locks is not None else home_folder() / "outputs"
    stale = 0
    for lock in folder.glob("*.lock") if folder.is_dir() else ():
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not dry_run and _is_still(lock, descriptor):
                lock.unlink(missing_ok=True)
            stale += 1
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return stale


def _refuse_twice(paths: Sequence[Path]) -> None:
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(
                f"two nodes of this flow write {path.name}",
                cause=str(path),
                effect="nothing was started",
                remedy="give each sink a path of its own",
            )


def require_writable(path: Path) -> None:
    """Looks, without leaving a trace, whether an absolute path can be written or made.

    Raises:
        OutputUnwritable: It is protected, or its nearest existing folder is, or is no folder.
    """
    try:
        cause = _why_not(path)
    except (OSError, ValueError) as error:  # a name that no file can have
        cause = _said(error)
    if cause:
        raise _unwritable(path, cause)


def _why_not(path: Path) -> str:
    """Returns why a path cannot be written or made, or "" where it can."""
    if not path.exists():
        return _why_not_in(next(parent for parent in path.parents if parent.exists()))
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return "it is a pipe or a socket, which waits for a reader"
    return "" if os.access(path, os.W_OK) else "it exists and may not be written"


def _resolved(path: Path) -> Path:
    """Returns a path without symbolic links.

    Raises:
        OutputUnwritable: They lead nowhere, or to what this user may not see.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop is a RuntimeError before Python 3.13
        raise _unwritable(path, _said(error)) from error


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _unwritable(path: Path, cause: str) -> OutputUnwritable:
    return OutputUnwritable(
        f"{plain_text(path.name, _LONGEST_NAME)} cannot be written",
        cause=cause,
        where=plain_text(str(path), _LONGEST_PATH),
        effect="nothing was started",
        remedy="write to a folder of yours, or change its permissions",
    )


def _why_not_in(folder: Path) -> str:
    """Returns why no file can be made in a folder, or "" where one could: it was, and is gone again."""
    if not folder.is_dir():
        return f"{folder} is not a folder"
    try:
        with TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"nothing can be written in {folder}: {error.strerror}"


def _locked(lock: Path, claim: _Claim) -> tuple[int, Path]:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 1 << 16, 0)
            os.close(descriptor)
            raise _held_by_another(claim, holder) from error
        except OSError:
            os.close(descriptor)
            raise
        if _is_still(lock, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(claim), 0)
            return descriptor, lock
        os.close(descriptor)  # its holder removed it between our open and our lock


def _is_still(lock: Path, descriptor: int) -> bool:
    try:
        return lock.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _held_by_another(claim: _Claim, holder: bytes) -> UsageError:
    try:
        other = f"run {msgspec.json.decode(holder, type=_Claim).run_id}"
    except msgspec.MsgspecError:
        other = "another run"
    return UsageError(
        f"{Path(claim.path).name} is being written by {other}",
        cause="two runs cannot write one path",
        where=claim.path,
        effect="nothing was started",
        remedy=f"wait for {other}, stop it with `videoflow stop`, or write elsewhere",
    )
