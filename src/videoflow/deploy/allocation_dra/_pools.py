"""What a driver publishes: resource slices as cards and slices of cards, by host. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from videoflow.adapters.kubernetes import Object
from videoflow.backends.allocation import DeviceIdentity, HostSharing
from videoflow.placement import CardModel, classify_labels, load_catalogue

_UNITS: Final = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_UNITS_OF_TEN: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE: Final = re.compile(r"(\d+)(|Ki|Mi|Gi|Ti|k|M|G|T)")
_NUMBER: Final = re.compile(r"gpu-(\d+)(?:-mig-.*-(\d+))?")
_TOLD: Final = ("type", "uuid", "productName", "profile", "parentUUID")
PLUGIN: Final = "nvidia.com/"
STAMP: Final = "videoflow.dev/owner"
_CONTRADICTED: Final = (HostSharing.MIG, HostSharing.TIME_SLICED, HostSharing.MPS)


@dataclass(frozen=True)
class Published:
    """One device of a pool.

    Attributes:
        name: In its pool.
        pool: Name of the pool.
        kind: `gpu` or `mig`; anything else is none of ours.
        identity: A card, or a slice; one that is only possible has no MIG UUID.
        start: First slot of a slice.
        counted: It draws on the counters of its card, so that its card is cut as it is given out.
        several: It may be given out several times.
        most_bytes: What one claim may take of it, by its policy; None: nothing less than all.
        withheld: The taints that keep it from being given out; empty: none.
        facts: What constraints may ask, by their keys.
    """

    name: str
    pool: str
    kind: str
    identity: DeviceIdentity
    start: int = 0
    counted: bool = False
    several: bool = False
    most_bytes: int | None = None
    withheld: str = ""
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class HostView:
    """A host of a driver.

    Attributes:
        name: The node.
        sharing: How its devices are given out.
        cards: Whole cards, and those of which only slices are published, in order.
        slices: Slices that are there.
        possible: Slices that could be made, by the driver, when they are given out.
        excluded: Why nothing is taken here; empty: nothing speaks against it.
    """

    name: str
    sharing: HostSharing
    cards: tuple[Published, ...]
    slices: tuple[Published, ...]
    possible: tuple[Published, ...]
    excluded: str = ""

    def on(self, uuid: str | None) -> list[Published]:
        """Returns the slices that are on a card."""
        return [piece for piece in self.slices if piece.identity.uuid == uuid]

    @property
    def dynamic(self) -> bool:
        """Whether the driver cuts its cards."""
        return any(card.counted for card in self.cards)


def size_of(text: str) -> int:
    """Returns a size of memory as the driver publishes it, in bytes."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no size of memory")
    return int(found[1]) * {**_UNITS, **_UNITS_OF_TEN}[found[2]]


def newest(slices: Sequence[Object], driver: str) -> tuple[list[Object], list[str]]:
    """Returns the slices of the newest generation of each pool of a driver, and which pools are not whole."""
    ours = [one["spec"] for one in slices if one["spec"]["driver"] == driver]
    generations: dict[str, int] = {}
    for spec in ours:
        pool = spec["pool"]
        generations[pool["name"]] = max(pool["generation"], generations.get(pool["name"], 0))
    kept = [spec for spec in ours if spec["pool"]["generation"] == generations[spec["pool"]["name"]]]
    short = []
    for name, generation in sorted(generations.items()):
        there = [spec for spec in kept if spec["pool"]["name"] == name]
        wanted = {spec["pool"]["resourceSliceCount"] for spec in there}
        if wanted != {len(there)}:
            short.append(f"pool {name}: {len(there)} of {max(wanted)} slices of generation {generation}")
    return kept, short


def hosts_of(specs: Sequence[Object], nodes: Sequence[Object], driver: str) -> tuple[HostView, ...]:
    """Returns the hosts that a driver publishes devices of, and why some of them are off limits."""
    by_name = {node["metadata"]["name"]: node for node in nodes}
    found: dict[str, list[Published]] = {}
    for spec in specs:
        if "nodeName" in spec:
            found.setdefault(spec["nodeName"], []).extend(_devices(spec, driver))
    return tuple(_view(name, devices, by_name.get(name)) for name, devices in sorted(found.items()))


