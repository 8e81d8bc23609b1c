"""Defects of runtime stores and of what a flow keeps in one, one or more for each law."""

from tests.contracts.defect import FLOW_MEMORY, STORE_MEMORY, STORE_SQLITE, Defect, changing

record_store = changing(STORE_MEMORY, "backends/memory/_store.py")
file_store = changing(STORE_SQLITE, "adapters/sqlite/_store.py")
flow = changing(FLOW_MEMORY, "backends/runtime/_flow.py")

RUNTIME: dict[str, Defect] = {
    "a prefix in any case": record_store(
        "store.reads", "if key.startswith(prefix)", "if key.lower().startswith(prefix.lower())"
    ),
    "absence is not looked at": record_store(
        "store.all-or-none",
        "if change.expected not in (None, version):",
        "if change.expected not in (None, version, ABSENT):",
    ),
    "a version is the number of keys": record_store(
        "store.versions", "str(self._version))", "str(len(self._values)))"
    ),
    "check and change are two steps": record_store(
        "store.one-wins",
        "            self._version += 1\n",
        "            self._lock.release()\n            threading.Event().wait(0.001)\n"
        "            self._lock.acquire()\n            self._version += 1\n",
        "test_of_many_at_once_one_wins_each_time",
    ),
    "a log is numbered from where it is read": record_store(
        "store.logs", "start=max(0, after) + 1", "start=1"
    ),
    "the caller's buffer is kept": record_store(
        "store.keeps", "Stored(bytes(change.value), ", "Stored(change.value, "
    ),
    "a key may change twice in a file": file_store(
        "store.refuses", "if len({change.key for change in changes}) < len(changes):", "if False:"
    ),
    "a version is used again in a file": file_store(
        "store.versions", "version INTEGER PRIMARY KEY AUTOINCREMENT", "version INTEGER PRIMARY KEY"
    ),
    "a store that drops everything": Defect("store.reads", STORE_MEMORY),
    "a store that answers from a cache": Defect("store.keeps", STORE_MEMORY),
    "an older epoch commits": flow("runtime.epochs", "if head.epoch != epoch:", "if False:"),
    "the source stays behind its state": flow(
        "runtime.one-prefix", "head.source if changes.source is None else changes.source,", "head.source,"
    ),
    "a number is applied twice": flow(
        "runtime.numbered", "if head.number >= number:", "if head.number > number:"
    ),
    "all runs are one": flow("runtime.apart", 'self._root = f"run/{run_id}"', 'self._root = "run"'),
    "an attempt is never withdrawn": flow(
        "runtime.attempts",
        "            changes.append(Change(previous.value.decode(), None))\n",
        "            pass\n",
    ),
    "an abort is lowered": flow("runtime.rises", "if now >= state:", "if now == state:"),
    "the last failure stands": flow(
        "runtime.once",
        "self.store.commit([Change(key, value, ABSENT)], deadline=deadline)",
        "self.store.commit([Change(key, value)], deadline=deadline)",
    ),
    "an end that may be lost is said to stand": flow(
        "runtime.once",
        "            if stored is not None:\n                return stored.value\n",
        "            return value if stored is None else stored.value\n",
    ),
    "what could not be read is empty": flow(
        "runtime.not-known",
        'raise UnobservableState(f"{what} could not be read", cause=f"{reason}: {detail}")',
        "return {}",
    ),
    "every commit leaves a record": flow(
        "runtime.small",
        "        puts.append(Change(key, msgspec",
        '        puts.append(Change(f"{key}/old/{number}", b""))\n        puts.append(Change(key, msgspec',
    ),
}
