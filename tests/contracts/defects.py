"""Defects, one or more for each law of a contract: small changes of the product, and bad implementations."""

from dataclasses import dataclass

from tests.promises.planting import Change

BROKER, CHANNEL = "backends/memory/_broker.py", "backends/memory/_channel.py"
SUBSCRIPTION, CELLS = "backends/memory/_subscription.py", "backends/memory/_cells.py"
PUBLISHER, RECEIVER = "backends/memory/_publisher.py", "backends/memory/_receiver.py"
PROVISIONING, FATES = "backends/memory/_provisioning.py", "backends/messaging/_fates.py"
PAYLOADS, POOL = "backends/memory/_payloads.py", "backends/memory/_pool.py"
STORE, FLOW, SQLITE = "backends/memory/_store.py", "backends/runtime/_flow.py", "adapters/sqlite/_store.py"
SHM = "adapters/shm/"

MEMORY, SHARED = "messaging memory", "messaging shm"
POOLED, SLABS = "payload memory", "payload shm"
RECORDS, FILE = "store memory", "store sqlite"
RUNTIME = "flow memory"


@dataclass(frozen=True)
class Defect:
    """What is planted, in what it is tried, and the law that must be found broken.

    Attributes:
        law: Name of the law.
        tried: Which examination notices it.
        change: Of the product; None: `tests.contracts.bad` has an implementation of that name.
        tests: Only these tests are run; none: all.
    """

    law: str
    tried: str
    change: Change | None = None
    tests: tuple[str, ...] = ()


def _of(law: str, tried: str, file: str, old: str, new: str, *tests: str) -> Defect:
    return Defect(law, tried, Change(file, old, new), tests)


