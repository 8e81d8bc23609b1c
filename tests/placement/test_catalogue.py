"""The catalogue against what the vendor publishes, legal places, and what a label is not."""

from itertools import combinations_with_replacement, product

import pytest

from tests.placement.vendor import DEVICE_IDS, GIB, MEDIA, MIB, PROFILES, USABLE_GIB, shapes, usable
from videoflow.placement import (
    Card,
    CardModel,
    Demand,
    Host,
    Kind,
    Label,
    Problem,
    is_legal,
    layout,
    load_catalogue,
    most_slices,
    narrowest,
    solve,
    stranded_slots,
)

H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-40GB"


def model(name: str) -> CardModel:
    return next(card for card in load_catalogue().cards if card.name == name)


@pytest.mark.parametrize("card", PROFILES)
def test_names_places_and_numbers_are_the_vendors(card: str) -> None:
    found = model(card)
    assert found.slots == PROFILES[card][0]
    plain = {p.name: (p.width, p.starts, p.maximum) for p in found.profiles if not p.media}
    assert plain == shapes(card)


@pytest.mark.parametrize("card", USABLE_GIB)
def test_usable_memory_is_what_a_driver_lists_and_says_so(card: str) -> None:
    listed = usable(card)
    for profile in model(card).profiles:
        gib = listed.get(profile.name.removesuffix("+me"))
        assert profile.measured is (gib is not None)
        if gib is not None:
            assert abs(profile.usable_bytes / GIB - gib) <= 0.006


def test_an_estimate_promises_less_than_its_label() -> None:
    for card in load_catalogue().cards:
        for profile in card.profiles:
            if not profile.measured:
                assert profile.usable_bytes < profile.label_gb * 10**9


def test_the_catalogue_names_its_sources_and_their_date() -> None:
    catalogue = load_catalogue()
    assert catalogue.date == "2026-11-30"
    assert any("mig-user-guide" in source for source in catalogue.sources)


@pytest.mark.parametrize("device_id", DEVICE_IDS)
def test_a_device_id_finds_its_card_whatever_it_is_called(device_id: str) -> None:
    found = load_catalogue().card("some name", device_id)
    assert found is not None
    assert found.name == DEVICE_IDS[device_id]
    assert load_catalogue().card(A100, int(device_id, 16)) == found


@pytest.mark.parametrize(
    ("product", "card"),
    [
        (H100, "H100-80"),
        ("NVIDIA-H100-80GB-HBM3", "H100-80"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", "H100-80"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-40"),
        ("NVIDIA A30", "A30"),
        ("Tesla T4", None),
        ("NVIDIA H1000", None),
    ],
)
def test_a_name_finds_its_card_as_drivers_and_labels_spell_it(product: str, card: str | None) -> None:
    found = load_catalogue().card(product)
    assert (found and found.name) == card


def test_what_a_driver_says_replaces_the_catalogue_for_that_profile_only() -> None:
    before = model("H200-141")
    after = before.with_usable({"3g.71gb": 70 * GIB})
    changed = [(a, b) for a, b in zip(before.profiles, after.profiles, strict=True) if a != b]
    assert [(a.name, b.usable_bytes, b.measured) for a, b in changed] == [("3g.71gb", 70 * GIB, True)]


@pytest.mark.parametrize("card", PROFILES)
def test_media_extensions_are_on_one_slice_of_a_card_and_never_taken_unasked(card: str) -> None:
    media = [profile.name for profile in model(card).profiles if profile.media]
    assert media == MEDIA.get(card, media)
    for first, second in product(media, media):
        assert layout(model(card), [first, second]) is None
    assert all(layout(model(card), [name]) for name in media)
    least = narrowest(model(card), 1)
    assert least is not None
    assert not least.media


