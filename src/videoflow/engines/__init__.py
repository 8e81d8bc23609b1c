"""Execution environments: they compose a plan with adapters and start it."""