MESSAGING = {
    "what exists is taken on trust": _of(
        "messaging.read-back",
        MEMORY,
        BROKER,
        'misses += _differences(found.spec, spec, spec.profile, mutable=("bounds",))',
        "pass",
    ),
    "what is to persist is made in memory": _of(
        "messaging.unclaimed", MEMORY, BROKER, "if spec.persistent:", "if False:"
    ),
    "what nobody made cannot be observed": _of(
        "messaging.not-empty",
        MEMORY,
        PROVISIONING,
        "return unknown(UnknownReason.MISSING, now, str(error))",
        "raise",
    ),
    "labels are matched by prefix": _of(
        "messaging.owned",
        MEMORY,
        BROKER,
        "if (labels.flow_id, labels.run_id) != (owned.flow_id, owned.run_id):",
        "if not labels.run_id.startswith(owned.run_id):",
    ),
    "the first reader frees an item for all": _of(
        "messaging.kept-for-all",
        MEMORY,
        CHANNEL,
        "if entry.blocking or not entry.data:",
        "if not entry.data:",
    ),
    "an accepted item is not kept": _of(
        "messaging.true-outcome",
        MEMORY,
        CHANNEL,
        "            reader.append(entry)\n",
        "            if origin.ordinal:\n                reader.append(entry)\n",
    ),
    "one more than the bound": _of(
        "messaging.room", MEMORY, CHANNEL, "used + count > bounds.items", "used + count > bounds.items + 1"
    ),
    "what is late is sent": _of(
        "messaging.deadline",
        MEMORY,
        PUBLISHER,
        "if waiting[0].deadline < now:",
        "if waiting[0].deadline < now - 60:",
    ),
    "half of a statement is enough": _of(
        "messaging.whole", MEMORY, CHANNEL, "if used and (", "if used >= bounds.items and ("
    ),
    "skips wait for room": _of(
        "messaging.no-room-needed",
        MEMORY,
        CHANNEL,
        "if envelope is not None and envelope.kind is Kind.DATA:",
        "if envelope is not None:",
    ),
    "a repetition is taken": _of(
        "messaging.first-wins",
        MEMORY,
        CHANNEL,
        "elif self.announced.covers(envelope.origin, envelope.path):",
        "elif envelope.path and self.announced.covers(envelope.origin, envelope.path):",
    ),
    "an older writer is heard": _of(
        "messaging.writers-fenced",
        MEMORY,
        CHANNEL,
        "return _rejected(statement, RejectReason.STALE)",
        "epoch = slot.epoch",
    ),
    "the last end stands": _of(
        "messaging.ends", MEMORY, CHANNEL, "if slot.end is None:", "if slot.end is None or kind is Kind.END:"
    ),
    "what is leased stays in the queue": _of(
        "messaging.one-holder",
        MEMORY,
        SUBSCRIPTION,
        "            self._queue.popitem(last=False)\n",
        "            self._queue.move_to_end(cell.entry.order)\n",
        "test_two_replicas_never_hold_one_message",
    ),
    "one more than the credit": _of(
        "messaging.credit",
        MEMORY,
        SUBSCRIPTION,
        "self._held_items < spec.credit.items",
        "self._held_items <= spec.credit.items",
    ),
    "one further than the spread": _of(
        "messaging.spread",
        MEMORY,
        SUBSCRIPTION,
        "self._dispatched - window[0].dispatch >= spread",
        "self._dispatched - window[0].dispatch > spread",
    ),
    "a death is not counted": _of(
        "messaging.comes-back",
        MEMORY,
        SUBSCRIPTION,
        "self.give_back(cell, charged=True)",
        "self.give_back(cell, charged=False)",
    ),
    "what is handed back is counted": _of(
        "messaging.uncharged",
        MEMORY,
        RECEIVER,
        "subscription.give_back(cell, charged=False)",
        "subscription.give_back(cell, charged=True)",
    ),
    "an old token settles": _of(
        "messaging.stale-tokens",
        MEMORY,
        RECEIVER,
        "return subscription, cell if cell is not None and cell.generation == token.generation else None",
        "return subscription, cell",
    ),
    "each settlement has its own receipt": _of(
        "messaging.settled-once",
        MEMORY,
        RECEIVER,
        "SettleConfirmed(token, token.message_id)",
        'SettleConfirmed(token, f"{token.message_id}-{len(subscription.cells)}")',
    ),
    "the live tokens of a call are settled alone": _of(
        "messaging.settled-whole",
        MEMORY,
        RECEIVER,
        "if any(isinstance(outcome, SettleStale) for _, _, outcome in judged):",
        "if False:",
    ),
    "a retry comes at once": _of(
        "messaging.retry",
        MEMORY,
        RECEIVER,
        "due_at = now + settlement.delay_seconds if",
        "due_at = now if",
    ),
    "nobody is told of an end": _of(
        "messaging.wakes",
        MEMORY,
        RECEIVER,
        "owned.holds_for(subscription) or subscription.version != self.seen)",
        "owned.holds_for(subscription))",
    ),
    "what is held is not given again": _of(
        "messaging.ordered",
        MEMORY,
        RECEIVER,
        "return held + subscription.take(self.owner, now, limit - len(held))",
        "return subscription.take(self.owner, now, limit)",
    ),
    "an owner that was replaced reads on": _of(
        "messaging.owners-fenced",
        MEMORY,
        RECEIVER,
        "raise StaleAuthority(f\"{subscription.id} is owned by {subscription.owner or 'nobody'}\")",
        "return []",
    ),
    "a tombstone counts as settled by its reader": _of(
        "messaging.floors",
        MEMORY,
        SUBSCRIPTION,
        "return self.settled if self.live is None else self._taken",
        "return self.settled",
    ),
    "the newest is evicted": _of(
        "messaging.newest",
        MEMORY,
        SUBSCRIPTION,
        "self._bury(waiting.popleft(), Cause.DROPPED)",
        "self._bury(waiting.pop(), Cause.DROPPED)",
    ),
    "a tombstone does not say what it stands for": _of(
        "messaging.tombstones",
        MEMORY,
        CELLS,
        "intervals=() if self.ordinals is None else self.ordinals.intervals(),",
        "intervals=(),",
    ),
    "a live reader takes room": _of(
        "messaging.never-blocks",
        MEMORY,
        SUBSCRIPTION,
        "            entry.blocking += 1\n        else:\n",
        "            entry.blocking += 1\n        else:\n            entry.blocking += 1\n",
    ),
    "what is too old is handed out": _of(
        "messaging.age",
        MEMORY,
        SUBSCRIPTION,
        "cell.entry.arrived_at > live.max_age_seconds",
        "cell.entry.arrived_at > 10 * live.max_age_seconds",
    ),
    "what is settled is not in the ledger": _of(
        "messaging.ledger",
        MEMORY,
        SUBSCRIPTION,
        "            _close(self.settled, cell, fate)\n",
        "",
    ),
    "bytes are never given back": _of(
        "messaging.bounded",
        MEMORY,
        CHANNEL,
        "self._used_bytes[entry.envelope.partition] -= entry.envelope.size_bytes",
        "self._used_bytes[entry.envelope.partition] -= 0",
    ),
    "silence is taken for the end": _of(
        "messaging.completion",
        MEMORY,
        SUBSCRIPTION,
        "return ended and len(self.cells) == len(self.leased), ended and not self.cells",
        "return ended, ended and not self.cells",
    ),
    "the log holds for one reader": _of(
        "messaging.log-holds",
        MEMORY,
        CHANNEL,
        "count = len(self._readers[envelope.partition])",
        "count = 1",
    ),
    "an intent ends with its first channel": _of(
        "messaging.intents",
        MEMORY,
        PUBLISHER,
        "return not self._missing[envelope.publication_id]",
        "return True",
    ),
    "a broadcast leaves tombstones": _of(
        "messaging.broadcast",
        MEMORY,
        SUBSCRIPTION,
        "if self.id.slot is not None:  # a broadcast leaves no tombstone",
        "if False:",
    ),
    "a broadcast takes room": _of(
        "messaging.broadcast-unhindered",
        MEMORY,
        SUBSCRIPTION,
        "            entry.blocking += 1\n        else:\n",
        "            entry.blocking += 1\n        else:\n            entry.blocking += 1\n",
    ),
    "a notice announces": _of(
        "messaging.elsewhere",
        MEMORY,
        FATES,
        "if kind in (Kind.SKIP, Kind.IDLE) and not envelope.elsewhere:",
        "if kind in (Kind.SKIP, Kind.IDLE):",
    ),
    "each partition has its own window": _of(
        "messaging.one-window",
        MEMORY,
        SUBSCRIPTION,
        "min(s.oldest(cell) for s in self.group)",
        "self.oldest(cell)",
    ),
    "a dead replica is not counted in shared memory": _of(
        "messaging.comes-back",
        SHARED,
        f"{SHM}_given.py",
        "int(word >> 16 == sequence and word & 255 == RECEIVED)",
        "0",
        "test_what_a_dead_replica_held_comes_first_and_is_counted",
    ),
    "a partition sees one further in shared memory": _of(
        "messaging.one-window",
        SHARED,
        f"{SHM}_gated.py",
        "self._stamp(told) - oldest < self._spread",
        "self._stamp(told) - oldest <= self._spread",
        "test_no_partition_runs_ahead_of_another_by_the_spread",
    ),
    "an intent ends with its first channel in shared memory": _of(
        "messaging.intents",
        SHARED,
        f"{SHM}_statements.py",
        "return not self._missing[envelope.publication_id]",
        "return True",
        "test_an_intent_ends_when_its_publication_is_in_every_layout",
    ),
    "shared memory is to persist": _of(
        "messaging.unclaimed",
        SHARED,
        f"{SHM}_refusals.py",
        "if spec.persistent:",
        "if False:",
        "test_a_guarantee_that_is_not_claimed_is_refused_and_nothing_is_made",
    ),
    "one more than the credit in shared memory": _of(
        "messaging.credit",
        SHARED,
        f"{SHM}_inlet.py",
        "return self._items < credit.items and",
        "return self._items <= credit.items and",
        "test_credit_counts_what_is_leased_and_asking_again_costs_none",
    ),
    "an older writer is heard in shared memory": _of(
        "messaging.writers-fenced",
        SHARED,
        f"{SHM}_outlet.py",
        "if first.writer.epoch < epoch:",
        "if False:",
        "test_an_older_epoch_of_a_slot_is_refused",
    ),
    "statements are split over partitions in shared memory": _of(
        "messaging.whole",
        SHARED,
        f"{SHM}_joint.py",
        "            prepared.append((outlet, found))\n",
        "            outlet.take(found)\n",
        "test_a_statement_without_room_in_one_partition_is_in_none",
    ),
    "a backend that drops everything": Defect("messaging.true-outcome", MEMORY),
    "a backend that says accepted before it knows": Defect("messaging.room", MEMORY),
}

