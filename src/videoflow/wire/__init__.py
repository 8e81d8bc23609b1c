"""Envelope and value encoding: one value domain for every engine."""
