"""Adapters: each wraps one technology behind a contract, and none knows another."""
