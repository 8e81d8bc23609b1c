"""Sinks for values: lines of JSON, lines on the terminal, and values brought back to the caller.

Importing this package loads no heavy library.
"""

from videoflow.nodes.records._collect import Collect
from videoflow.nodes.records._console import Console
from videoflow.nodes.records._jsonl import JsonlSink

__all__ = ["Collect", "Console", "JsonlSink"]