PAYLOAD = {
    "a reader may write in shared memory": _of(
        "payload.intact",
        SLABS,
        f"{SHM}_payloads.py",
        "memoryview(self._process.memory(slot[0])).toreadonly()",
        "memoryview(self._process.memory(slot[0]))",
        "test_what_is_read_cannot_be_written",
    ),
    "what is pending is listed": _of(
        "payload.sealed",
        POOLED,
        PAYLOADS,
        "known(tuple(o.ref for o in self._pool.objects.values() if o.data is not None), now)",
        "known(tuple(o.ref for o in self._pool.objects.values()), now)",
    ),
    "a full store takes one more": _of(
        "payload.backpressure",
        POOLED,
        POOL,
        "if size_bytes > self.free_for(owner):\n            return None",
        "if 0 > self.free_for(owner):\n            return None",
    ),
    "what is to last is taken by memory": _of(
        "payload.refused", POOLED, PAYLOADS, "if contract.durable_required:", "if False:"
    ),
    "reserved room is anybody's": _of(
        "payload.reserved", POOLED, POOL, "            if other != owner\n", "            if False\n"
    ),
    "a pin keeps nothing": _of(
        "payload.pinned",
        POOLED,
        POOL,
        "if item.holds > 0 or item.claims:",
        'if item.holds > 0 or [c for c in item.claims if not c.startswith("pin/")]:',
    ),
    "one release ends all claims": _of(
        "payload.claims",
        POOLED,
        PAYLOADS,
        "        item.claims.pop(claim, None)\n        remaining",
        "        item.claims.clear()\n        remaining",
    ),
    "an old reference releases": _of(
        "payload.generations", POOLED, PAYLOADS, "if item.ref.generation != ref.generation:", "if False:"
    ),
    "a reader's claim needs no receipt": _of(
        "payload.receipts", POOLED, PAYLOADS, "if completion_receipt is None and", "if False and"
    ),
    "a ledger speaks for all families": _of(
        "payload.reconciled",
        POOLED,
        PAYLOADS,
        "if family in ledger and claim not in ledger[family] and not theirs:",
        "if claim not in ledger.get(family, ()) and not theirs:",
    ),
    "what is gone is asked for again": _of(
        "payload.lost",
        POOLED,
        PAYLOADS,
        'return Missing(f"there is no object {ref.key}")',
        'return TransientFailure(f"there is no object {ref.key}")',
    ),
    "all room is said to be free": _of(
        "payload.known",
        POOLED,
        PAYLOADS,
        "free = self._pool.free_for(self._owner)",
        "free = self._pool.budget_bytes",
    ),
    "a claim is renewed into being in shared memory": _of(
        "payload.claims",
        SLABS,
        f"{SHM}_payloads.py",
        "if name in self._claims.of(slot_of(ref))",
        "if name",
        "test_a_claim_that_nobody_made_is_not_renewed",
    ),
    "a payload store that drops everything": Defect("payload.intact", POOLED),
}

