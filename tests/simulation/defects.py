"""Small changes to the product, each of which breaks a rule: the simulation must notice every one of them."""

from tests.promises.planting import Change

CORE = "worker/core/_core.py"
CONCLUDING = "worker/core/_concluding.py"
CHECKPOINTS = "worker/core/_checkpoints.py"
SOURCE = "worker/core/_source.py"
WALK = "worker/core/_walk.py"
ORDER = "worker/core/_order.py"
ELEMENTS = "worker/core/_elements.py"
SHELL = "worker/_shell.py"
READING = "worker/_reading.py"
PAYLOADS = "worker/_payloads.py"
NODES = "worker/_nodes.py"
CHANNEL = "backends/memory/_channel.py"
SUBSCRIPTION = "backends/memory/_subscription.py"
RECEIVER = "backends/memory/_receiver.py"
POOL = "backends/memory/_pool.py"
RUNTIME = "backends/runtime/_flow.py"
SUSPENDING = "worker/_suspending.py"
CONTEXT = "graph/_context.py"
PAST = "engines/_past.py"

DEFECTS: dict[str, Change] = {
    "a stateless task settles before it publishes": Change(
        CORE,
        "        yield from self.publish(said)\n        yield from self.say_again(pending.recalled)\n"
        "        yield from self.settle(pending)\n",
        "        yield from self.settle(pending)\n        yield from self.publish(said)\n"
        "        yield from self.say_again(pending.recalled)\n",
    ),
    "a source commits before it publishes": Change(
        SOURCE,
        "            yield from self.publish(pending.flat())\n            due = ",
        "            if self._uncommitted_items:\n                yield from self._commit(())\n"
        "            yield from self.publish(pending.flat())\n            due = ",
    ),
    "the outbox is forgotten at the start": Change(
        CORE,
        "            self._restore()\n            yield from self.republish()\n",
        "            self._restore()\n",
    ),
    "the outbox is not committed": Change(
        SHELL,
        "cursor=action.cursor, outbox=entries,",
        "cursor=action.cursor,",
    ),
    "the terminator comes before the last publication": Change(
        CORE,
        "            self._restore()\n            yield from self.republish()\n",
        "            self._restore()\n            yield Terminate(Kind.END)\n"
        "            yield from self.republish()\n",
    ),
    "the cursor is not committed": Change(
        CORE,
        "Commit(self.number + 1, msgspec.msgpack.encode(self._worked), pending.publications)",
        "Commit(self.number + 1, None, pending.publications)",
    ),
    "a repeated statement is not recognised": Change(
        CHANNEL,
        "            elif self.announced.covers(envelope.origin, envelope.path):\n"
        "                return None\n",
        "",
    ),
    "payloads are freed by the first reader": Change(
        POOL,
        "                if item is not None:\n                    item.holds -= 1\n",
        "                if item is not None:\n                    item.holds = 0\n",
    ),
    "a skip is not published": Change(
        WALK,
        "        if not emitted:\n            skip_id",
        "        if not emitted and element.cause is not None:\n            return []\n"
        "        if not emitted:\n            skip_id",
    ),
    "a dead letter is skipped for another cause": Change(
        WALK,
        "                ref = yield PutAside(name, element, failure, attempts)\n"
        "                return (), Cause.DEAD_LETTER, ref\n            yield pause_after",
        "                ref = yield PutAside(name, element, failure, attempts)\n"
        "                return (), None, ref\n            yield pause_after",
    ),
    "a commit of an older epoch is taken": Change(
        RUNTIME,
        "        if head.epoch != epoch:\n            return CommitOutcome.STALE\n        if head.number",
        "        if head.number",
    ),
    "a publication of an older epoch is taken, and sets the epoch back": Change(
        CHANNEL,
        "        if epoch < slot.epoch:\n            return _rejected(statement, RejectReason.STALE)\n",
        "",
    ),
    "an ordered reader takes what comes": Change(
        ORDER,
        "        if gaps_closed and line.waits(found):\n",
        "        if (gaps_closed or len(line.parents) == 1) and line.waits(found):\n",
    ),
    "flush is asked for again": Change(
        CONCLUDING,
        "not self.program.flushing or self.start.committed.flushed",
        "not self.program.flushing",
    ),
    "that it flushed is not committed": Change(
        CONCLUDING,
        "pending.publications, None, flushed=True)",
        "pending.publications, None)",
    ),
    "it flushes after an abort": Change(
        CORE,
        "            if not (aborted or self.suspended):\n",
        "            if not self.suspended:\n",
    ),
    "it ends after an abort as if nothing had happened": Change(
        CORE,
        "kind = Kind.ABORT if aborted else Kind.END",
        "kind = Kind.END",
    ),
    "a sink settles what is not durable": Change(
        CHECKPOINTS,
        "        if outcome.consumed:\n            yield from self._checkpoint(final=False, hold=True)\n",
        "        if outcome.consumed:\n            yield from self.settle(Pending([], settlements))\n"
        "            yield from self._checkpoint(final=False, hold=True)\n",
    ),
    "a sink's last checkpoint is left out": Change(
        CHECKPOINTS,
        "        self._finished_checkpoint = True\n        yield from self._checkpoint(final=True)\n",
        "        self._finished_checkpoint = True\n        yield from self._checkpoint(final=False)\n",
    ),
    "attempts of a suspect are not recorded": Change(
        WALK,
        "    yield RecordStarted(node.name, element.input_id)\n",
        "",
    ),
    "an attempt that raised leaves its state": Change(
        NODES,
        "            if state is not None:\n                state.rollback()\n",
        "            if state is not None and kept is not None:\n"
        "                self._changes.update(kept.keep())\n",
    ),
    "a settlement in doubt is not repeated": Change(
        CONCLUDING,
        "remaining = [s for s, o in zip(remaining, outcomes, strict=True) if type(o) is SettleUnknown]",
        "remaining = []",
    ),
    "a publication in doubt counts as accepted": Change(
        CONCLUDING,
        "    if isinstance(outcome, Accepted):\n        return False\n",
        "    if not isinstance(outcome, Rejected):\n        return False\n",
    ),
    "a full channel counts as taken": Change(
        CONCLUDING,
        '        raise WorkerFatal(f"a publication was rejected: {outcome.reason}")\n    return True\n',
        '        raise WorkerFatal(f"a publication was rejected: {outcome.reason}")\n'
        "    return not isinstance(outcome, Rejected)\n",
    ),
    "a join does not wait for all": Change(
        ORDER,
        "        elif line.waits(found):\n            return None\n",
        "        elif all(said is None for said in found):\n            return None\n",
    ),
    "a join ignores a skip": Change(
        ELEMENTS,
        " or not said or (gone and not missing_is_none)",
        " or not said",
    ),
    "what is held for the log is not held": Change(
        CHANNEL,
        "                holds.hold(envelope.payloads, count)\n",
        "                holds.hold(envelope.payloads, 0)\n",
    ),
    "a dead owner's leases are not returned": Change(
        SUBSCRIPTION,
        "            self.give_back(cell, charged=True)\n        return bool(held)\n",
        "            continue\n        return bool(held)\n",
    ),
    "a redelivery is not told from a first delivery": Change(
        SUBSCRIPTION,
        "        cell.transport_count += charged\n",
        "",
    ),
    "what was dropped counts as settled by its reader": Change(
        SUBSCRIPTION,
        "        return self.settled if self.live is None else self._taken\n",
        "        return self.settled\n",
    ),
    "stored outputs of a commit are given back by who dies": Change(
        SHELL,
        "        stored = self._payloads.hand_over()\n",
        "        stored = {}\n",
    ),
    "inner fates are told only after the commit": Change(
        CORE,
        "            yield from self.report(pending)\n",
        "            pass\n",
    ),
    "the end of a source's epoch is not said": Change(
        SOURCE,
        "            yield from self._end_epoch(old.epoch)\n",
        "",
    ),
    "a restarted reader begins at the first position again": Change(
        CORE,
        "                self._order.restore_settled(acquired.settled)\n",
        "                pass\n",
    ),
    "an evicted item leaves no tombstone": Change(
        SUBSCRIPTION,
        "        if cell.ordinals is None or self.group:"
        "  # partitions' window would count from the first of many\n"
        "            return\n        grave_key",
        "        del self._queue[cell.entry.order], self.cells[cell.entry.position]\n"
        "        if cell.ordinals is None or self.live is not None:\n            return\n        grave_key",
    ),
    "a terminator may come before the log is read": Change(
        SUBSCRIPTION,
        "        return ended and len(self.cells) == len(self.leased), ended and not self.cells\n",
        "        return ended, ended\n",
    ),
    "a snapshot is not restored": Change(
        NODES,
        "self._attempt(running, lambda: running.invoker.restore(kept.snapshot(), running.context))",
        "None",
    ),
    "a snapshot is not taken": Change(
        NODES,
        "                self._changes.update(self._snapshot(name, running, kept))\n",
        "                pass\n",
    ),
    "the key of an effect depends on the replica": Change(
        CONTEXT,
        "        return hash_id(self.run_id, self.node, self.input_id)\n",
        "        return hash_id(self.run_id, self.node, self.input_id, self.slot)\n",
    ),
    "what a suspended sink holds is not kept": Change(
        SUSPENDING,
        "                self._keep(number, turn, delivery.envelope)\n",
        "",
    ),
    "a resumed run begins as if nothing had been settled": Change(
        PAST,
        "                settled = [self._settled_by(name) for name in inputs]\n",
        "                settled: list[list[OriginRecord]] = [[] for _ in inputs]\n",
    ),
    "a resumed source says again what it said": Change(
        SOURCE,
        "if not self._said[each.channel].covers(each.envelope.origin, each.envelope.path)",
        "if each",
    ),
    "who is given up forgets its outbox": Change(
        CORE,
        "            yield from self.republish()\n            self.require_not_abandoned()\n",
        "            self.require_not_abandoned()\n            yield from self.republish()\n",
    ),
    "what is recorded once is not looked up": Change(
        CORE,
        "                recalled = yield Recall(element.input_id)\n",
        "                recalled = None\n",
    ),
}
"""What is planted, and where."""
