"""Examiners, generators and helpers for tests of nodes, flows and adapters."""
