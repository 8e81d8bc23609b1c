"""Execution environments: they compose a plan with adapters and start it.

An engine is found by name, through the registry, and imported only then. Here is what its machine can give,
for whoever looks before a run.
"""

from videoflow.engines._gpus import survey_gpus
from videoflow.engines._machine import available_bytes, budget_bytes, processors

__all__ = ["available_bytes", "budget_bytes", "processors", "survey_gpus"]
