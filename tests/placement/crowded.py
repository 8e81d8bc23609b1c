"""Cards that many sharers ask for, more than there is room for or nearly so."""

import random
from collections.abc import Sequence

from videoflow.placement import Card, Demand, Host, Kind, Problem

GIB = 1 << 30


def hosts(sizes: Sequence[Sequence[float]], sharers_left: int | None = None) -> tuple[Host, ...]:
    """Hosts with cards of so many GiB."""
    return tuple(
        Host(
            f"h{n}",
            tuple(
                Card(f"h{n}/{i}", int(gib * GIB), free_bytes=int(gib * GIB), sharers_left=sharers_left)
                for i, gib in enumerate(cards)
            ),
        )
        for n, cards in enumerate(sizes)
    )


def sharers(*peaks: float) -> tuple[Demand, ...]:
    """One sharer for each peak, in GiB."""
    return tuple(Demand(f"d{n}", Kind.SHARE, peak_bytes=int(peak * GIB)) for n, peak in enumerate(peaks))


def crowded(seed: int, most_gib: int) -> Problem:
    """40 sharers on 16 cards of which some are in use, of one host or of several."""
    draw = random.Random(seed)
    shape = draw.choice(((16,), (4, 4, 4, 4), (1,) * 16))
    sizes = [[draw.choice((79.6, 79.6, 60.0)) for _ in range(count)] for count in shape]
    return Problem(hosts(sizes), sharers(*(draw.uniform(2, most_gib) for _ in range(40))))
