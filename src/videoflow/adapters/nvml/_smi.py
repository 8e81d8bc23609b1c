"""Asks `nvidia-smi`, where NVML cannot be asked directly. It tells of no MIG slices and of no links."""

import shutil
import subprocess
from xml.etree import ElementTree as Xml

from videoflow.adapters.nvml._reading import DeviceReading, HostReading, Using
from videoflow.backends.allocation import DeviceIdentity, HostSharing
from videoflow.backends.outcomes import Observation, UnknownReason, known, unknown

_COMMAND = "nvidia-smi"
_COMMAND_SECONDS = 30
_MIB = 1 << 20


def read_through_command(host: str, now: float, why: str) -> Observation[HostReading]:
    """Returns what `nvidia-smi` says.

    Args:
        host: What the host is called in identities.
        now: Monotonic seconds.
        why: Why NVML was not asked.
    """
    found = shutil.which(_COMMAND)
    if found is None:
        return unknown(UnknownReason.MISSING, now, f"{why}, and there is no {_COMMAND}")
    try:
        done = subprocess.run(
            [found, "-q", "-x"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return unknown(UnknownReason.TIMEOUT, now, f"{_COMMAND} did not end within {_COMMAND_SECONDS} s")
    except OSError as error:
        return unknown(UnknownReason.UNREACHABLE, now, f"{why}, and {_COMMAND}: {error.strerror}")
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        return unknown(UnknownReason.UNREACHABLE, now, f"{_COMMAND}: {said[0] if said else done.returncode}")
    try:
        return known(_parsed(host, Xml.fromstring(done.stdout)), now)
    except (Xml.ParseError, ValueError, KeyError) as error:
        return unknown(UnknownReason.MALFORMED, now, f"{_COMMAND} said what cannot be read: {error}")


def _parsed(host: str, log: Xml.Element) -> HostReading:
    gpus = log.findall("gpu")
    said = log.findtext("attached_gpus", "").strip()
    if said != str(len(gpus)):
        raise ValueError(f"it counts {said or 'no'} GPUs and lists {len(gpus)}")
    devices = tuple(_gpu(host, ordinal, gpu) for ordinal, gpu in enumerate(gpus))
    driver = log.findtext("driver_version", "").strip()
    return HostReading(devices, (), driver, _COMMAND)


def _gpu(host: str, ordinal: int, gpu: Xml.Element) -> DeviceReading:
    uuid = gpu.findtext("uuid", "").strip()
    if not uuid:
        raise ValueError(f"GPU {ordinal} has no UUID")
    total, used = (_bytes(gpu, f"fb_memory_usage/{what}") for what in ("total", "used"))
    reserved, users = _bytes(gpu, "fb_memory_usage/reserved") or 0, _users(gpu)
    unsaid = {"memory": total is None or used is None, "processes": users is None}
    return DeviceReading(
        identity=DeviceIdentity(
            node=host,
            ordinal=ordinal,
            uuid=uuid,
            mig_uuid=None,
            product=gpu.findtext("product_name", "").strip(),
            memory_bytes=None if total is None else total - reserved,
        ),
        used_bytes=used,
        users=users,
        partitioned=gpu.findtext("mig_mode/current_mig", "").strip() == "Enabled",
        sharing=_sharing(gpu),
        prohibited=gpu.findtext("compute_mode", "").strip() == "Prohibited",
        problems=tuple(f"{uuid}: {what}: {_COMMAND} does not say" for what, isso in unsaid.items() if isso),
    )


def _bytes(gpu: Xml.Element, path: str) -> int | None:
    words = gpu.findtext(path, "").split()
    return int(words[0]) * _MIB if len(words) == 2 and words[0].isdigit() and words[1] == "MiB" else None


def _users(gpu: Xml.Element) -> tuple[Using, ...] | None:
    listed = gpu.find("processes")
    if listed is None or (listed.text or "").strip():  # `N/A`, or why it does not say
        return None
    return tuple(
        Using(int(process.findtext("pid", "")), _bytes(process, "used_memory"))
        for process in listed.findall("process_info")
    )


def _sharing(gpu: Xml.Element) -> HostSharing:
    names = [process.findtext("process_name", "") for process in gpu.findall("processes/process_info")]
    if any(name.endswith("nvidia-cuda-mps-server") for name in names):
        return HostSharing.MPS
    mode = gpu.findtext("gpu_virtualization_mode/virtualization_mode", "").strip()
    if mode == "VGPU":
        return HostSharing.TIME_SLICED
    return HostSharing.PHYSICAL if mode in ("None", "Pass-Through", "Host VGPU") else HostSharing.UNKNOWN
