"""What NVIDIA publishes about MIG, typed in from its pages; it judges the catalogue and is not made from it.

Names, fractions of memory and numbers of instances: docs.nvidia.com/datacenter/tesla/mig-user-guide/
supported-mig-profiles.html. Start positions: getting-started-with-mig.html of the same guide, which shows
what `nvidia-smi mig -lgipp` lists; for the A30 a listing of such a machine. Usable GiB: the column "Memory
GiB" of listings of `nvidia-smi mig -lgip`. Device ids: github.com/NVIDIA/mig-parted, the file
deployments/systemd/config-default.yaml. All read on 2026-11-30.
"""

GIB = 1 << 30
MIB = 1 << 20

# Compute slices and kind → memory slots, possible first slots, instances on one card.
SEVEN = {
    "1g": (1, (0, 1, 2, 3, 4, 5, 6), 7),
    "1g double": (2, (0, 2, 4, 6), 4),
    "2g": (2, (0, 2, 4), 3),
    "3g": (4, (0, 4), 2),
    "4g": (4, (0,), 1),
    "7g": (8, (0,), 1),
}
FOUR = {"1g": (1, (0, 1, 2, 3), 4), "2g": (2, (0, 2), 2), "4g": (4, (0,), 1)}

# Card → memory slots, and the names of its profiles in the order of the kinds above.
PROFILES = {
    "A100-40": (8, "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
    "A100-80": (8, "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
    "H100-80": (8, "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
    "H100-94": (8, "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb"),
    "H200-141": (8, "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
    "B200-180": (8, "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
    "A30": (4, "1g.6gb 2g.12gb 4g.24gb"),
}

# Usable GiB as printed, two decimals, in the same order; only what a listing was found for.
USABLE_GIB = {
    "A100-40": (4.75, 9.62, 9.62, 19.50, 19.50, 39.25),
    "A100-80": (9.50, 19.50, 19.50, 39.25, 39.25, 79.00),
    "H100-80": (9.75, 19.62, 19.62, 39.50, 39.50, 79.25),
    "H100-94": (10.62, 21.50, 21.50, 46.12, 46.12, 92.62),
    "H200-141": (16.00,),
    "A30": (5.81, 11.69, 23.44),
}

DEVICE_IDS = {
    "0x20B010DE": "A100-40",
    "0x20B110DE": "A100-40",
    "0x20B210DE": "A100-80",
    "0x20B510DE": "A100-80",
    "0x233010DE": "H100-80",
    "0x233110DE": "H100-80",
    "0x232110DE": "H100-94",
    "0x233510DE": "H200-141",
    "0x233B10DE": "H200-141",
    "0x290110DE": "B200-180",
    "0x20B710DE": "A30",
}

# Profiles with media extensions, of which a card holds one in all.
MEDIA = {"A100-40": ["1g.5gb+me"], "H100-80": ["1g.10gb+me"], "A30": ["1g.6gb+me", "2g.12gb+me"]}


def shapes(card: str) -> dict[str, tuple[int, tuple[int, ...], int]]:
    """Profile → memory slots, possible first slots, instances."""
    slots, names = PROFILES[card]
    return dict(zip(names.split(), (SEVEN if slots == 8 else FOUR).values(), strict=True))


def usable(card: str) -> dict[str, float]:
    """Profile → usable GiB as printed, where that is known."""
    return dict(zip(PROFILES[card][1].split(), USABLE_GIB[card], strict=False))
