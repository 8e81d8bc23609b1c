"""The node library."""
