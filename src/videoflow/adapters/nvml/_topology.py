"""How near GPUs are to each other: NVLink, peer access, and what of the machine lies between."""

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from videoflow.adapters.nvml._reading import DeviceReading
from videoflow.backends.allocation import device_key
from videoflow.placement import UNKNOWN_DISTANCE, Link

T = TypeVar("T")
Handle: TypeAlias = Any  # a pointer of the library
_MOST_LANES = 18
_P2P_READ, _P2P_WRITE, _P2P_NVLINK = 0, 1, 2
_BESIDE_LANES = 20
"""Distance of a pair without NVLink is this and its topology level: worse than any pair with it."""


def links_between(
    nvml: ModuleType, handles: Sequence[Handle], whole: Sequence[DeviceReading]
) -> tuple[Link, ...]:
    """Returns a link for each pair of GPUs of which anything is known.

    Args:
        nvml: The bindings, initialised.
        handles: Of the GPUs.
        whole: Their readings, in the same order.
    """
    pairs = _Pairs(nvml)
    lanes = [pairs.lanes(handle) for handle in handles] if len(handles) > 1 else []
    addresses = [pairs.address(handle) for handle in handles] if len(handles) > 1 else []
    found = []
    for one in range(len(handles)):
        for other in range(one + 1, len(handles)):
            first, second = handles[one], handles[other]
            direct = lanes[one].count(addresses[other])
            if not direct and pairs.peer(first, second, _P2P_NVLINK):
                direct = min(len(lanes[one]), len(lanes[other]))  # through a switch
            level = pairs.asked(partial(nvml.nvmlDeviceGetTopologyCommonAncestor, first, second))
            distance = _distance(direct, None if level is None else int(level))
            if distance is not None:
                peer = all(pairs.peer(first, second, what) for what in (_P2P_READ, _P2P_WRITE))
                found.append(_link(whole[one], whole[other], distance, peer=peer))
    return tuple(found)


def _distance(lanes: int, level: int | None) -> int | None:
    if lanes:
        return 1 + _MOST_LANES - min(lanes, _MOST_LANES)
    return None if level is None else min(_BESIDE_LANES + level, UNKNOWN_DISTANCE)


def _link(first: DeviceReading, second: DeviceReading, distance: int, *, peer: bool) -> Link:
    return Link(device_key(first.identity), device_key(second.identity), distance, peer)


class _Pairs:
    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml

    def asked(self, ask: Callable[[], T]) -> T | None:
        """Returns the answer, or None: what is not known of a pair counts as far."""
        try:
            return ask()
        except self._nvml.NVMLError:
            return None

    def peer(self, first: Handle, second: Handle, what: int) -> bool:
        """Returns whether the driver says that a kind of peer access works."""
        nvml = self._nvml
        status = self.asked(lambda: nvml.nvmlDeviceGetP2PStatus(first, second, what))
        return status is not None and status == nvml.NVML_P2P_STATUS_OK

    def lanes(self, handle: Handle) -> list[str]:
        """Returns the PCI addresses at the other ends of the active lanes of a GPU."""
        nvml, found = self._nvml, []
        for number in range(_MOST_LANES):
            if self.asked(partial(nvml.nvmlDeviceGetNvLinkState, handle, number)) != 1:
                continue
            remote = self.asked(partial(nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, number))
            if remote is not None:
                found.append(_text(remote.busId))
        return found

    def address(self, handle: Handle) -> str:
        """Returns the PCI address of a GPU, or "" where it is not told."""
        nvml = self._nvml
        found = self.asked(lambda: nvml.nvmlDeviceGetPciInfo(handle))
        return "" if found is None else _text(found.busId)


def _text(found: object) -> str:
    return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)
