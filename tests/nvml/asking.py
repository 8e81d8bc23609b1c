"""Reads the host once for each line of its input, and prints what was read; run as a child of a test."""

import sys

import msgspec

from videoflow.adapters.nvml import read_host
from videoflow.clock import RealClock

for line in sys.stdin:
    seconds = float(line)
    seen = read_host("here", RealClock(), links=True, answer_seconds=seconds)
    sys.stdout.write(f"{type(seen).__name__} {msgspec.json.encode(seen).decode()}\n")
    sys.stdout.flush()
