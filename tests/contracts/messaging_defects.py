"""Defects of messaging, in memory and in shared memory, one or more for each law."""

from tests.contracts.defect import MESSAGING_MEMORY, MESSAGING_SHM, Defect, changing

broker = changing(MESSAGING_MEMORY, "backends/memory/_broker.py")
provisioning = changing(MESSAGING_MEMORY, "backends/memory/_provisioning.py")
channel = changing(MESSAGING_MEMORY, "backends/memory/_channel.py")
publisher = changing(MESSAGING_MEMORY, "backends/memory/_publisher.py")
subscription = changing(MESSAGING_MEMORY, "backends/memory/_subscription.py")
receiver = changing(MESSAGING_MEMORY, "backends/memory/_receiver.py")
cells = changing(MESSAGING_MEMORY, "backends/memory/_cells.py")
refusals = changing(MESSAGING_MEMORY, "backends/messaging/_refusals.py")
fates = changing(MESSAGING_MEMORY, "backends/messaging/_fates.py")
shared_given = changing(MESSAGING_SHM, "adapters/shm/_given.py")
shared_gated = changing(MESSAGING_SHM, "adapters/shm/_gated.py")
shared_statements = changing(MESSAGING_SHM, "adapters/shm/_statements.py")
shared_refusals = changing(MESSAGING_SHM, "backends/messaging/_refusals.py")
shared_leases = changing(MESSAGING_SHM, "adapters/shm/_leases.py")
shared_outlet = changing(MESSAGING_SHM, "adapters/shm/_outlet.py")
shared_joint = changing(MESSAGING_SHM, "adapters/shm/_joint.py")

