"""A node as the allocator sees it: how its GPUs are given out, and what there is of them. Pure.

A device plugin counts; it does not say which card a pod has. So a device here is a seat: an ordinal for a
whole card, and for a slice a name of our own (`host/ordinal/profile/number`), which no driver knows. UUIDs
are known only on the host, and stay None.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from videoflow.adapters.kubernetes import Object
from videoflow.backends.allocation import DeviceIdentity, HostSharing
from videoflow.deploy.allocation_kubernetes._mig_config import Cards, cards_under, totals
from videoflow.deploy.allocation_kubernetes._settings import (
    GPU,
    MANAGED,
    MIG_CONFIG,
    MIG_PREFIX,
    MIG_STATE,
    OWNER,
    SHARED_GPU,
    TAINT,
    KubernetesSettings,
    Strategy,
)
from videoflow.placement import CardModel, classify_labels, load_catalogue

MIB = 1 << 20
_USED_BY = {
    HostSharing.TIME_SLICED: Strategy.TIME_SLICING,
    HostSharing.MPS: Strategy.MPS,
    HostSharing.MIG: Strategy.STATIC_MIG,
}


@dataclass(frozen=True)
class HostView:
    """One host with GPUs.

    Attributes:
        name: Of the node.
        sharing: As its labels say.
        product: As its labels spell it, without what they add.
        memory_bytes: Of one card; None: nobody says.
        cards: What each card is cut into, where that is known; else the cards that can be told apart.
        pooled: Profile → slices of which nobody knows the card.
        shares: How many may share one card; 1: none.
        managed: Its geometry may be changed.
        resources: Profile (empty: a whole card, or a share) → the resource that a pod asks for.
        allocatable: Resource → how many the device plugin advertises.
        owner: Stamp on the node; empty: none.
        excluded: Why nothing may be placed here; empty: it may.
        note: What else somebody should know.
    """

    name: str
    sharing: HostSharing
    product: str
    memory_bytes: int | None
    cards: Cards
    pooled: tuple[tuple[str, int], ...]
    shares: int
    managed: bool
    resources: tuple[tuple[str, str], ...]
    allocatable: tuple[tuple[str, int], ...]
    owner: str = ""
    excluded: str = ""
    note: str = ""

    def model(self) -> CardModel | None:
        """Returns how its cards can be cut, or None."""
        return load_catalogue().card(self.product)

    def resource(self, profile: str | None) -> str:
        """Returns the resource that a pod asks for to get a device."""
        return dict(self.resources).get(profile or "", resource_of(profile))

    def card(self, ordinal: int) -> DeviceIdentity:
        """Returns a card as a device."""
        return DeviceIdentity(self.name, ordinal, None, None, self.product, self.memory_bytes)

    def slices(self, ordinal: int) -> tuple[DeviceIdentity, ...]:
        """Returns the slices of a card."""
        return seats(self, ordinal, self.cards[ordinal] or ())

    def devices(self) -> Iterator[DeviceIdentity]:
        """Yields each card, its slices behind it, then the slices of unknown cards."""
        for ordinal in range(len(self.cards)):
            yield self.card(ordinal)
            yield from self.slices(ordinal)
        yield from self.loose()

    def loose(self) -> tuple[DeviceIdentity, ...]:
        """Returns the slices of which nobody knows the card."""
        return seats(self, None, [profile for profile, count in self.pooled for _ in range(count)])


def seats(host: HostView, ordinal: int | None, profiles: object) -> tuple[DeviceIdentity, ...]:
    """Returns a device for each profile, named by its number among those of its kind."""
    found, numbers = [], dict[str, int]()
    model = host.model()
    for profile in profiles if isinstance(profiles, list | tuple) else ():
        number = numbers[profile] = numbers.get(profile, -1) + 1
        known = None if model is None else model.profile(profile)
        found.append(
            DeviceIdentity(
                node=host.name,
                ordinal=ordinal,
                uuid=None,
                mig_uuid=f"{host.name}/{'-' if ordinal is None else ordinal}/{profile}/{number}",
                product=host.product,
                memory_bytes=None if known is None else known.usable_bytes,
                mig_profile=profile,
            )
        )
    return tuple(found)


def resource_of(profile: str | None) -> str:
    """Returns the resource of a slice under the mixed strategy, or of a whole card."""
    return GPU if not profile else MIG_PREFIX + profile.replace("+", ".")


def owner_of(node: Object) -> str:
    """Returns the stamp on a node, or empty."""
    return str((node["metadata"].get("annotations") or {}).get(OWNER, ""))


def taints_of(node: Object) -> list[Object]:
    """Returns the taints of a node."""
    return list((node.get("spec") or {}).get("taints") or [])


def labels_of(node: Object) -> Mapping[str, str]:
    """Returns the labels of a node."""
    return node["metadata"].get("labels") or {}


def gpu_resources(node: Object) -> dict[str, int]:
    """Returns what the device plugin of a node advertises: resource → how many."""
    found = (node.get("status") or {}).get("allocatable") or {}
    return {key: int(value) for key, value in found.items() if key.startswith((GPU, MIG_PREFIX))}


def view(
    node: Object, settings: KubernetesSettings, drivers: Mapping[str, str], config: str | None
) -> HostView | None:
    """Returns a node as the allocator sees it; None: it has no GPUs.

    Args:
        node: As read.
        settings: What may be used.
        drivers: Host → driver of dynamic resource allocation that has its GPUs.
        config: Text of the MIG manager's configuration; None: it could not be read, or nobody asked.
    """
    labels, resources = labels_of(node), gpu_resources(node)
    name = str(node["metadata"]["name"])
    if not any(resources.values()) and not any(key.startswith(GPU) for key in labels) and name not in drivers:
        return None
    sharing = HostSharing(classify_labels(labels))
    found = (
        _cut(node, settings, sharing, config) if sharing in (HostSharing.PHYSICAL, HostSharing.MIG) else None
    )
    count = _number(labels.get(f"{GPU}.count")) or 0
    shares = 1
    if found is None:
        shares = max(_number(labels.get(f"{GPU}.replicas")) or 1, 1)
        cards: Cards = (None,) * (count if sharing is not HostSharing.UNKNOWN else 0)
        shared = SHARED_GPU if SHARED_GPU in resources else GPU
        found = _Cut(cards, (), False, (("", shared),), "")
    memory = _number(labels.get(f"{GPU}.memory"))
    return HostView(
        name=name,
        sharing=sharing,
        product=_product(labels.get(f"{GPU}.product", "")),
        memory_bytes=None if memory is None else memory * MIB,
        cards=found.cards,
        pooled=found.pooled,
        shares=shares,
        managed=found.managed,
        resources=found.resources,
        allocatable=tuple(sorted(resources.items())),
        owner=owner_of(node),
        excluded=_excluded(node, settings, sharing, drivers),
        note=found.note,
    )


@dataclass(frozen=True)
class _Cut:
    cards: Cards
    pooled: tuple[tuple[str, int], ...]
    managed: bool
    resources: tuple[tuple[str, str], ...]
    note: str


def _cut(node: Object, settings: KubernetesSettings, sharing: HostSharing, config: str | None) -> _Cut:
    """Tells which slices are on which card, or at least how many there are."""
    labels, resources = labels_of(node), gpu_resources(node)
    count = _number(labels.get(f"{GPU}.count")) or 0
    if sharing is HostSharing.MIG:
        # The single strategy calls every slice a GPU; of which profile, only the product says.
        profile = labels.get(f"{GPU}.product", "").partition("-MIG-")[2]
        pooled = ((profile, resources.get(GPU, 0)),) if profile else ()
        return _Cut(
            (), pooled, False, ((profile, GPU),), "its slices are given out under the single strategy"
        )
    advertised = {"": resources.get(GPU, 0)} | {
        key.removeprefix(MIG_PREFIX).replace(".me", "+me"): number
        for key, number in resources.items()
        if key.startswith(MIG_PREFIX) and number
    }
    names = tuple((profile, resource_of(profile)) for profile in advertised)
    entry, state = (
        labels.get(MIG_CONFIG, ""),
        labels.get(MIG_STATE, "" if labels.get(MIG_CONFIG) else "success"),
    )
    cards: Cards | None = (None,) * count
    if entry:
        cards = cards_under(config, entry, count) if config is not None else None
    if cards is None and advertised == {"": count}:
        cards = (None,) * count
    told = {"": 0} | totals(cards or ())
    if cards is None or told != advertised:
        whole = (None,) * advertised.pop("")
        note = f"{count} cards are said to be there, and what is advertised is not what they are cut into"
        return _Cut(whole, tuple(sorted(advertised.items())), False, names, note)
    managed = (
        settings.uses(Strategy.MANAGED_MIG)
        and config is not None
        and labels.get(MANAGED) == "true"
        and labels.get("nvidia.com/mig.strategy") == "mixed"
        and state == "success"
        and not owner_of(node)
    )
    return _Cut(cards, (), managed, names, "")


def _excluded(
    node: Object, settings: KubernetesSettings, sharing: HostSharing, drivers: Mapping[str, str]
) -> str:
    name, owner = node["metadata"]["name"], owner_of(node)
    if name in drivers:
        return f"its devices belong to the driver {drivers[name]}"
    if owner and not owner.startswith("claim-"):
        return f"owned by {owner}"
    if (node.get("spec") or {}).get("unschedulable"):
        return "nothing may be scheduled on it"
    if sharing is HostSharing.UNKNOWN:
        return "no label says how its devices are shared"
    strategy = _USED_BY.get(sharing)
    if strategy is not None and strategy not in settings.strategies:
        return f"its devices are shared ({sharing}), and the strategy {strategy} is not used"
    foreign = [taint["key"] for taint in taints_of(node) if _keeps_out(taint)]
    return f"it is tainted: {', '.join(foreign)}" if foreign else ""


def _keeps_out(taint: Object) -> bool:
    known = (TAINT, GPU)
    return taint["key"] not in known and taint.get("effect") in ("NoSchedule", "NoExecute")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _product(label: str) -> str:
    return label.partition("-MIG-")[0].removesuffix("-SHARED")
