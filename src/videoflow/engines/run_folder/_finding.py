"""Runs by their folders: all that there are, and the one that a person means.

Used by the command line. It refuses a name that means no run, or more than one.
"""

from collections.abc import Iterator
from pathlib import Path

from videoflow.engines._home import runs_folder
from videoflow.engines.run_folder._folder import RunFolder
from videoflow.errors import UsageError


def list_runs(root: Path | None = None) -> list[RunFolder]:
    """Returns the runs of a folder (None: the default one), newest first; none where it does not exist."""
    return sorted(_run_folders(runs_folder(root)), key=lambda folder: folder.run_id, reverse=True)


def _run_folders(root: Path) -> Iterator[RunFolder]:
    if not root.is_dir():
        return
    for path in root.iterdir():
        folder = RunFolder(path)
        if folder.supervisor_path.exists() or folder.report_path.exists():
            yield folder


def find_run(text: str, root: Path | None = None) -> RunFolder:
    """Returns the run that a person means: its id, the beginning or the end of it, or `last`.

    Raises:
        UsageError: No run, or more than one, is meant.
    """
    runs = list_runs(root)
    if text == "last" and runs:
        return runs[0]
    wanted = text.upper()
    found = [run for run in runs if run.run_id.upper() == wanted] or [
        run for run in runs if wanted and run.run_id.upper().startswith(wanted)
    ]
    found = found or [run for run in runs if wanted and run.run_id.upper().endswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(run.run_id for run in found[:5])
        raise UsageError(f"{text!r} names {len(found)} runs", cause=listed, remedy="give more of the id")
    raise UsageError(
        f"there is no run {text!r}",
        cause=f"{len(runs)} run{'s' if len(runs) != 1 else ''} in {runs_folder(root)}",
        remedy="see `videoflow runs`; a run made with --run-dir is found with the same option",
    )