MESSAGING: dict[str, Defect] = {
    "what exists is taken on trust": broker(
        "messaging.read-back",
        'misses += _differences(found.spec, spec, spec.profile, mutable=("bounds",))',
        "pass",
    ),
    "what is to persist is made in memory": refusals(
        "messaging.unclaimed", "if spec.persistent:", "if False:"
    ),
    "what nobody made cannot be observed": provisioning(
        "messaging.not-empty", "return unknown(UnknownReason.MISSING, now, str(error))", "raise"
    ),
    "labels are matched by prefix": broker(
        "messaging.owned",
        "if (labels.flow_id, labels.run_id) != (owned.flow_id, owned.run_id):",
        "if not labels.run_id.startswith(owned.run_id):",
    ),
    "the first reader frees an item for all": channel(
        "messaging.kept-for-all", "if entry.blocking or not entry.data:", "if not entry.data:"
    ),
    "an accepted item is not kept": channel(
        "messaging.true-outcome",
        "            reader.append(entry)\n",
        "            if origin.ordinal:\n                reader.append(entry)\n",
    ),
    "one more than the bound": channel(
        "messaging.room", "used + count > bounds.items", "used + count > bounds.items + 1"
    ),
    "what is late is sent": publisher(
        "messaging.deadline", "if waiting[0].deadline < now:", "if waiting[0].deadline < now - 60:"
    ),
    "half of a statement is enough": channel(
        "messaging.whole", "if used and (", "if used >= bounds.items and ("
    ),
    "skips wait for room": channel(
        "messaging.no-room-needed",
        "if envelope is not None and envelope.kind is Kind.DATA:",
        "if envelope is not None:",
    ),
    "a repetition is taken": channel(
        "messaging.first-wins",
        "elif self.announced.covers(envelope.origin, envelope.path):",
        "elif envelope.path and self.announced.covers(envelope.origin, envelope.path):",
    ),
    "an older writer is heard": channel(
        "messaging.writers-fenced", "return _rejected(statement, RejectReason.STALE)", "epoch = slot.epoch"
    ),
    "the last end stands": channel(
        "messaging.ends", "if slot.end is None:", "if slot.end is None or kind is Kind.END:"
    ),
    "what is leased stays in the queue": subscription(
        "messaging.one-holder",
        "            self._queue.popitem(last=False)\n",
        "            self._queue.move_to_end(cell.entry.order)\n",
        "test_two_replicas_never_hold_one_message",
    ),
    "one more than the credit": subscription(
        "messaging.credit", "self._held_items < spec.credit.items", "self._held_items <= spec.credit.items"
    ),
    "one further than the spread": subscription(
        "messaging.spread",
        "self._dispatched - window[0].dispatch >= spread",
        "self._dispatched - window[0].dispatch > spread",
    ),
    "a death is not counted": subscription(
        "messaging.comes-back", "self.give_back(cell, charged=True)", "self.give_back(cell, charged=False)"
    ),
    "what is handed back is counted": receiver(
        "messaging.uncharged",
        "subscription.give_back(cell, charged=False)",
        "subscription.give_back(cell, charged=True)",
    ),
    "an old token settles": receiver(
        "messaging.stale-tokens",
        "return subscription, cell if cell is not None and cell.generation == token.generation else None",
        "return subscription, cell",
    ),
    "each settlement has its own receipt": receiver(
        "messaging.settled-once",
        "SettleConfirmed(token, token.message_id)",
        'SettleConfirmed(token, f"{token.message_id}-{len(subscription.cells)}")',
    ),
    "the live tokens of a call are settled alone": receiver(
        "messaging.settled-whole",
        "if any(isinstance(outcome, SettleStale) for _, _, outcome in judged):",
        "if False:",
    ),
    "a retry comes at once": receiver(
        "messaging.retry", "due_at = now + settlement.delay_seconds if", "due_at = now if"
    ),
    "nobody is told of an end": receiver(
        "messaging.wakes",
        "owned.holds_for(subscription) or subscription.version != self.seen)",
        "owned.holds_for(subscription))",
    ),
    "what is held is not given again": receiver(
        "messaging.ordered",
        "return held + subscription.take(self.owner, now, limit - len(held))",
        "return subscription.take(self.owner, now, limit)",
    ),
    "an owner that was replaced reads on": receiver(
        "messaging.owners-fenced",
        "raise StaleAuthority(f\"{subscription.id} is owned by {subscription.owner or 'nobody'}\")",
        "return []",
    ),
    "a tombstone counts as settled by its reader": subscription(
        "messaging.floors", "return self.settled if self.live is None else self._taken", "return self.settled"
    ),
    "the newest is evicted": subscription(
        "messaging.newest",
        "self._bury(waiting.popleft(), Cause.DROPPED)",
        "self._bury(waiting.pop(), Cause.DROPPED)",
    ),
    "a tombstone does not say what it stands for": cells(
        "messaging.tombstones",
        "intervals=() if self.ordinals is None else self.ordinals.intervals(),",
        "intervals=(),",
    ),
    "a live reader takes room": subscription(
        "messaging.never-blocks",
        "            entry.blocking += 1\n        else:\n",
        "            entry.blocking += 1\n        else:\n            entry.blocking += 1\n",
    ),
    "what is too old is handed out": subscription(
        "messaging.age",
        "cell.entry.arrived_at > live.max_age_seconds",
        "cell.entry.arrived_at > 10 * live.max_age_seconds",
    ),
    "what is settled is not in the ledger": subscription(
        "messaging.ledger", "            _close(self.settled, cell, fate)\n", ""
    ),
    "bytes are never given back": channel(
        "messaging.bounded",
        "self._used_bytes[entry.envelope.partition] -= entry.envelope.size_bytes",
        "self._used_bytes[entry.envelope.partition] -= 0",
    ),
    "silence is taken for the end": subscription(
        "messaging.completion",
        "return ended and len(self.cells) == len(self.leased), ended and not self.cells",
        "return ended, ended and not self.cells",
    ),
    "the log holds for one reader": channel(
        "messaging.log-holds", "count = len(self._readers[envelope.partition])", "count = 1"
    ),
    "an intent ends with its first channel": publisher(
        "messaging.intents", "return not self._missing[envelope.publication_id]", "return True"
    ),
    "a broadcast leaves tombstones": subscription(
        "messaging.broadcast", "if self.id.slot is not None:  # a broadcast leaves no tombstone", "if False:"
    ),
    "a broadcast takes room": subscription(
        "messaging.broadcast-unhindered",
        "            entry.blocking += 1\n        else:\n",
        "            entry.blocking += 1\n        else:\n            entry.blocking += 1\n",
    ),
    "a notice announces": fates(
        "messaging.elsewhere",
        "if kind in (Kind.SKIP, Kind.IDLE) and not envelope.elsewhere:",
        "if kind in (Kind.SKIP, Kind.IDLE):",
    ),
    "each partition has its own window": subscription(
        "messaging.one-window", "min(s.oldest(cell) for s in self.group)", "self.oldest(cell)"
    ),
    "a dead replica is not counted in shared memory": shared_given(
        "messaging.comes-back",
        "self._return(replica, sequence, int(received))",
        "self._return(replica, sequence, 0)",
        "test_what_a_dead_replica_held_comes_first_and_is_counted",
    ),
    "a partition sees one further in shared memory": shared_gated(
        "messaging.one-window",
        "self._stamp(told) - oldest < self._spread",
        "self._stamp(told) - oldest <= self._spread",
        "test_no_partition_runs_ahead_of_another_by_the_spread",
    ),
    "an intent ends with its first channel in shared memory": shared_statements(
        "messaging.intents",
        "return not self._missing[envelope.publication_id]",
        "return True",
        "test_an_intent_ends_when_its_publication_is_in_every_layout",
    ),
    "shared memory is to persist": shared_refusals(
        "messaging.unclaimed",
        "if spec.persistent:",
        "if False:",
        "test_a_guarantee_that_is_not_claimed_is_refused_and_nothing_is_made",
    ),
    "one more than the credit in shared memory": shared_leases(
        "messaging.credit",
        "return self._items < credit.items and",
        "return self._items <= credit.items and",
        "test_credit_counts_what_is_leased_and_asking_again_costs_none",
    ),
    "an older writer is heard in shared memory": shared_outlet(
        "messaging.writers-fenced",
        "if first.writer.epoch < epoch:",
        "if False:",
        "test_an_older_epoch_of_a_slot_is_refused",
    ),
    "statements are split over partitions in shared memory": shared_joint(
        "messaging.whole",
        "            prepared.append((outlet, found))\n",
        "            outlet.take(found)\n",
        "test_a_statement_without_room_in_one_partition_is_in_none",
    ),
    "a backend that drops everything": Defect("messaging.true-outcome", MESSAGING_MEMORY),
    "a backend that says accepted before it knows": Defect("messaging.room", MESSAGING_MEMORY),
}
