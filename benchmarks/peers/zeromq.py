"""pyzmq over ipc, PUSH to PULL; the second argument is `copy` or `nocopy`."""

import sys
import tempfile

import numpy as np
import zmq

from benchmarks.work import Job, Maker, Meter, in_processes, job_of_command, remake

_LINGER_MILLISECONDS = 30_000


def _socket(job: Job, kind: int, address: str, *, bind: bool) -> zmq.Socket[bytes]:
    found = zmq.Context().socket(kind)
    found.set_hwm(8 if job.kind == "frames" else 1000)
    found.linger = _LINGER_MILLISECONDS
    if bind:
        found.bind(address)
    else:
        found.connect(address)
    return found


def main() -> None:
    """Runs the pipeline."""
    job, copy = job_of_command(), sys.argv[2] == "copy"
    with tempfile.TemporaryDirectory() as folder:
        first, second = f"ipc://{folder}/first", f"ipc://{folder}/second"

        def produce() -> None:
            maker, out = Maker(job), _socket(job, zmq.PUSH, first, bind=True)
            for index in maker.indices():
                out.send(maker.make(index), copy=copy)
            out.context.destroy()

        def process() -> None:
            source = _socket(job, zmq.PULL, first, bind=False)
            out = _socket(job, zmq.PUSH, second, bind=True)
            for _ in range(job.items):
                message = source.recv(copy=copy)
                data = message if isinstance(message, bytes) else message.buffer
                out.send(remake(np.frombuffer(data, np.uint8)), copy=copy)
            source.context.destroy()
            out.context.destroy()

        def consume() -> None:
            meter, source = Meter(job), _socket(job, zmq.PULL, second, bind=False)
            while not meter.full:
                message = source.recv(copy=copy)
                meter.take(message if isinstance(message, bytes) else message.buffer)
            meter.finish()

        in_processes(produce, process, consume)


if __name__ == "__main__":
    main()
