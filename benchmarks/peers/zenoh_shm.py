"""Zenoh over a socket of the kernel, with its shared memory, publishers that block, and bounded channels."""

import json
import tempfile
import time
from typing import Any

import numpy as np
import zenoh
from zenoh import shm

from benchmarks.work import Array, Job, Maker, Meter, in_processes, job_of_command, remake

_POLL_SECONDS = 0.01


def _session(listen: list[str], connect: list[str]) -> Any:
    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("listen/endpoints", json.dumps(listen))
    config.insert_json5("connect/endpoints", json.dumps(connect))
    config.insert_json5("transport/shared_memory/enabled", "true")
    return zenoh.open(config)


class Out:
    """The writing side of a hop."""

    def __init__(self, job: Job, session: Any, key: str) -> None:
        self._publisher = session.declare_publisher(
            key,
            congestion_control=zenoh.CongestionControl.BLOCK,
            reliability=zenoh.Reliability.RELIABLE,
        )
        self._provider = shm.ShmProvider.default_backend(max(16 << 20, 8 * job.item_bytes))
        self._policy = shm.BlockOn(shm.GarbageCollect())
        self.own = bytearray(job.item_bytes)
        self.item: Array = np.frombuffer(self.own, np.uint8)
        while not self._publisher.matching_status.matching:
            time.sleep(_POLL_SECONDS)

    def send(self) -> None:
        """Sends what stands in `item`."""
        buffer = self._provider.alloc(len(self.own), policy=self._policy)
        buffer[:] = self.own
        self._publisher.put(buffer)


def main() -> None:
    """Runs the pipeline."""
    job = job_of_command()
    bound = 4 if job.kind == "frames" else 256
    with tempfile.TemporaryDirectory() as folder:
        first, second = f"unixsock-stream/{folder}/first", f"unixsock-stream/{folder}/second"

        def produce() -> None:
            with _session([], [first]) as session:
                maker, out = Maker(job), Out(job, session, "bench/first")
                for index in maker.indices():
                    maker.make(index, out.item)
                    out.send()
                time.sleep(1)

        def process() -> None:
            with _session([first], [second]) as session:
                source = session.declare_subscriber("bench/first", zenoh.handlers.FifoChannel(bound))
                out = Out(job, session, "bench/second")
                for _ in range(job.items):
                    item = np.frombuffer(source.recv().payload.to_bytes(), np.uint8)
                    remake(item, out.item)
                    out.send()
                time.sleep(1)

        def consume() -> None:
            with _session([second], []) as session:
                meter = Meter(job)
                source = session.declare_subscriber("bench/second", zenoh.handlers.FifoChannel(bound))
                while not meter.full:
                    meter.take(source.recv().payload.to_bytes())
                meter.finish()

        in_processes(produce, process, consume)


if __name__ == "__main__":
    main()
