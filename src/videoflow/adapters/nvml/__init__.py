"""Reads the GPUs of this host: through NVML, or through `nvidia-smi` where its bindings are not there.

Used by the local allocator, by the worker that looks whether it sees what it was granted, and by
`videoflow gpus`. It refuses to guess: a host whose driver did not answer is Unknown and not without GPUs, and
what one GPU would not say is told as a problem.
"""

from videoflow.adapters.nvml._host import ANSWER_SECONDS, read_host
from videoflow.adapters.nvml._reading import IDLE_BYTES, DeviceReading, HostReading, Using, maskable
from videoflow.adapters.nvml._visible import ambiguous, visible_devices

__all__ = [
    "ANSWER_SECONDS",
    "IDLE_BYTES",
    "DeviceReading",
    "HostReading",
    "Using",
    "ambiguous",
    "maskable",
    "read_host",
    "visible_devices",
]
