"""The MIG manager's configuration: read as YAML, changed line by line.

Used for managed geometry. Everything in it that is not ours stays as it is, comments included; an entry of
ours is one line below `mig-configs:`, so that it is removed exactly. It refuses a configuration whose style
has no place for a line.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from videoflow.adapters.kubernetes import read_yaml

Cards = tuple[tuple[str, ...] | None, ...]
"""For each card of a host the profiles that it is cut into, sorted; None: MIG mode is off."""
_HEAD = "mig-configs:"


class NoPlace(Exception):
    """A configuration that no entry can be added to."""


def cards_under(text: str, entry: str, count: int) -> Cards | None:
    """Returns what an entry makes of the cards of a host; None: that cannot be told.

    Args:
        text: Of the configuration.
        entry: Its name.
        count: How many cards the host has.
    """
    rules = _entries(text).get(entry)
    if not isinstance(rules, list):
        return None
    cards: list[tuple[str, ...] | None] = [None] * count
    for rule in rules:
        if not isinstance(rule, Mapping) or "device-filter" in rule:
            return None
        which = rule.get("devices", "all")
        ordinals = range(count) if which == "all" else which
        made = _profiles(rule) if rule.get("mig-enabled") else None
        for ordinal in ordinals:
            if not isinstance(ordinal, int) or not 0 <= ordinal < count:
                return None
            cards[ordinal] = made
    return tuple(cards)


def with_entry(text: str, entry: str, cards: Cards) -> str:
    """Returns the configuration with an entry of ours; unchanged where it is there.

    Raises:
        NoPlace: Its style has no place for a line, or it has another entry of this name.
    """
    wanted = _rules(cards)
    there = _entries(text).get(entry)
    if there is not None:
        if there != wanted:
            raise NoPlace(f"the configuration has another entry {entry}")
        return text
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if line.split("#")[0].rstrip() == _HEAD]
    if len(heads) != 1:
        raise NoPlace(f"the configuration has no line `{_HEAD}` of its own")
    below = next((line for line in lines[heads[0] + 1 :] if line.split("#")[0].strip()), "  ")
    indent = below[: len(below) - len(below.lstrip())] or "  "
    lines.insert(heads[0] + 1, f"{indent}{entry}: {json.dumps(wanted, separators=(', ', ': '))}")
    changed = "\n".join(lines) + "\n"
    if _entries(changed).get(entry) != wanted or _entries(changed).items() < _entries(text).items():
        raise NoPlace("the configuration cannot be added to")
    return changed


def without_entries(text: str, prefix: str) -> str:
    """Returns the configuration without the entries whose names begin with a prefix of ours."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith(prefix))


def totals(cards: Iterable[Sequence[str] | None]) -> dict[str, int]:
    """Returns how many devices of each profile cards have; whole cards under the empty name."""
    found: dict[str, int] = {}
    for card in cards:
        for profile in ("",) if card is None else card:
            found[profile] = found.get(profile, 0) + 1
    return found


def _profiles(rule: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (rule.get("mig-devices") or {}).items()
    return tuple(sorted(profile for profile, number in counts for _ in range(int(number))))


def _rules(cards: Cards) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    for ordinal, card in enumerate(cards):
        if card is None:
            rules.append({"devices": [ordinal], "mig-enabled": False})
        else:
            counts = {profile: card.count(profile) for profile in dict.fromkeys(card)}
            rules.append({"devices": [ordinal], "mig-enabled": True, "mig-devices": counts})
    return rules


@lru_cache(maxsize=64)
def _entries(text: str) -> Mapping[str, Any]:
    document = read_yaml(text)
    found = document.get("mig-configs") if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}
