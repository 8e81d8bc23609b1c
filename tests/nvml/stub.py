"""Builds the stand-in of NVML, and writes what it is to say. Described in README.md beside it.

Used by tests of everything that reads GPUs: a child process started with `environment` sees, through the real
`nvidia-ml-py`, the host that a `StubHost` describes. It refuses nothing and needs `gcc`.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

GIB = 1 << 30
NOT_LOADED, GPU_IS_LOST, NO_PERMISSION, NOT_SUPPORTED = 9, 15, 4, 3
_SOURCE = Path(__file__).with_name("stub.c")
_NAME = "libnvidia-ml.so.1"


def build(folder: Path, *, missing_symbols: bool = False) -> Path:
    """Compiles the stub into a folder, and returns that folder.

    Args:
        folder: Where the library is written.
        missing_symbols: A library of a driver that lacks most functions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            *(
                "gcc",
                "-std=gnu11",
                "-O1",
                "-Wall",
                "-Wno-format-truncation",
                "-Wno-unused-function",
                "-shared",
                "-fPIC",
            ),
            f"-Wl,-soname,{_NAME}",
            *(["-DMISSING_SYMBOLS"] if missing_symbols else []),
            *("-o", str(folder / _NAME), str(_SOURCE)),
        ],
        check=True,
    )
    return folder


@dataclass
class StubGpu:
    """One GPU as the stub shows it; memory in bytes.

    Attributes:
        number: Its NVML index, from which ids are made.
        name: Product.
        total: Memory.
        used: Of it, by anybody.
        processes: Process number → bytes, or None where the driver does not say; those that compute.
        slices: MIG slices: profile → (bytes, …) in order; None: the card has no MIG mode.
        more: Further keys of this GPU, as README.md names them.
    """

    number: int
    name: str = "NVIDIA H100 80GB HBM3"
    total: int = 80 * GIB
    used: int = 0
    processes: dict[int, int | None] = field(default_factory=dict)
    slices: list[tuple[str, int]] | None = None
    more: dict[str, object] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        """Its UUID."""
        return f"GPU-{self.number:08x}-0000-4000-8000-000000000000"

    def slice_uuid(self, number: int) -> str:
        """Returns the UUID of a slice, by its place in `slices`."""
        return f"MIG-{self.number:08x}-{number:04x}-4000-8000-000000000000"

    def lines(self) -> list[str]:
        """Returns what the stub is told of it."""
        said: dict[str, object] = {
            "uuid": self.uuid,
            "name": self.name,
            "total": self.total,
            "used": self.used,
            "reserved": 0,
            "capability": "9.0",
            "pci": f"00000000:{self.number + 1:02X}:00.0",
            "processes": " ".join(
                str(pid) if used is None else f"{pid}:{used}" for pid, used in self.processes.items()
            ),
        }
        if self.slices is not None:
            said["mig"] = 1 if self.slices else 0
        for number, (profile, size_bytes) in enumerate(self.slices or ()):
            of = f"mig{number}"
            said |= {f"{of}.uuid": self.slice_uuid(number), f"{of}.name": f"{self.name} MIG {profile}"}
            said |= {f"{of}.total": size_bytes, f"{of}.used": 0}
        return [f"gpu{self.number}.{key} {value}" for key, value in {**said, **self.more}.items()]


@dataclass
class StubHost:
    """A host as the stub shows it.

    Attributes:
        path: The fixture file; written by `write`.
        gpus: Its GPUs.
        more: Further keys, such as `error.nvmlDeviceGetUUID` or `delay`.
    """

    path: Path
    gpus: list[StubGpu]
    more: dict[str, object] = field(default_factory=dict)

    def write(self) -> None:
        """Replaces the fixture at once, so that no reader sees half of it."""
        lines = ["driver 570.86.15", f"count {len(self.gpus)}"]
        lines += [f"{key} {value}" for key, value in self.more.items()]
        lines += [line for gpu in self.gpus for line in gpu.lines()]
        draft = self.path.with_suffix(".draft")
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.replace(self.path)

    def environment(self, library: Path, mask: str | None = None) -> dict[str, str]:
        """Returns the environment of a child that sees this host, from this process's own.

        Args:
            library: Folder that holds the stub.
            mask: `CUDA_VISIBLE_DEVICES` of the child; None: not set.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
        found = {**kept, "LD_LIBRARY_PATH": str(library), "NVML_STUB": str(self.path)}
        return found if mask is None else {**found, "CUDA_VISIBLE_DEVICES": mask}


def linked(pairs: Mapping[tuple[int, int], tuple[int, bool]]) -> dict[str, object]:
    """Returns the keys for how near pairs of GPUs are.

    Args:
        pairs: (index, greater index) → (NVML topology level, whether they have peer access).
    """
    said: dict[str, object] = {}
    for (one, other), (level, peer) in pairs.items():
        said |= {f"link{one}-{other}.level": level, f"link{one}-{other}.p2p": 0 if peer else 5}
    return said
