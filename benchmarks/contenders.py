"""Who takes part: the floors, our flows, and the peers with the environments that they need.

Used by the workloads. A peer that cannot run here is named with why; none is left out in silence.
"""

import sys

from benchmarks.environments import python as python_of
from benchmarks.environments import why_not
from benchmarks.measuring import Contender


def floor(shape: str, name: str) -> Contender:
    """A shape of the committed floor."""
    return Contender(name, (sys.executable, "-m", "benchmarks.floor"), (shape,), is_floor=True)


def ours(flow: str, name: str) -> Contender:
    """One of our flows."""
    return Contender(name, (sys.executable, "-m", "benchmarks.ours.run"), (flow,))


COPY_FLOOR = floor("hop", "floor: one memcpy per hop")
PLACE_FLOOR = floor("place", "floor, made in place")
FORWARD_FLOOR = floor("forward", "forward floor: one copy in all")
FORWARD_PLACE_FLOOR = floor("forward-place", "forward floor, made in place")
MEMCPY = floor("memcpy", "memcpy alone, both cores")
OURS = ours("pipeline", "videoflow")
OWN = ours("pipeline-own", "videoflow, nodes with arrays of their own")
FAN = ours("fan", "videoflow, four branches and a join")

# Module, arguments, name in the table, and environment; "" is the one that runs the benchmarks.
_PEERS = (
    ("unix_stream", (), "AF_UNIX stream", ""),
    ("standard_queue", (), "multiprocessing.Queue", ""),
    ("zeromq", ("copy",), "pyzmq ipc", "pyzmq"),
    ("zeromq", ("nocopy",), "pyzmq ipc, no copy", "pyzmq"),
    ("iceoryx", (), "iceoryx2", "iceoryx2"),
    ("zenoh_shm", (), "zenoh shm", "zenoh"),
    ("ray_actors", (), "Ray", "ray"),
    ("dora_nodes", (), "dora (drops)", "dora"),
    ("videoflow1", ("batch",), "videoflow 1.0.4 batch", "videoflow1"),
    ("videoflow1", ("realtime",), "videoflow 1.0.4 realtime (drops)", "videoflow1"),
)


def peers() -> list[Contender]:
    """Every peer, those included that cannot run here."""
    return [
        Contender(
            name,
            (python_of(environment) if environment else sys.executable, "-m", f"benchmarks.peers.{module}"),
            arguments,
            why_not=why_not(environment) if environment else "",
        )
        for module, arguments, name, environment in _PEERS
    ]
