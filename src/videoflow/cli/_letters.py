"""Finds the dead letters of runs, and decodes what they hold. Used by `videoflow dead-letters`.

A value that needs a class of the flow file is decoded after that file was loaded, as a worker would. It
refuses a label that no run knows, or that several letters of one run share.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from videoflow.backends.runtime import DeadLetter
from videoflow.cli._nearest import nearest
from videoflow.cli._where import CALL_SECONDS, records_of
from videoflow.clock import RealClock
from videoflow.engines.run_folder import RunFolder, find_run, list_runs
from videoflow.errors import FlowError, UsageError, ValueRefused
from videoflow.graph import load_flow_file
from videoflow.graph.spec import CodeKind
from videoflow.wire import Value, decode_value

_LOG = logging.getLogger("videoflow.cli")


@dataclass(frozen=True)
class Undecoded:
    """A member whose value cannot be made here, with the reason."""

    size_bytes: int
    reason: str


def letters_of(folder: RunFolder) -> list[DeadLetter]:
    """Returns the dead letters of a run; none for a run that kept no records in its folder."""
    records = records_of(folder)
    if records is None:
        return []
    try:
        return records.dead_letters(deadline=RealClock().monotonic() + CALL_SECONDS)
    finally:
        records.store.close()


def find_letter(text: str, run_dir: Path | None) -> tuple[RunFolder, DeadLetter]:
    """Returns the letter that `[RUN/]LABEL` means: in that run, else in the newest that has it.

    Raises:
        UsageError: No letter, or more than one, is meant.
    """
    run, _, label = text.rpartition("/")
    folders = [find_run(run, run_dir)] if run else list_runs(run_dir)
    labels: list[str] = []
    for folder in folders:
        letters = letters_of(folder)
        found = [letter for letter in letters if label in (letter.label, letter.record_id)]
        found = found or [letter for letter in letters if label and letter.label.startswith(label)]
        if len(found) == 1:
            return folder, found[0]
        if found:
            listed = ", ".join(letter.label for letter in found[:5])
            raise UsageError(
                f"{label!r} names {len(found)} dead letters of run {folder.run_id}",
                cause=listed,
                remedy="give the whole label",
            )
        labels += [letter.label for letter in letters]
    raise UsageError(
        f"there is no dead letter {label!r}" + (f" in run {folders[0].run_id}" if run else ""),
        cause=f"known are {', '.join(labels[:5])}" if labels else "there are none",
        remedy=nearest(label, labels) or "see `videoflow dead-letters list`",
    )


def members_of(folder: RunFolder, letter: DeadLetter) -> dict[str, Value]:
    """Returns input name → value of a letter, with `Undecoded` for what cannot be made here."""
    return {name: _decoded(folder, body) for name, body in letter.members.items()}


def _decoded(folder: RunFolder, body: bytes) -> Value:
    try:
        return decode_value(body)
    except ValueRefused:
        _load_flow_file(folder)
    try:
        return decode_value(body)
    except ValueRefused as error:
        return Undecoded(len(body), str(error))


def _load_flow_file(folder: RunFolder) -> None:
    """Runs the flow file of a run, so that its classes are there; one that is gone leaves them unknown."""
    try:
        spec = folder.spec()
        files = {node.module for node in spec.nodes if node.code is CodeKind.FLOW_FILE} if spec else set()
        for file in files:
            load_flow_file(file)
    except FlowError as error:
        _LOG.debug("the flow file of run %s cannot be loaded: %s", folder.run_id, error)
