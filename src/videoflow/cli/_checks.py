"""What `videoflow doctor` looks at, one check each: it looks, and says what it found and what to do.

Libraries are imported in processes of their own, so that one that crashes at import is a finding and not the
end of the command. It refuses to change anything on the machine.
"""

import functools
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

import msgspec

from videoflow.backends.outcomes import Known
from videoflow.cli._console import home_short
from videoflow.cli._container import Limits, read_limits
from videoflow.cli._units import show_bytes
from videoflow.clock import RealClock
from videoflow.engines import available_bytes, budget_bytes, processors, survey_gpus
from videoflow.engines.run_folder import runs_folder
from videoflow.errors import EnvironmentFault

_IMPORT_SECONDS = 60
_LEAST_PYTHON = (3, 11)
_LEAST_MEMORY = 1 << 30
_MODEL = ("videoflow.nodes.vision", "models", "person-ssd.onnx")

EXTRAS = {
    "video": {"av": "av", "cv2": "opencv-python-headless", "scipy": "scipy"},
    "onnx": {"onnxruntime": "onnxruntime"},
    "notebook": {"cloudpickle": "cloudpickle"},
    "nats": {"nats": "nats-py"},
    "redis": {"redis": "redis"},
    "s3": {"obstore": "obstore"},
    "kubernetes": {"lightkube": "lightkube"},
    "gpu": {"pynvml": "nvidia-ml-py"},
    "ui": {"starlette": "starlette", "uvicorn": "uvicorn"},
}
"""Extra → module → distribution."""


class Finding(StrEnum):
    """How a check ended; `ABSENT` is something optional that is not there."""

    GOOD = "good"
    ABSENT = "absent"
    BAD = "bad"


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at: what was found, and what to do where it is not good."""

    subject: str
    finding: Finding
    found: str
    remedy: str = ""


def every_check() -> Iterator[Check]:
    """Yields every check, most basic first."""
    yield _videoflow()
    yield _python()
    yield _platform()
    yield _memory(read_limits())
    yield _processors(read_limits())
    yield _shared_memory()
    yield _state_folder()
    for extra, modules in EXTRAS.items():
        yield _extra(extra, modules)
    yield _gpus()
    yield _encoder()
    yield _model()


def _videoflow() -> Check:
    try:
        return Check("videoflow", Finding.GOOD, version("videoflow"))
    except PackageNotFoundError:
        return Check(
            "videoflow", Finding.BAD, "not installed, so that no engine is found", "pip install videoflow"
        )


def _python() -> Check:
    good = sys.version_info >= _LEAST_PYTHON
    remedy = "" if good else "use Python 3.11 or newer"
    found = f"{platform.python_version()}, {sys.executable}"
    return Check("python", Finding.GOOD if good else Finding.BAD, found, remedy)


def _platform() -> Check:
    found = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if sys.platform == "linux":
        return Check("platform", Finding.GOOD, found)
    return Check("platform", Finding.ABSENT, f"{found}: no engine `local`", "run with --engine threads")


def _memory(limits: Limits) -> Check:
    observed = available_bytes(RealClock().monotonic())
    if not isinstance(observed, Known):
        return Check("memory", Finding.ABSENT, "it cannot be read here", "give --memory-bytes to each run")
    container = f" (container: {show_bytes(limits.memory_bytes)})" if limits.memory_bytes is not None else ""
    budget = budget_bytes(None, observed)
    found = f"{show_bytes(observed.value)} available{container}; frames may take {show_bytes(budget)}"
    low = observed.value < _LEAST_MEMORY
    remedy = "end other programs, or raise the container's limit" if low else ""
    return Check("memory", Finding.BAD if low else Finding.GOOD, found, remedy)


def _processors(limits: Limits) -> Check:
    share = f", of which the container may use {limits.processors:g}" if limits.processors is not None else ""
    return Check("processors", Finding.GOOD, f"{processors()}{share}")


def _shared_memory() -> Check:
    if not hasattr(os, "memfd_create"):
        return Check("shared memory", Finding.ABSENT, "no memfd here", "run with --engine threads")
    try:
        descriptor = os.memfd_create("videoflow-doctor")
        os.ftruncate(descriptor, 1 << 20)
        os.close(descriptor)
    except OSError as error:
        return Check(
            "shared memory",
            Finding.BAD,
            f"memfd: {error.strerror}",
            "allow memfd_create in the container's seccomp profile, or run with --engine threads",
        )
    shm = Path("/dev/shm")
    size = os.statvfs(shm) if shm.is_dir() else None
    mounted = f"; /dev/shm of {show_bytes(size.f_blocks * size.f_frsize)} is not needed" if size else ""
    return Check("shared memory", Finding.GOOD, f"memfd works{mounted}")


def _state_folder() -> Check:
    folder = runs_folder()
    above = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as error:
        return Check(
            "run folders",
            Finding.BAD,
            f"{folder}: {error.strerror} in {above}",
            "let VIDEOFLOW_HOME name a folder that can be written, or give --run-dir",
        )
    free = os.statvfs(above)
    return Check(
        "run folders", Finding.GOOD, f"{home_short(folder)}, {show_bytes(free.f_bavail * free.f_frsize)} free"
    )


def _extra(extra: str, modules: dict[str, str]) -> Check:
    found: list[str] = []
    for module, distribution in modules.items():
        try:
            installed = version(distribution)
        except PackageNotFoundError:
            return Check(
                f"[{extra}]",
                Finding.ABSENT,
                f"{distribution} is not installed",
                f"pip install 'videoflow[{extra}]'",
            )
        failure = _python_failure(f"import {module}")
        if failure:
            return Check(
                f"[{extra}]",
                Finding.BAD,
                f"{distribution} {installed} cannot be imported: {failure}",
                f"pip install --force-reinstall {distribution}",
            )
        found.append(f"{distribution} {installed}")
    return Check(f"[{extra}]", Finding.GOOD, ", ".join(found))


@functools.cache
def _python_failure(statement: str) -> str:
    """Returns the last line that a statement leaves in a fresh interpreter, or "" where it runs."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", statement],
            capture_output=True,
            text=True,
            timeout=_IMPORT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {_IMPORT_SECONDS} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"


