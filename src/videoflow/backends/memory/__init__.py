"""The references of the contracts, in one process: executable specification, and what threads run on.

Used by the threads engine and by every examiner as the arbiter. They guarantee nothing beyond the
process, and say so in their capabilities.
"""

from videoflow.backends.memory._broker import MemoryBroker
from videoflow.backends.memory._payloads import MemoryPayloads
from videoflow.backends.memory._pool import MemoryPool
from videoflow.backends.memory._provisioning import MemoryMessaging
from videoflow.backends.memory._store import MemoryRuntimeStore

__all__ = ["MemoryBroker", "MemoryMessaging", "MemoryPayloads", "MemoryPool", "MemoryRuntimeStore"]