def _devices(spec: Object, driver: str) -> Iterator[Published]:
    node, pool = spec["nodeName"], spec["pool"]["name"]
    for device in spec.get("devices") or []:
        attributes = device.get("attributes") or {}
        told = {
            name: _text(attributes, name) for name in ("type", "uuid", "productName", "profile", "parentUUID")
        }
        numbered = _NUMBER.fullmatch(device["name"])
        ordinal = int(numbered[1]) if numbered else None
        counted = bool(device.get("consumesCounters"))
        slice_ = told["type"] == "mig"
        memory = (device.get("capacity") or {}).get("memory")
        identity = DeviceIdentity(
            node=node,
            ordinal=ordinal,
            uuid=(told["parentUUID"] if slice_ else told["uuid"]) or None,
            mig_uuid=told["uuid"] or None if slice_ else None,
            product=told["productName"],
            memory_bytes=None if memory is None else size_of(memory["value"]),
            mig_profile=told["profile"] or None if slice_ else None,
        )
        most = (((memory or {}).get("requestPolicy") or {}).get("validRange") or {}).get("max")
        yield Published(
            name=device["name"],
            pool=pool,
            kind=told["type"],
            identity=identity,
            start=int(numbered[2] or 0) if numbered else 0,
            counted=counted,
            several=bool(device.get("allowMultipleAllocations")),
            most_bytes=None if most is None else size_of(most),
            # Constraints ask cards: what could be made of one has no facts of its own.
            withheld=", ".join(_taints(device)),
            facts=() if slice_ and counted else tuple(sorted(_facts(attributes, driver).items())),
        )


def _taints(device: Object) -> Iterator[str]:
    for taint in device.get("taints") or ():
        if taint["effect"] in ("NoSchedule", "NoExecute"):
            yield f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"


def _text(attributes: Mapping[str, Object], name: str) -> str:
    return str((attributes.get(name) or {}).get("string", ""))


def _facts(attributes: Mapping[str, Object], driver: str) -> dict[str, str]:
    return {
        name.removeprefix(f"{driver}/"): str(next(iter(value.values()))) for name, value in attributes.items()
    }


def _view(name: str, devices: Sequence[Published], node: Object | None) -> HostView:
    cards = [one for one in devices if one.kind == "gpu"]
    slices = [one for one in devices if one.kind == "mig" and not one.counted]
    possible = [one for one in devices if one.kind == "mig" and one.counted]
    whole = {card.identity.uuid for card in cards}
    sharing = _sharing(devices, cards, node)
    for piece in slices:
        # A card that is cut by hand is published as its slices alone.
        if piece.identity.uuid not in whole:
            whole.add(piece.identity.uuid)
            parent = DeviceIdentity(
                name, piece.identity.ordinal, piece.identity.uuid, None, piece.identity.product, None
            )
            card = Published(f"{piece.name}/card", piece.pool, "card", parent, facts=piece.facts)
            cards.append(card)
    cards.sort(key=lambda card: (card.identity.ordinal is None, card.identity.ordinal or 0))
    return HostView(
        name, sharing, tuple(cards), tuple(slices), tuple(possible), _excluded(name, node, sharing)
    )


def _sharing(devices: Sequence[Published], cards: Sequence[Published], node: Object | None) -> HostSharing:
    """Returns how devices are given out: whole only where nothing that is published or labelled denies it."""
    labels = ((node or {}).get("metadata") or {}).get("labels") or {}
    labelled = HostSharing(classify_labels(labels))
    if labelled in _CONTRADICTED:
        return labelled
    if any(one.kind not in ("gpu", "mig") or one.identity.uuid is None for one in devices):
        return HostSharing.UNKNOWN
    if any(one.several for one in devices):
        return HostSharing.TIME_SLICED
    return HostSharing.PHYSICAL if cards else HostSharing.MIG


def _excluded(name: str, node: Object | None, sharing: HostSharing) -> str:
    if node is None:
        return "there is no such node"
    stamp = (node["metadata"].get("annotations") or {}).get(STAMP, "")
    if stamp:
        return f"owned by {stamp}"
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    given = sorted(key for key, count in allocatable.items() if key.startswith(PLUGIN) and str(count) != "0")
    if given:
        return f"a device plugin gives out {', '.join(given)} of it"
    return "nothing says how its devices are shared" if sharing is HostSharing.UNKNOWN else ""


def model_of(card: Published) -> CardModel | None:
    """Returns what a card can be cut into, as far as the catalogue knows it."""
    return load_catalogue().card(card.identity.product)