@pytest.mark.parametrize("card", ["A100-40", "A30"])
def test_layouts_are_exactly_those_that_the_published_places_allow(card: str) -> None:
    every = shapes(card)
    for names in combinations_with_replacement(sorted(every), 3):
        places = product(*(every[name][1] for name in names))
        allowed = any(
            sum(every[name][0] for name in names)
            == len({s for name, at in zip(names, start, strict=True) for s in range(at, at + every[name][0])})
            for start in places
        )
        found = layout(model(card), names)
        assert (found is not None) is allowed, names
        if found is not None:
            assert is_legal(model(card), found)
            assert sorted(name for name, _ in found) == sorted(names)


@pytest.mark.parametrize(
    ("names", "fits"),
    [
        (["3g.40gb"] * 2, True),
        (["1g.20gb"] * 4, True),
        (["7g.80gb"], True),
        (["2g.20gb"] * 3 + ["1g.20gb"], True),
        (["4g.40gb", "3g.40gb"], True),
        (["2g.20gb"] * 4, False),
        (["4g.40gb"] * 2, False),
        (["1g.10gb"] * 8, False),
        (["7g.80gb", "1g.10gb"], False),
    ],
)
def test_an_h100_that_reports_81559_mib_can_be_cut_like_this(names: list[str], fits: bool) -> None:
    found = load_catalogue().card(H100, "0x233010DE")
    assert found is not None
    assert found.memory_bytes == 81559 * MIB
    assert (layout(found, names) is not None) is fits


def test_a_start_that_is_free_and_not_legal_is_refused() -> None:
    h100 = model("H100-80")
    assert is_legal(h100, [("3g.40gb", 4)])
    for name, start in [("3g.40gb", 2), ("2g.20gb", 6), ("1g.20gb", 1), ("1g.10gb", 7), ("4g.40gb", 4)]:
        assert not is_legal(h100, [(name, start)]), (name, start)


def test_slots_that_nothing_can_cover_are_counted() -> None:
    h100 = model("H100-80")
    assert stranded_slots(h100, 0b0000_0000) == 0
    assert stranded_slots(h100, 0b0111_1111) == 1
    assert stranded_slots(h100, 0b0100_0000) == 1
    assert stranded_slots(h100, 0b0000_1111) == 0


def test_the_number_of_slices_is_that_of_places_not_of_gigabytes() -> None:
    h100 = model("H100-80")
    assert [most_slices(h100, size * GIB) for size in (9, 10, 19, 20, 39, 40, 79, 80)] == [
        7,
        4,
        4,
        2,
        2,
        1,
        1,
        0,
    ]


def host(name: str, product: str, count: int) -> Host:
    found = load_catalogue().card(product)
    assert found is not None
    cards = tuple(Card(f"{name}/{i}", found.memory_bytes, found, managed=True) for i in range(count))
    return Host(name, cards)


def test_ten_gib_are_not_served_by_a_slice_whose_label_says_ten() -> None:
    problem = Problem((host("a", H100, 1),), (Demand("d", Kind.SLICE, memory_bytes=10 * GIB),))
    answer = solve(problem)
    assert [device.profile for device in answer.assignments["d"].devices] == ["1g.20gb"]
    named = Demand("d", Kind.SLICE, memory_bytes=10 * GIB, profiles=("1g.10gb",))
    assert solve(Problem(problem.hosts, (named,))).assignments == {}


def test_four_slices_of_39_gib_and_two_of_19_fit_on_one_a100_and_two_h100() -> None:
    demands = [Demand(f"big{i}", Kind.SLICE, memory_bytes=39 * GIB) for i in range(4)]
    demands += [Demand(f"small{i}", Kind.SLICE, memory_bytes=19 * GIB) for i in range(2)]
    hosts = (host("a", A100, 1), host("h", H100, 2))
    answer = solve(Problem(hosts, tuple(demands)))
    assert (answer.label, answer.aim.refused) == (Label.OPTIMAL, 0)
    for demand in demands:
        (device,) = answer.assignments[demand.key].devices
        card = "A100-40" if device.card.startswith("a") else "H100-80"
        assert usable(card)[device.profile or ""] * GIB >= demand.memory_bytes
    more = (*demands, *(Demand(f"more{i}", Kind.SLICE, memory_bytes=39 * GIB) for i in range(2)))
    assert solve(Problem(hosts, more)).aim.refused > 0
