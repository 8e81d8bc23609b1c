"""What a process sees through its `CUDA_VISIBLE_DEVICES`."""

from collections.abc import Sequence

from videoflow.adapters.nvml._host import read_host
from videoflow.adapters.nvml._reading import DeviceReading, maskable
from videoflow.backends.allocation import DeviceIdentity
from videoflow.backends.outcomes import Observation, Unknown, UnknownReason, known, unknown
from videoflow.clock import Clock
from videoflow.placement import resolve_mask

_BY_ADDRESS = "PCI_BUS_ID"


def visible_devices(
    host: str, mask: str | None, order: str, clock: Clock
) -> Observation[tuple[DeviceIdentity, ...]]:
    """Returns the devices that CUDA shows to a process.

    A GPU in MIG mode is not there as a whole; of MIG slices only those are that the mask names.

    Args:
        host: What this host is called in identities.
        mask: `CUDA_VISIBLE_DEVICES`, or None where it is not set.
        order: `CUDA_DEVICE_ORDER`, or "".
        clock: Time.
    """
    seen = read_host(host, clock)
    if isinstance(seen, Unknown):
        return seen
    devices = seen.value.devices
    if ambiguous(mask, order, devices):
        detail = "CUDA_VISIBLE_DEVICES has ordinals, on GPUs that differ, and CUDA_DEVICE_ORDER is not set"
        return unknown(UnknownReason.MALFORMED, seen.observed_at, detail)
    shown = resolve_mask(mask, maskable(devices)).devices
    found = tuple(devices[n].identity for n in shown if not devices[n].partitioned)
    return known(found, seen.observed_at)


def ambiguous(mask: str | None, order: str, devices: Sequence[DeviceReading]) -> bool:
    """Returns whether the ordinals of a mask cannot be told: by default CUDA numbers the fastest first."""
    whole = [device.identity.product for device in devices if not device.is_slice]
    return (mask or "").strip()[:1].isdigit() and order != _BY_ADDRESS and len(set(whole)) > 1
