"""Defects of payload stores, one or more for each law."""

from tests.contracts.defect import PAYLOAD_MEMORY, PAYLOAD_SHM, Defect, changing

payloads = changing(PAYLOAD_MEMORY, "backends/memory/_payloads.py")
pool = changing(PAYLOAD_MEMORY, "backends/memory/_pool.py")
shared_payloads = changing(PAYLOAD_SHM, "adapters/shm/_payloads.py")

PAYLOAD: dict[str, Defect] = {
    "a reader may write in shared memory": shared_payloads(
        "payload.intact",
        "memoryview(self._process.memory(slot[0])).toreadonly()",
        "memoryview(self._process.memory(slot[0]))",
        "test_what_is_read_cannot_be_written",
    ),
    "what is pending is listed": payloads(
        "payload.sealed",
        "known(tuple(o.ref for o in self._pool.objects.values() if o.data is not None), now)",
        "known(tuple(o.ref for o in self._pool.objects.values()), now)",
    ),
    "a full store takes one more": pool(
        "payload.backpressure",
        "if size_bytes > self.free_for(owner):\n            return None",
        "if 0 > self.free_for(owner):\n            return None",
    ),
    "what is to last is taken by memory": payloads(
        "payload.refused", "if contract.durable_required:", "if False:"
    ),
    "reserved room is anybody's": pool(
        "payload.reserved", "            if other != owner\n", "            if False\n"
    ),
    "a pin keeps nothing": pool(
        "payload.pinned",
        "if item.holds > 0 or item.claims:",
        'if item.holds > 0 or [c for c in item.claims if not c.startswith("pin/")]:',
    ),
    "one release ends all claims": payloads(
        "payload.claims",
        "        item.claims.pop(claim, None)\n        remaining",
        "        item.claims.clear()\n        remaining",
    ),
    "an old reference releases": payloads(
        "payload.generations", "if item.ref.generation != ref.generation:", "if False:"
    ),
    "a reader's claim needs no receipt": payloads(
        "payload.receipts", "if completion_receipt is None and", "if False and"
    ),
    "a ledger speaks for all families": payloads(
        "payload.reconciled",
        "if family in ledger and claim not in ledger[family] and not theirs:",
        "if claim not in ledger.get(family, ()) and not theirs:",
    ),
    "what is gone is asked for again": payloads(
        "payload.lost",
        'return Missing(f"there is no object {ref.key}")',
        'return TransientFailure(f"there is no object {ref.key}")',
    ),
    "all room is said to be free": payloads(
        "payload.known", "free = self._pool.free_for(self._owner)", "free = self._pool.budget_bytes"
    ),
    "a claim is renewed into being in shared memory": shared_payloads(
        "payload.claims",
        "if name in self._claims.of(slot_of(ref))",
        "if name",
        "test_a_claim_that_nobody_made_is_not_renewed",
    ),
    "a payload store that drops everything": Defect("payload.intact", PAYLOAD_MEMORY),
}
