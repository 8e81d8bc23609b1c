"""The MIG catalogue: which slices a card can be cut into, where they may start, what memory each gives."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Profile:
    """One kind of slice on one kind of card.

    Attributes:
        name: As the driver spells it, such as `3g.40gb`.
        compute: Compute slices.
        width: Memory slots that it takes in the grid of the card.
        starts: Slots at which it may begin.
        maximum: How many of it one card can hold.
        label_gb: The figure in its name, which is no size: never compare it with bytes.
        usable_bytes: What a workload can use.
        measured: Whether `usable_bytes` was read from a driver; otherwise it is an estimate.
        media: One of the `+me` profiles, of which a card holds at most one in all.
    """

    name: str
    compute: int
    width: int
    starts: tuple[int, ...]
    maximum: int
    label_gb: int
    usable_bytes: int
    measured: bool
    media: bool = False


@dataclass(frozen=True)
class CardModel:
    """One kind of card: its grid of memory slots and what it can be cut into.

    Attributes:
        name: Ours, such as `H100-80`.
        slots: Memory slots.
        memory_bytes: What the driver reports for the whole card, or None where nobody has looked.
        profiles: All kinds of slice.
    """

    name: str
    slots: int
    memory_bytes: int | None
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile | None:
        """Returns the profile of this name, or None; `1g.10gb.me`, as resources spell it, is `1g.10gb+me`."""
        spelled = name.replace(".me", "+me")
        return next((found for found in self.profiles if found.name == spelled), None)

    def with_usable(self, measured: Mapping[str, int]) -> "CardModel":
        """Returns the card with what a driver says of its profiles: name → usable bytes."""
        profiles = tuple(
            replace(found, usable_bytes=measured[found.name], measured=True)
            if found.name in measured
            else found
            for found in self.profiles
        )
        return replace(self, profiles=profiles)


@dataclass(frozen=True)
class Catalogue:
    """All cards that are known, with where the figures come from.

    Attributes:
        date: When the sources were read, as an ISO date.
        sources: Addresses.
        cards: The cards.
    """

    date: str
    sources: tuple[str, ...]
    cards: tuple[CardModel, ...]
    by_id: Mapping[str, CardModel]
    by_product: Mapping[str, CardModel]

    def card(self, product: str, device_id: str | int | None = None) -> CardModel | None:
        """Returns the card, by device id where that is known, else by name; None: nobody knows how to cut it.

        Args:
            product: As the driver spells it (`NVIDIA H100 80GB HBM3`) or as a label does (`NVIDIA-H100-PCIe`,
                also with `-SHARED` or `-MIG-1g.10gb` behind it).
            device_id: PCI device id: `0x233010DE` (device and vendor), `0x2330`, or the number.
        """
        by_name = self.by_product.get(_spelled(product))
        return by_name if device_id is None else self.by_id.get(_device(device_id), by_name)


def _device(device_id: str | int) -> str:
    number = device_id if isinstance(device_id, int) else int(device_id, 16)
    return f"{number >> 16 if number > 0xFFFF else number:04X}"


def _spelled(product: str) -> str:
    words = product.strip().lower().replace(" ", "-").replace("_", "-")
    return words.split("-mig-")[0].removesuffix("-shared")


def _profile(entry: Mapping[str, Any], shapes: Mapping[str, Any]) -> Profile:
    shape, media = shapes[entry["shape"]], bool(entry.get("media"))
    return Profile(
        name=entry["name"],
        compute=shape["compute"],
        width=shape["width"],
        starts=tuple(shape["starts"]),
        maximum=1 if media else shape["maximum"],
        label_gb=entry["label_gb"],
        usable_bytes=entry["usable_mib"] * MIB,
        measured=entry["basis"] == "measured",
        media=media,
    )


@cache
def load_catalogue() -> Catalogue:
    """Returns the catalogue that is shipped as `mig_catalogue.json`."""
    text = files("videoflow.placement").joinpath("mig_catalogue.json").read_text(encoding="utf-8")
    document = json.loads(text)
    cards, by_id, by_product = [], {}, {}
    for entry in document["cards"]:
        grid = document["grids"][entry["grid"]]
        memory = entry["memory_mib"]
        card = CardModel(
            name=entry["name"],
            slots=grid["slots"],
            memory_bytes=None if memory is None else memory * MIB,
            profiles=tuple(_profile(profile, grid["shapes"]) for profile in entry["profiles"]),
        )
        cards.append(card)
        by_id.update(dict.fromkeys(entry["device_ids"], card))
        by_product.update({_spelled(product): card for product in entry["products"]})
    return Catalogue(document["date"], tuple(document["sources"]), tuple(cards), by_id, by_product)
