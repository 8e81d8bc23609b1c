"""Whether a file is still the one with which a run began.

Used by sources that resume. A run's id says when the run began, and the file system says when a file last
changed; so nothing has to be remembered. It refuses a file that changed after the run began, which includes
one that was replaced, and, for safety, one whose permissions or links were changed.
"""

from pathlib import Path

from videoflow.errors import SourceUnreadable
from videoflow.ids import ulid_milliseconds

_NANOSECONDS = 1_000_000


def refuse_changed(path: Path, name: str, run_id: str) -> None:
    """Refuses to go on with a file that is not what it was.

    Args:
        path: The file.
        name: What the source is called.
        run_id: ULID of the run; anything else, as in tests of one node, says nothing of a beginning.

    Raises:
        SourceUnreadable: The file has changed, or is gone.
    """
    began = ulid_milliseconds(run_id)
    if began is None:
        return
    try:
        found = path.stat()
    except OSError as error:
        raise SourceUnreadable(f"{name}: the source is gone", cause=error.strerror or str(error)) from error
    changed = max(found.st_ctime_ns, found.st_mtime_ns)
    if changed >= (began + 1) * _NANOSECONDS:
        raise SourceUnreadable(
            f"{name}: the source has changed since the run began",
            cause="reading goes on in the middle of a file, and this is another file now",
            effect="nothing more was read from it",
            remedy="run anew, and leave the file alone meanwhile",
        )
