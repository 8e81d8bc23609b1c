"""What Python itself costs, for the workloads that move nothing: `python -m benchmarks.bare JOB WHAT`.

Used beside our flows as their floor: `calls` hands a number through eight functions; `start` brings up three
interpreters with NumPy; `memory` weighs one of them. It refuses nothing.
"""

import subprocess
import sys
import time

from benchmarks.work import Job, job_of_command, write_figures

_NODES = 8


def calls(job: Job) -> None:
    """Eight functions, one after another."""

    def add(number: int) -> int:
        return number + 1

    functions = [add] * _NODES
    began = time.perf_counter()
    for number in range(job.items):
        value = number
        for function in functions:
            value = function(value)
    write_figures(job.out, {"items": job.items, "per_second": job.items / (time.perf_counter() - began)})


def start(job: Job) -> None:
    """Three interpreters, until each has imported NumPy."""
    began = time.monotonic()
    command = [sys.executable, "-c", "import numpy; print(flush=True)"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    seconds = time.monotonic() - began
    for process in processes:
        process.communicate()
    write_figures(job.out, {"items": 0, "start_seconds": seconds})


def memory(job: Job) -> None:
    """One interpreter with NumPy, and nothing of ours."""
    code = (
        "import numpy, pathlib\n"
        "lines = pathlib.Path('/proc/self/smaps_rollup').read_text().splitlines()\n"
        "print(sum(int(line.split()[1]) for line in lines if line.startswith('Private_')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = int(done.stdout) * 1024
    write_figures(job.out, {"items": 0, "early_bytes": found, "late_bytes": found})


def main() -> None:
    """Measures one thing."""
    {"calls": calls, "start": start, "memory": memory}[sys.argv[2]](job_of_command())


if __name__ == "__main__":
    main()
