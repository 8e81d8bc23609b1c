"""What was read of a host and its GPUs, whichever way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from videoflow.backends.allocation import DeviceIdentity, HostSharing
from videoflow.placement import Link, Maskable

IDLE_BYTES = 128 << 20
"""Memory in use below which nobody need be on a device: less than any process that computes takes."""


@dataclass(frozen=True)
class Using:
    """A process on a device.

    Attributes:
        pid: As the driver numbers it, which in a container may be another number than the process's own.
        used_bytes: Memory of the device that it uses, or None where the driver does not say.
    """

    pid: int
    used_bytes: int | None


@dataclass(frozen=True)
class DeviceReading:
    """One GPU, or one MIG slice.

    Attributes:
        identity: Which one; a slice has the ordinal of its GPU, and a MIG UUID.
        used_bytes: In use by anybody, what the driver keeps for itself left out; None: could not be read.
        users: Processes on it; None: could not be read.
        partitioned: MIG mode is on: the GPU cannot be used as a whole.
        sharing: How it is handed out, as far as there is evidence.
        prohibited: The compute mode forbids its use.
        facts: What a constraint may ask of it.
        problems: What could not be read of it, or of the GPU that it is a slice of; with any, what is said
            of its use is not all.
    """

    identity: DeviceIdentity
    used_bytes: int | None
    users: tuple[Using, ...] | None
    partitioned: bool = False
    sharing: HostSharing = HostSharing.PHYSICAL
    prohibited: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def is_slice(self) -> bool:
        """Whether it is a MIG slice."""
        return self.identity.mig_uuid is not None


@dataclass(frozen=True)
class HostReading:
    """All that was read.

    Attributes:
        devices: By ordinal, the slices of a GPU after it.
        links: Between GPUs, by `device_key`; only where they were asked for and could be read.
        driver: Its version, or "".
        source: `nvml` or `nvidia-smi`.
    """

    devices: tuple[DeviceReading, ...]
    links: tuple[Link, ...] = ()
    driver: str = ""
    source: str = "nvml"


def maskable(devices: Sequence[DeviceReading]) -> list[Maskable]:
    """Returns devices as a mask may name them, in their order."""
    return [
        Maskable(None, device.identity.mig_uuid)
        if device.is_slice
        else Maskable(device.identity.ordinal, device.identity.uuid)
        for device in devices
    ]
