"""The option and the look-ups that commands on past and present runs share."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import FlowRuntime
from videoflow.clock import RealClock
from videoflow.engines.run_folder import RunFolder

CALL_SECONDS = 10.0
_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_LENGTH, _ULID_TIME_DIGITS = 26, 10

RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        metavar="FOLDER",
        help="Folder of run folders, instead of the default.",
        show_default=False,
    ),
]


def records_of(folder: RunFolder) -> FlowRuntime | None:
    """Returns the records of a run, or None where it keeps none in its folder; its store is to be closed."""
    if not folder.store_path.exists():
        return None
    return FlowRuntime(SqliteStore(folder.store_path, RealClock()), folder.run_id)


def started(folder: RunFolder) -> datetime | None:
    """Returns when a run was started, in local time: its id is a ULID, which says so."""
    digits = folder.run_id.upper()
    if len(digits) != _ULID_LENGTH or any(digit not in _ULID_DIGITS for digit in digits):
        return None
    milliseconds = 0
    for digit in digits[:_ULID_TIME_DIGITS]:
        milliseconds = milliseconds * 32 + _ULID_DIGITS.index(digit)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