def _gpus() -> Check:
    try:
        seen = survey_gpus(RealClock())
    except EnvironmentFault as error:
        return Check("GPUs", Finding.BAD, error.message, error.remedy)
    if not isinstance(seen, Known):
        return Check("GPUs", Finding.ABSENT, f"none can be seen: {seen.detail}", "see `videoflow gpus`")
    survey = seen.value
    given = sum(device.given for device in survey.devices)
    found = f"{given} may be given of {len(survey.devices)}, driver {survey.driver}, read by {survey.source}"
    if survey.unknown:
        return Check("GPUs", Finding.BAD, f"{found}; not all could be read", "see `videoflow gpus`")
    return Check("GPUs", Finding.GOOD, found)


def _encoder() -> Check:
    if _python_failure("import av"):
        return Check("H.264", Finding.ABSENT, "no PyAV, so no video is read or written", "see [video] above")
    missing = [
        f"{codec} ({what})"
        for codec, mode, what in (("libx264", "w", "writing"), ("h264", "r", "reading"))
        if _python_failure(f"import av; av.codec.Codec({codec!r}, {mode!r})")
    ]
    if missing:
        return Check(
            "H.264",
            Finding.BAD,
            f"this PyAV lacks {', '.join(missing)}",
            "install the wheel of av from the package index",
        )
    return Check("H.264", Finding.GOOD, "read by h264, written by libx264")


def _model() -> Check:
    package, *names = _MODEL
    model = files(package).joinpath(*names)
    try:
        data = model.read_bytes()
        noted = files(package).joinpath(*names[:-1], f"{names[-1]}.sha256").read_text(encoding="utf-8")
    except OSError as error:
        return Check("model", Finding.BAD, f"{names[-1]}: {error.strerror}", "install videoflow again")
    digest = hashlib.sha256(data).hexdigest()
    if digest != noted.split()[0]:
        return Check(
            "model",
            Finding.BAD,
            f"{names[-1]} has sha256 {digest[:12]}…, not {noted[:12]}…",
            "install videoflow again",
        )
    return Check(
        "model", Finding.GOOD, f"{names[-1]}, {show_bytes(len(data))}, sha256 {digest[:12]}… as shipped"
    )
