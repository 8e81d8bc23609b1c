"""The laws of the runtime store and of the flow runtime, over memory and SQLite."""

from tests.contracts.store_subjects import MemoryStoreSubject, SqliteStoreSubject
from videoflow.testing.examiners import FlowRuntimeExaminer, RuntimeStoreExaminer


class TestMemoryStore(RuntimeStoreExaminer):
    def make_subject(self) -> MemoryStoreSubject:
        return MemoryStoreSubject()


class TestSqliteStore(RuntimeStoreExaminer):
    def make_subject(self) -> SqliteStoreSubject:
        return SqliteStoreSubject()


class TestFlowRuntimeOverMemory(FlowRuntimeExaminer):
    def make_subject(self) -> MemoryStoreSubject:
        return MemoryStoreSubject()


class TestFlowRuntimeOverSqlite(FlowRuntimeExaminer):
    def make_subject(self) -> SqliteStoreSubject:
        return SqliteStoreSubject()
