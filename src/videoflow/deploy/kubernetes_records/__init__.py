"""Durable records of claims in a cluster: reads that answer or raise, and journals in config maps.

Used by the allocators of a cluster, which bring the records. It refuses to take silence for an answer: a
write that nobody answered is read back before it is tried again.
"""

from videoflow.deploy.kubernetes_records._journal import RECORD, ConfigMapJournal, JournalRecord, config_map
from videoflow.deploy.kubernetes_records._reads import MOST_TRIES, Reads, Unanswered, version_of

__all__ = [
    "MOST_TRIES",
    "RECORD",
    "ConfigMapJournal",
    "JournalRecord",
    "Reads",
    "Unanswered",
    "config_map",
    "version_of",
]
