"""Who owns what of a host: one config map for each host, which every claimant of it writes. Pure.

It is the one place where claimants meet, whatever the strategy: a claim on seats and a claim on geometry of
one host write the same object, so that one of them is second.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from videoflow.adapters.kubernetes import Object
from videoflow.backends.allocation import device_key
from videoflow.backends.allocation.lifecycle import Taken
from videoflow.deploy.allocation_kubernetes._records import ClaimRecord, Terms
from videoflow.deploy.allocation_kubernetes._settings import KIND
from videoflow.deploy.kubernetes_records import config_map

HOLDS: Final = "holds"


class Hold(msgspec.Struct, frozen=True):
    """Ownership of a device by one claim.

    Attributes:
        claim: Its id.
        epoch: Of the claim, when it was written; a newer one replaces it, an older one never does.
        units: Workloads of the claim on the device.
        shared: Others may have it too.
        resource: That the pods ask for; empty where the card is cut anew.
    """

    claim: str
    epoch: int
    units: int
    shared: bool
    resource: str

    @property
    def stamp(self) -> str:
        """What is shown as the owner."""
        return f"{self.claim}.{self.epoch}"


Holds = Mapping[str, tuple[Hold, ...]]


@dataclass(frozen=True)
class Ledger:
    """The holds on one host.

    Attributes:
        host: Which.
        holds: Device key → the claims that own it; several where it is shared.
        fence: Stamp of the claim that left last, so that whoever read before writes in vain.
    """

    host: str
    holds: Holds
    fence: str = ""

    def held(self) -> Iterator[tuple[str, Hold]]:
        """Yields each hold with its device."""
        for key, holds in sorted(self.holds.items()):
            for hold in holds:
                yield key, hold

    def over(self, key: str) -> tuple[tuple[str, Hold], ...]:
        """Returns the holds on a device, on the card that it is on, and on what is on it."""
        return tuple((other, hold) for other, hold in self.held() if related(self.host, key, other))


def related(host: str, one: str, other: str) -> bool:
    """Returns whether two devices of a host are the same, or one is on the other.

    >>> related("a", "a#1", "a/1/1g.10gb/0"), related("a", "a#1", "a/0/1g.10gb/0")
    (True, False)
    """
    if one == other:
        return True
    cards = [_card(host, key) for key in (one, other)]
    whole = [key == card for key, card in zip((one, other), cards, strict=True)]
    return any(whole) and not all(whole) and cards[0] == cards[1]


def _card(host: str, key: str) -> str:
    inside = key.removeprefix(f"{host}/")
    return key if inside == key else f"{host}#{inside.partition('/')[0]}"


def ledger_name(host: str) -> str:
    """Returns the name of the config map of a host."""
    return f"host-{hashlib.sha256(host.encode()).hexdigest()[:20]}"


def ledger_in(holder: Object | None, host: str) -> Ledger:
    """Reads a ledger; of a host that has none, an empty one."""
    data = {} if holder is None else holder.get("data") or {}
    holds = msgspec.json.decode(data.get(HOLDS, "{}"), type=dict[str, tuple[Hold, ...]])
    return Ledger(host, holds, data.get("fence", ""))


def written(ledger: Ledger, namespace: str, holder: Object | None) -> Object:
    """Returns the config map of a ledger, with the version of the one that it was read from."""
    holds = msgspec.json.encode(dict(sorted(ledger.holds.items()))).decode()
    data = {"host": ledger.host, HOLDS: holds, "fence": ledger.fence}
    if holder is not None:
        return {**holder, "data": data}
    return config_map(ledger_name(ledger.host), namespace, {KIND: "host"}, data)


def holds_of(record: ClaimRecord, host: str) -> dict[str, Hold]:
    """Returns device key → the hold that a claim needs there; a card that is cut anew is held as a whole."""
    found: dict[str, Hold] = {}
    recut = record.recut.get(host, ())
    for workload, devices in record.assignments.items():
        shared = record.terms.get(workload, Terms()).shared
        for device in devices:
            if device.node != host:
                continue
            anew = device.ordinal in recut
            key = f"{host}#{device.ordinal}" if anew else device_key(device)
            resource = "" if anew else next(iter(record.resources.get(workload, {})), "")
            before = found.get(key)
            units = 1 + (before.units if before else 0)
            found[key] = Hold(record.claim_id, record.epoch, units, shared, resource)
    for ordinal in recut:
        found.setdefault(f"{host}#{ordinal}", Hold(record.claim_id, record.epoch, 0, False, ""))
    return found


def owned(ledger: Ledger, record: ClaimRecord) -> Ledger:
    """Returns the ledger with the holds of a claim; raises Taken."""
    holds, shares = dict(ledger.holds), record.shares.get(ledger.host, 1)
    for key, mine in holds_of(record, ledger.host).items():
        others = [hold for _, hold in ledger.over(key) if hold.claim != mine.claim]
        if others and not (mine.shared and all(hold.shared for hold in others)):
            raise Taken(f"{key} is owned by {others[0].stamp}")
        if mine.units + sum(hold.units for hold in others) > shares > 1:
            raise Taken(f"{key} has no share left")
        holds[key] = (*(hold for hold in holds.get(key, ()) if hold.claim != mine.claim), mine)
    return Ledger(ledger.host, holds, ledger.fence)


def holds_all(ledger: Ledger, record: ClaimRecord) -> bool:
    """Returns whether every hold of the claim is there, of its epoch."""
    there = {key: hold for key, hold in ledger.held() if hold.claim == record.claim_id}
    return there == holds_of(record, ledger.host)


def disowned(ledger: Ledger, record: ClaimRecord) -> Ledger:
    """Returns the ledger without the holds of a claim, marked by it; those of a newer epoch stay."""
    kept = {
        key: tuple(hold for hold in holds if hold.claim != record.claim_id or hold.epoch > record.epoch)
        for key, holds in ledger.holds.items()
    }
    return Ledger(ledger.host, {key: holds for key, holds in kept.items() if holds}, record.stamp)
