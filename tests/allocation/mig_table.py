"""Judges MIG layouts by what NVIDIA publishes, as typed in `tests.placement.vendor`; never by the catalogue.

Source: docs.nvidia.com/datacenter/tesla/mig-user-guide (supported profiles, and placements as `nvidia-smi mig
-lgipp` prints them), read on 2026-11-30.
"""

from collections import Counter

from tests.placement.vendor import GIB, MEDIA, shapes, usable

Layout = tuple[tuple[str, int], ...]

# Names as the driver spells them.
PRODUCTS = {
    "NVIDIA A30": "A30",
    "NVIDIA A100-SXM4-40GB": "A100-40",
    "NVIDIA A100-SXM4-80GB": "A100-80",
    "NVIDIA H100 80GB HBM3": "H100-80",
    "NVIDIA H200": "H200-141",
}


class VendorTable:
    """What an independent reader of the vendor's pages would say."""

    def illegal(self, product: str, layout: Layout) -> str:
        """Why a card cannot be cut so, or nothing."""
        card = PRODUCTS.get(product)
        if card is None:
            return f"{product} cannot be cut" if layout else ""
        known, taken, counts = shapes(card), set[int](), Counter[str]()
        for profile, start in layout:
            plain = profile.removesuffix("+me")
            if plain not in known or (profile != plain and profile not in MEDIA.get(card, ())):
                return f"{card} has no profile {profile}"
            width, starts, most = known[plain]
            slots = set(range(start, start + width))
            counts[plain] += 1
            if start not in starts or taken & slots or counts[plain] > most:
                return f"{profile} cannot be at {start} of {card}"
            taken |= slots
        return "media twice" if sum(profile.endswith("+me") for profile, _ in layout) > 1 else ""

    def usable_bytes(self, product: str, profile: str) -> int:
        """What a driver lists, or less than any driver does."""
        return int(usable(PRODUCTS[product]).get(profile.removesuffix("+me"), 1.0) * GIB)
