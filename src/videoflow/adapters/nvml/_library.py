"""Asks NVML through `nvidia-ml-py`; the one place that imports it."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from videoflow.adapters.nvml._reading import DeviceReading, HostReading, Using
from videoflow.adapters.nvml._topology import links_between
from videoflow.backends.allocation import DeviceIdentity, HostSharing
from videoflow.backends.outcomes import Observation, UnknownReason, known, unknown

T = TypeVar("T")
Handle: TypeAlias = Any  # a pointer of the library
_VGPU = 2
_PROHIBITED = 2
_VERSION_2 = 0x02000028


class LibraryLacking(Exception):
    """There is no library to ask, or it lacks what is asked: another way may do."""


def read_through_library(host: str, now: float, *, links: bool) -> Observation[HostReading]:
    """Returns what NVML says.

    Args:
        host: What the host is called in identities.
        now: Monotonic seconds.
        links: Whether to ask how near the GPUs are to each other.

    Raises:
        LibraryLacking: The bindings or the library are not there, or lack a function.
    """
    try:
        import pynvml
    except ImportError as error:
        raise LibraryLacking("nvidia-ml-py is not installed (pip install 'videoflow[gpu]')") from error
    lacking = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    try:
        pynvml.nvmlInit()
        try:
            return known(_Host(pynvml, host).read(links=links), now)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        if error.value in lacking:
            what = "libnvidia-ml.so.1 is not there" if error.value == lacking[0] else "the driver is too old"
            raise LibraryLacking(what) from error
        return unknown(_reason(pynvml, error.value), now, f"NVML: {error}")


def _reason(nvml: ModuleType, code: int) -> UnknownReason:
    reasons = {
        nvml.NVML_ERROR_NO_PERMISSION: UnknownReason.AUTH,
        nvml.NVML_ERROR_TIMEOUT: UnknownReason.TIMEOUT,
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: UnknownReason.UNSUPPORTED,
    }
    return reasons.get(code, UnknownReason.UNREACHABLE)


class _Host:
    """One reading in progress; errors of a primary question come through, others become problems."""

    def __init__(self, nvml: ModuleType, host: str) -> None:
        self._nvml = nvml
        self._host = host
        self._problems: list[str] = []

    def read(self, *, links: bool) -> HostReading:
        nvml = self._nvml
        handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
        devices: list[DeviceReading] = []
        for ordinal, handle in enumerate(handles):
            devices += self._gpu(ordinal, handle)
        whole = [device for device in devices if not device.is_slice]
        return HostReading(
            devices=tuple(devices),
            links=links_between(nvml, handles, whole) if links else (),
            driver=self._optional(nvml.nvmlSystemGetDriverVersion) or "",
        )

    def _gpu(self, ordinal: int, handle: Handle) -> list[DeviceReading]:
        nvml, self._problems = self._nvml, []
        uuid, product = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)
        total, used = self._memory(uuid, handle)
        mig = self._secondary(f"{uuid}: MIG mode", lambda: nvml.nvmlDeviceGetMigMode(handle), absent=(0, 0))
        partitioned = mig is not None and mig[0] == 1
        whole = DeviceReading(
            identity=DeviceIdentity(self._host, ordinal, uuid, None, product, total),
            used_bytes=used,
            users=self._users(uuid, handle),
            partitioned=partitioned,
            sharing=self._sharing(handle),
            prohibited=self._optional(lambda: nvml.nvmlDeviceGetComputeMode(handle)) == _PROHIBITED,
            facts=self._facts(handle),
        )
        found = [whole, *(self._slices(whole, handle) if partitioned else ())]
        return [replace(device, problems=tuple(self._problems)) for device in found]

    def _slices(self, whole: DeviceReading, handle: Handle) -> list[DeviceReading]:
        nvml, identity = self._nvml, whole.identity
        most = self._secondary(
            f"{identity.uuid}: MIG slices", lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle), absent=0
        )
        found = []
        for number in range(most or 0):
            one = self._slice_handle(identity.uuid or "", handle, number)
            if one is None:
                continue
            uuid, name = nvml.nvmlDeviceGetUUID(one), nvml.nvmlDeviceGetName(one)
            total, used = self._memory(uuid, one)
            found.append(
                DeviceReading(
                    identity=DeviceIdentity(
                        node=self._host,
                        ordinal=identity.ordinal,
                        uuid=identity.uuid,
                        mig_uuid=uuid,
                        product=identity.product,
                        memory_bytes=total,
                        mig_profile=name.rpartition("MIG ")[2] if "MIG " in name else "",
                    ),
                    used_bytes=used,
                    users=self._users(uuid, one),
                    sharing=HostSharing.MIG,
                    facts=whole.facts,
                )
            )
        return found

    def _slice_handle(self, gpu: str, handle: Handle, number: int) -> Handle | None:
        """Returns a slice, or None for a number that no slice has."""
        nvml = self._nvml
        try:
            return nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except nvml.NVMLError as error:
            if error.value not in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INVALID_ARGUMENT):
                self._problems.append(f"{gpu}: MIG slice {number}: {error}")
            return None

    def _memory(self, name: str, handle: Handle) -> tuple[int | None, int | None]:
        nvml = self._nvml
        found = self._secondary(
            f"{name}: memory", lambda: nvml.nvmlDeviceGetMemoryInfo(handle, _VERSION_2), absent=None
        )
        if found is None:
            self._note(f"{name}: memory: the driver does not say")
            return None, None
        return int(found.total) - int(found.reserved), int(found.used)

    def _users(self, name: str, handle: Handle) -> tuple[Using, ...] | None:
        nvml = self._nvml
        computing = self._secondary(
            f"{name}: processes", lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle), absent=None
        )
        if computing is None:
            self._note(f"{name}: processes: the driver does not say")
            return None
        drawing: list[Any] | None = self._secondary(
            f"{name}: processes", lambda: nvml.nvmlDeviceGetGraphicsRunningProcesses(handle), absent=[]
        )
        if drawing is None:
            return None
        used: dict[int, int | None] = {}
        for process in [*computing, *drawing]:  # one that does both is in both lists, with the same figure
            used[process.pid] = process.usedGpuMemory
        return tuple(Using(pid, size_bytes) for pid, size_bytes in used.items())

    def _sharing(self, handle: Handle) -> HostSharing:
        """Looks for evidence of sharing; only where each question was answered is the device whole."""
        nvml = self._nvml
        try:
            if self._supported(lambda: nvml.nvmlDeviceGetMPSComputeRunningProcesses(handle)):
                return HostSharing.MPS
            if self._supported(lambda: nvml.nvmlDeviceGetVirtualizationMode(handle)) == _VGPU:
                return HostSharing.TIME_SLICED
        except nvml.NVMLError:
            return HostSharing.UNKNOWN
        return HostSharing.PHYSICAL

    def _facts(self, handle: Handle) -> dict[str, str]:
        nvml = self._nvml
        capability = self._optional(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
        numa = self._optional(lambda: nvml.nvmlDeviceGetNumaNodeId(handle))
        facts = {} if numa is None else {"numa_node": str(numa)}
        if capability is not None:
            facts["compute_capability"] = str(capability[0] * 10 + capability[1])
        return facts

    def _secondary(self, what: str, ask: Callable[[], T], absent: T) -> T | None:
        """Asks; what the device does not support is `absent`, any other error is a problem and None."""
        nvml = self._nvml
        try:
            return ask()
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
                return absent
            self._note(f"{what}: {error}")
            return None

    def _note(self, problem: str) -> None:
        what = problem.rpartition(": ")[0]
        if not any(said.startswith(what) for said in self._problems):
            self._problems.append(problem)

    def _supported(self, ask: Callable[[], T]) -> T | None:
        nvml = self._nvml
        try:
            return ask()
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
                return None
            raise

    def _optional(self, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except self._nvml.NVMLError:
            return None