RUNTIMES = {
    "a prefix in any case": _of(
        "store.reads",
        RECORDS,
        STORE,
        "if key.startswith(prefix)",
        "if key.lower().startswith(prefix.lower())",
    ),
    "absence is not looked at": _of(
        "store.all-or-none",
        RECORDS,
        STORE,
        "if change.expected not in (None, version):",
        "if change.expected not in (None, version, ABSENT):",
    ),
    "a version is the number of keys": _of(
        "store.versions", RECORDS, STORE, "str(self._version))", "str(len(self._values)))"
    ),
    "check and change are two steps": _of(
        "store.one-wins",
        RECORDS,
        STORE,
        "            self._version += 1\n",
        "            self._lock.release()\n            threading.Event().wait(0.001)\n"
        "            self._lock.acquire()\n            self._version += 1\n",
        "test_of_many_at_once_one_wins_each_time",
    ),
    "a log is numbered from where it is read": _of(
        "store.logs", RECORDS, STORE, "start=max(0, after) + 1", "start=1"
    ),
    "the caller's buffer is kept": _of(
        "store.keeps", RECORDS, STORE, "Stored(bytes(change.value), ", "Stored(change.value, "
    ),
    "a key may change twice in a file": _of(
        "store.refuses",
        FILE,
        SQLITE,
        "if len({change.key for change in changes}) < len(changes):",
        "if False:",
    ),
    "a version is used again in a file": _of(
        "store.versions",
        FILE,
        SQLITE,
        "version INTEGER PRIMARY KEY AUTOINCREMENT",
        "version INTEGER PRIMARY KEY",
    ),
    "a store that drops everything": Defect("store.reads", RECORDS),
    "a store that answers from a cache": Defect("store.keeps", RECORDS),
    "an older epoch commits": _of("runtime.epochs", RUNTIME, FLOW, "if head.epoch != epoch:", "if False:"),
    "the source stays behind its state": _of(
        "runtime.one-prefix",
        RUNTIME,
        FLOW,
        "head.source if changes.source is None else changes.source,",
        "head.source,",
    ),
    "a number is applied twice": _of(
        "runtime.numbered", RUNTIME, FLOW, "if head.number >= number:", "if head.number > number:"
    ),
    "all runs are one": _of(
        "runtime.apart", RUNTIME, FLOW, 'self._root = f"run/{run_id}"', 'self._root = "run"'
    ),
    "an attempt is never withdrawn": _of(
        "runtime.attempts",
        RUNTIME,
        FLOW,
        "            changes.append(Change(previous.value.decode(), None))\n",
        "            pass\n",
    ),
    "an abort is lowered": _of("runtime.rises", RUNTIME, FLOW, "if now >= state:", "if now == state:"),
    "the last failure stands": _of(
        "runtime.once",
        RUNTIME,
        FLOW,
        "self.store.commit([Change(key, value, ABSENT)], deadline=deadline)",
        "self.store.commit([Change(key, value)], deadline=deadline)",
    ),
    "an end that may be lost is said to stand": _of(
        "runtime.once",
        RUNTIME,
        FLOW,
        "            if stored is not None:\n                return stored.value\n",
        "            return value if stored is None else stored.value\n",
    ),
    "what could not be read is empty": _of(
        "runtime.not-known",
        RUNTIME,
        FLOW,
        'raise UnobservableState(f"{what} could not be read", cause=f"{reason}: {detail}")',
        "return {}",
    ),
    "every commit leaves a record": _of(
        "runtime.small",
        RUNTIME,
        FLOW,
        "        puts.append(Change(key, msgspec",
        '        puts.append(Change(f"{key}/old/{number}", b""))\n        puts.append(Change(key, msgspec',
    ),
}

DEFECTS: dict[str, Defect] = {**MESSAGING, **PAYLOAD, **RUNTIMES}

CHEAP = (
    "an accepted item is not kept",
    "an old token settles",
    "a notice announces",
    "each partition has its own window",
    "one release ends all claims",
    "the last failure stands",
    "a backend that drops everything",
    "a payload store that drops everything",
    "a store that answers from a cache",
)
