"""A stream socket of the kernel between each two processes."""

import socket

import numpy as np

from benchmarks.work import Maker, Meter, in_processes, job_of_command, remake

_BUFFER_BYTES = 1 << 18


def main() -> None:
    """Runs the pipeline."""
    job = job_of_command()
    first, second = socket.socketpair(), socket.socketpair()

    def produce() -> None:
        maker, item = Maker(job), np.empty(job.item_bytes, np.uint8)
        with first[0].makefile("wb", _BUFFER_BYTES) as out:
            for index in maker.indices():
                out.write(maker.make(index, item).data)

    def process() -> None:
        first[0].close()
        second[1].close()
        item, new = np.empty(job.item_bytes, np.uint8), np.empty(job.item_bytes, np.uint8)
        with first[1].makefile("rb", _BUFFER_BYTES) as source, second[0].makefile("wb", _BUFFER_BYTES) as out:
            for _ in range(job.items):
                source.readinto(item.data)
                out.write(remake(item, new).data)

    def consume() -> None:
        second[0].close()
        meter, item = Meter(job), np.empty(job.item_bytes, np.uint8)
        with second[1].makefile("rb", _BUFFER_BYTES) as source:
            while not meter.full and source.readinto(item.data):
                meter.take(item)
        meter.finish()

    in_processes(produce, process, consume)


if __name__ == "__main__":
    main()
