"""Run records in one SQLite file of the run's folder.

Used by the local engine and its workers, each of which opens the same file. It refuses folders where
SQLite cannot share a write-ahead log between processes (most network file systems).
"""

from videoflow.adapters.sqlite._store import CAPABILITIES, SqliteStore

__all__ = ["CAPABILITIES", "SqliteStore"]
