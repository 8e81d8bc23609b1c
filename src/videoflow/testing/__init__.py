"""Examiners, generators and helpers for tests of nodes, flows and adapters."""

from videoflow.testing._drive import drive

__all__ = ["drive"]
