"""The published videoflow 1.0.4, with a NATS and a Redis server of its own; the mode comes second."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.peers.videoflow1_nodes import End, First, Middle
from benchmarks.work import job_of_command
from videoflow.core import Flow
from videoflow.engines.local import LocalProcessEngine

_START_SECONDS = 10.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def _server(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 0.1).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Runs the pipeline."""
    job, mode = job_of_command(), sys.argv[2]
    near = Path(sys.executable).parent
    nats = shutil.which("nats-server", path=f"{near}:/usr/sbin:/usr/bin") or "nats-server"
    redis = shutil.which("redis-server", path=f"{near}:/usr/sbin:/usr/bin") or "redis-server"
    nats_port, redis_port = _free_port(), _free_port()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        at = ["-a", "127.0.0.1", "-p", str(nats_port)]
        servers.enter_context(_server([nats, "-js", *at, "-sd", folder], nats_port))
        own = ["--port", str(redis_port), "--bind", "127.0.0.1", "--dir", folder]
        keeping = ["--save", "", "--maxmemory-policy", "noeviction", "--appendonly", "yes"]
        servers.enter_context(_server([redis, *own, *keeping], redis_port))
        text = job.to_json()
        end = End(text, name="end")(Middle(name="middle")(First(text, name="first")))
        flow = Flow([end], flow_type=mode)
        flow.run(
            LocalProcessEngine(
                nats_url=f"nats://127.0.0.1:{nats_port}", blob_redis_url=f"redis://127.0.0.1:{redis_port}/0"
            )
        )
        flow.join()


if __name__ == "__main__":
    main()
