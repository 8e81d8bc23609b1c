"""Environment variables by which a process is told which accelerators are its own.

Written by whoever grants them, the allocators, and read by workers. It refuses nothing.
"""

from typing import Final

GRANT_VARIABLE: Final = "VIDEOFLOW_GRANT"
"""The grant in JSON: a `DeliveredGrant` of `videoflow.backends.allocation`."""

MASK_VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
"""The devices that CUDA shows to the process, in its order."""

ORDER_VARIABLE: Final = "CUDA_DEVICE_ORDER"
"""By what CUDA numbers devices."""
