"""How this host's accelerators are given out; read from the environment once, at the edge."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from videoflow.environment import MASK_VARIABLE, ORDER_VARIABLE

BY_ADDRESS = "PCI_BUS_ID"
DEFAULT_HEADROOM_BYTES = 1 << 30


class Policy(StrEnum):
    """What to do where there are fewer devices than requests.

    `STRICT`: nothing starts short-changed: an exclusive request has devices that nobody else uses, a sharer
    fits by the peak that it declares. `SHARED`: requests wrap around over the devices that there are; nothing
    is ever exclusive, and a host that could not be looked at is used as it is.
    """

    STRICT = "strict"
    SHARED = "shared"


@dataclass(frozen=True)
class LocalSettings:
    """Settings of one allocator.

    Attributes:
        host: What this host is called in identities.
        policy: Strict or shared.
        mask: The inherited `CUDA_VISIBLE_DEVICES`, or None where it is not set; nothing beyond it is given.
        order: The inherited `CUDA_DEVICE_ORDER`, or "".
        headroom_bytes: Memory kept free on each shared device.
    """

    host: str
    policy: Policy = Policy.STRICT
    mask: str | None = None
    order: str = ""
    headroom_bytes: int = DEFAULT_HEADROOM_BYTES

    @classmethod
    def read(cls, host: str, environment: Mapping[str, str], policy: Policy = Policy.STRICT) -> Self:
        """Returns the settings that an environment inherits to this process."""
        return cls(host, policy, environment.get(MASK_VARIABLE), environment.get(ORDER_VARIABLE, ""))
