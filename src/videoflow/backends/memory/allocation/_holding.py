"""What one claim does to one host, as values: the host as it was read in, the host as it should be out.

Each function returns the host to be written, and the same host where nothing is to be written. Pure, so that
a change whose write was in doubt is computed again from what is there.
"""

from collections.abc import Iterable
from dataclasses import replace

from videoflow.backends.allocation import LayoutEntry, device_key
from videoflow.backends.allocation.lifecycle import Taken
from videoflow.backends.allocation.planning import WHOLE_CARD
from videoflow.backends.memory.allocation._hosts import Hold, Layout, MemoryCard, MemoryHost, MemoryPod
from videoflow.backends.memory.allocation._records import ClaimRecord, Terms

HEADROOM_BYTES = 1 << 30


def holds_of(record: ClaimRecord, host: str) -> dict[str, Hold]:
    """Returns device key → the hold that a claim needs there; a card that is cut anew is held as a whole."""
    found: dict[str, Hold] = {}
    recut = {LayoutEntry.parse(entry).card for entry in record.geometry.get(host, ())}
    for workload, devices in record.assignments.items():
        size = record.terms.get(workload, Terms(None)).size_bytes
        for device in devices:
            if device.node != host:
                continue
            key = device.uuid if device.uuid in recut else device_key(device)
            assert key is not None, "a card that is cut anew has a UUID"
            before = found.get(key)
            units = 1 + (before.units if before else 0)
            alone = size is None or (before is not None and before.size_bytes is None)
            total = None if alone else (size or 0) + ((before.size_bytes or 0) if before else 0)
            found[key] = Hold(record.claim_id, record.epoch, units, total)
    return found


def owned(host: MemoryHost, record: ClaimRecord) -> MemoryHost:
    """Returns the host with the holds of a claim; raises Taken."""
    if host.owner:
        raise Taken(f"{host.name} is owned by {host.owner}")
    holds = dict(host.holds)
    for key, mine in holds_of(record, host.name).items():
        related = host.related(key)
        if not related:
            raise Taken(f"{key} is no longer on {host.name}")
        others = [hold for other in related for hold in holds.get(other, ()) if hold.claim != mine.claim]
        if any(mine.size_bytes is None or other.size_bytes is None for other in others):
            raise Taken(f"{key} is owned by {others[0].stamp}")
        holds[key] = (*(hold for hold in holds.get(key, ()) if hold.claim != mine.claim), mine)
    after = replace(host, holds=holds)
    for key, mine in holds_of(record, host.name).items():
        if mine.size_bytes is not None and memory_left(after, key, ()) < 0:
            raise Taken(f"{key} has too little memory left")
    return after


def memory_left(host: MemoryHost, key: str, pods: Iterable[MemoryPod]) -> int:
    """Returns what is left of a device beside headroom, all holds, and the pods that have no hold; or < 0."""
    memory, holds = host.memory_bytes(key), host.holds.get(key, ())
    if memory is None or any(hold.size_bytes is None for hold in holds):
        return -1
    claims = {hold.claim for hold in holds}
    foreign = [pod for pod in pods if pod.device == key and pod.claim not in claims]
    used = sum(memory if pod.size_bytes is None else pod.size_bytes for pod in foreign)
    return memory - HEADROOM_BYTES - used - sum(hold.size_bytes or 0 for hold in holds)


def holds_all(host: MemoryHost, record: ClaimRecord) -> bool:
    """Returns whether every hold of the claim is there, of its epoch."""
    there = [(key, hold) for key, hold in host.held() if hold.claim == record.claim_id]
    needed = holds_of(record, host.name)
    return not host.owner and dict(there) == needed


def disowned(host: MemoryHost, record: ClaimRecord) -> MemoryHost:
    """Returns the host without the holds of a claim; those of a newer epoch, and of others, stay."""
    kept = {
        key: tuple(hold for hold in holds if hold.claim != record.claim_id or hold.epoch > record.epoch)
        for key, holds in host.holds.items()
    }
    return replace(host, holds={key: holds for key, holds in kept.items() if holds})


def entries_of(cards: Iterable[MemoryCard]) -> tuple[str, ...]:
    """Returns the layouts of cards as entries; an uncut card has one that says so."""
    return tuple(
        str(LayoutEntry(card.uuid, *placed)) for card in cards for placed in card.layout or ((WHOLE_CARD, 0),)
    )


def layouts_in(entries: Iterable[str]) -> dict[str, Layout]:
    """Returns card → layout."""
    found: dict[str, list[tuple[str, int]]] = {}
    for entry in map(LayoutEntry.parse, entries):
        placed = found.setdefault(entry.card, [])
        if entry.profile != WHOLE_CARD:
            placed.append((entry.profile, entry.start))
    return {card: tuple(sorted(placed, key=lambda one: one[1])) for card, placed in found.items()}


def laid_out(host: MemoryHost, entries: Iterable[str], entry: str) -> MemoryHost:
    """Returns the host with layouts asked for under the name of an entry."""
    wanted = layouts_in(entries)
    cards = tuple(
        replace(card, wanted=wanted[card.uuid], entry=entry)
        if card.uuid in wanted and card.entry != entry
        else card
        for card in host.cards
    )
    return replace(host, cards=cards)


def asked_by(host: MemoryHost, card: str, claim: str, original: Layout) -> bool:
    """Returns whether a claim asked for a layout of a card, or whatever did has changed it."""
    found = host.card(card)
    return found is not None and (found.layout != original or found.entry.startswith(claim))


def is_laid_out(host: MemoryHost, entries: Iterable[str], entry: str, *, advertised: bool = False) -> bool:
    """Returns whether layouts were made under an entry and are what was asked for; older evidence is none."""
    for uuid, layout in layouts_in(entries).items():
        card = host.card(uuid)
        seen = None if card is None else card.advertised if advertised else card.made
        if card is None or seen != entry or card.layout != layout:
            return False
    return True
