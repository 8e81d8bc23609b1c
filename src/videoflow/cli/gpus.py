"""`videoflow gpus`: which accelerators this machine has, who uses them, and what could not be seen."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.text import Text

from videoflow.backends.outcomes import Unknown
from videoflow.cli._console import columns, results
from videoflow.cli._table import Table, indented
from videoflow.cli._units import show_bytes
from videoflow.clock import RealClock
from videoflow.engines import survey_gpus

if TYPE_CHECKING:
    from videoflow.deploy.allocation_local import Surveyed

_USABLE = {True: "yes", False: "no", None: "unknown"}
_HANDED_OUT = {
    "physical": "whole GPUs",
    "mig": "MIG slices",
    "time-sliced": "time-sliced with others, so none can be exclusive",
    "mps": "an MPS server is on them, so none can be exclusive",
    "unknown": "unknown, so none can be exclusive",
}


class GpuRow(msgspec.Struct, frozen=True):
    """One GPU or MIG slice, as `--json` shows it; memory in bytes; None is what could not be read."""

    ordinal: int | None
    id: str
    product: str
    profile: str
    usable: bool | None
    memory_bytes: int | None
    used_bytes: int | None
    runs: list[str]
    processes: list[int] | None


class GpuList(msgspec.Struct, frozen=True):
    """All that could be seen.

    Attributes:
        seen: Whether the driver answered; where not, `devices` says nothing.
        reason: Why it did not.
        driver: Its version.
        source: `nvml` or `nvidia-smi`.
        sharing: How the usable devices are handed out.
        devices: Each GPU, then its slices.
        notes: Why a device is not usable.
        unknown: What could not be read.
    """

    seen: bool
    reason: str = ""
    driver: str = ""
    source: str = ""
    sharing: str = ""
    devices: list[GpuRow] = []
    notes: list[str] = []
    unknown: list[str] = []


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("gpus")(gpus)


def gpus(json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False) -> None:
    """Show the GPUs of this machine: how they are handed out, who uses them, and what is unknown."""
    found = _looked()
    if json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    console = results()
    for line in _lines(found, columns(console)):
        console.print(line)


def _looked() -> GpuList:
    seen = survey_gpus(RealClock())
    if isinstance(seen, Unknown):
        return GpuList(seen=False, reason=f"{seen.reason}: {seen.detail}")
    survey = seen.value
    return GpuList(
        seen=True,
        driver=survey.driver,
        source=survey.source,
        sharing=str(survey.sharing),
        devices=[_row(device) for device in survey.devices],
        notes=list(survey.notes),
        unknown=list(survey.unknown),
    )


def _row(device: "Surveyed") -> GpuRow:
    reading, identity = device.reading, device.reading.identity
    kind = "exclusive" if any(share.exclusive for share in device.shares) else "shared"
    return GpuRow(
        ordinal=identity.ordinal,
        id=identity.mig_uuid or identity.uuid or "",
        product=identity.product,
        profile=identity.mig_profile or "",
        usable=None if device.given and reading.problems else device.given,
        memory_bytes=identity.memory_bytes,
        used_bytes=reading.used_bytes,
        runs=[f"{share.owner} {share.workload} ({kind})" for share in device.shares],
        processes=None if reading.users is None else [user.pid for user in reading.users],
    )


def _lines(found: GpuList, width: int | None) -> Iterator[Text]:
    if not found.seen:
        yield Text("No GPU can be seen from here. That does not mean that there is none.", style="bold")
        yield from indented(found.reason, width)
        yield Text("")
        yield from indented("An NVIDIA GPU is seen through its driver and videoflow[gpu].", width)
        yield from indented("Flows that ask for no GPU run as they are.", width)
        return
    if not found.devices:
        yield Text(f"The driver {found.driver} answers, and this machine has no GPU.", style="bold")
        return
    source = f"driver {found.driver or 'of unknown version'}, read by {found.source}"
    yield Text(f"{source}; handed out: {_HANDED_OUT.get(found.sharing, found.sharing)}")
    yield Text("")
    table = Table(
        ("#", "device", "id", "memory", "used", "may be given", "used by"), numbers=("memory", "used")
    )
    for row in found.devices:
        table.add(
            "" if row.ordinal is None or row.profile else str(row.ordinal),
            (f"  {row.profile}" if row.profile else row.product, "cyan"),
            row.id,
            _size(row.memory_bytes),
            _size(row.used_bytes),
            _USABLE[row.usable],
            _users(row),
        )
    yield from table.lines(width)
    for title, sentences in (("Not given", found.notes), ("Unknown", found.unknown)):
        if sentences:
            yield Text("")
            yield Text(title, style="bold underline")
            for sentence in sentences:
                yield from indented(sentence, width)


def _size(size_bytes: int | None) -> str:
    return "unknown" if size_bytes is None else show_bytes(size_bytes)


def _users(row: GpuRow) -> str:
    said = list(row.runs)
    if row.processes is None:
        said.append("processes unknown")
    elif row.processes:
        said.append(f"processes {', '.join(map(str, row.processes))}")
    return "; ".join(said) or "nobody"
