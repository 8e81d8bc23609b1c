"""What `CUDA_VISIBLE_DEVICES` makes visible."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ORDINAL = re.compile(r"\s*[+-]?\d+\s*")


@dataclass(frozen=True)
class Maskable:
    """A device that a mask may name.

    Attributes:
        ordinal: Its number on the host, None for a MIG slice, which has none.
        uuid: `GPU-...`, or the `MIG-...` of a slice.
    """

    ordinal: int | None
    uuid: str | None


@dataclass(frozen=True)
class Visible:
    """What a mask leaves.

    Attributes:
        devices: Visible devices, as indices into what was given, in the order of the mask.
        stopped_at: The entry at which enumeration stopped, or None.
        reason: Why it stopped, or why nothing is visible.
    """

    devices: tuple[int, ...]
    stopped_at: str | None = None
    reason: str = ""


def resolve_mask(mask: str | None, devices: Sequence[Maskable]) -> Visible:
    """Returns what a process with this mask sees, by the rules of CUDA.

    No mask shows every whole device; an empty one nothing. An entry is an ordinal, or a UUID or the
    beginning of one that fits exactly one device. Enumeration stops, keeping what came before, at the first
    entry that names nothing and at the first of another kind than the first entry. A device named twice
    leaves nothing at all.
    """
    if mask is None:
        return Visible(tuple(i for i, device in enumerate(devices) if device.ordinal is not None))
    if not mask.strip():
        return Visible((), reason="the mask is empty")
    entries = mask.split(",")
    by_ordinal = _ORDINAL.fullmatch(entries[0]) is not None
    shown: list[int] = []
    for entry in entries:
        if (_ORDINAL.fullmatch(entry) is not None) is not by_ordinal:
            return Visible(tuple(shown), entry, "ordinals and UUIDs are mixed")
        found = _named(entry, devices)
        if found is None:
            return Visible(tuple(shown), entry, "it names no device, or several")
        if found in shown:
            return Visible((), entry, "a device is named twice")
        shown.append(found)
    return Visible(tuple(shown))


def _named(entry: str, devices: Sequence[Maskable]) -> int | None:
    if _ORDINAL.fullmatch(entry):
        number = int(entry)
        return next((i for i, device in enumerate(devices) if device.ordinal == number), None)
    if not entry.startswith(("GPU-", "MIG-")):
        return None
    exact = [i for i, device in enumerate(devices) if device.uuid == entry]
    fits = exact or [i for i, device in enumerate(devices) if (device.uuid or "").startswith(entry)]
    return fits[0] if len(fits) == 1 else None
