"""Legal places of slices in the grid of one card; a place is a bit mask of memory slots."""

from collections.abc import Iterator, Sequence
from functools import cache

from videoflow.placement._catalogue import CardModel, Profile


def footprint(width: int, start: int) -> int:
    """Returns the slots that a slice takes, as bits."""
    return ((1 << width) - 1) << start


def legal_starts(profile: Profile, occupied: int) -> Iterator[int]:
    """Yields where a slice can still begin, given the slots that are taken."""
    for start in profile.starts:
        if not footprint(profile.width, start) & occupied:
            yield start


def narrowest(
    model: CardModel, memory_bytes: int, names: Sequence[str] = (), media: bool = False
) -> Profile | None:
    """Returns the smallest profile that gives so much usable memory, or None.

    Args:
        model: The card.
        memory_bytes: Usable memory, at least; compared with usable bytes, never with the label.
        names: Profiles that may be used; empty: any without media extensions.
        media: Whether profiles with media extensions may be used though nobody named one.
    """
    allowed = [model.profile(name) for name in names] if names else list(model.profiles)
    suited = [
        profile
        for profile in allowed
        if profile is not None
        and profile.usable_bytes >= memory_bytes
        and (names or media or not profile.media)
    ]
    return min(suited, key=lambda profile: (profile.width, profile.compute, profile.media), default=None)


def is_legal(model: CardModel, placed: Sequence[tuple[str, int]]) -> bool:
    """Returns whether slices, each a profile and a start, can be on one card together."""
    occupied, media = 0, 0
    counts: dict[str, int] = {}
    for name, start in placed:
        profile = model.profile(name)
        if profile is None or start not in legal_starts(profile, occupied):
            return False
        occupied |= footprint(profile.width, start)
        media += profile.media
        counts[profile.name] = counts.get(profile.name, 0) + 1
        if counts[profile.name] > profile.maximum or media > 1:
            return False
    return True


def layout(model: CardModel, names: Sequence[str]) -> tuple[tuple[str, int], ...] | None:
    """Returns where slices of these profiles can begin on one empty card, or None where they cannot."""
    profiles = [model.profile(name) for name in names]
    if any(profile is None for profile in profiles):
        return None
    ordered = sorted(
        (p for p in profiles if p is not None), key=lambda profile: (-profile.width, profile.name)
    )
    return _laid_out(model, ordered, ())


def _laid_out(
    model: CardModel, left: Sequence[Profile], placed: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...] | None:
    if not left:
        return placed
    last = placed[-1] if placed else ("", -1)
    for start in left[0].starts:
        if left[0].name == last[0] and start < last[1]:
            continue
        further = (*placed, (left[0].name, start))
        if is_legal(model, further) and (found := _laid_out(model, left[1:], further)) is not None:
            return found
    return None


@cache
def stranded_slots(model: CardModel, occupied: int) -> int:
    """Returns how many free slots no further slice could ever cover."""
    free = ((1 << model.slots) - 1) & ~occupied
    covered = 0
    for profile in model.profiles:
        for start in legal_starts(profile, occupied):
            covered |= footprint(profile.width, start)
    return (free & ~covered).bit_count()


@cache
def most_slices(model: CardModel, memory_bytes: int, occupied: int = 0) -> int:
    """Returns how many slices with so much usable memory can be on one card beside what is there."""
    profile = narrowest(model, memory_bytes)
    if profile is None:
        return 0
    best = 0
    for start in legal_starts(profile, occupied):
        best = max(best, 1 + most_slices(model, memory_bytes, occupied | footprint(profile.width, start)))
    return best
