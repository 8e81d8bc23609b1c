"""How long placing takes: 16 cards and 40 sharers, and other shapes, as ratios to a tenth of a second.

Run as `python benchmarks/placement.py [ROUNDS]`. Prints for each shape the median and the worst ratio over
random problems, and how many answers were proven best, feasible with a bound, or unproven. A ratio of 1 is
100 ms of processor time.
"""

import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

from videoflow.placement import Card, Demand, Host, Kind, Problem, load_catalogue, solve

GIB = 1 << 30
REFERENCE_SECONDS = 0.1
H100 = "NVIDIA H100 80GB HBM3"


def hosts(count: int, cards: int, managed: bool) -> tuple[Host, ...]:
    """Hosts of H100 cards."""
    model = load_catalogue().card(H100)
    assert model is not None
    memory = model.memory_bytes
    return tuple(
        Host(
            f"h{n}",
            tuple(Card(f"h{n}/{i}", memory, model, managed=managed, free_bytes=memory) for i in range(cards)),
        )
        for n in range(count)
    )


def sharers(draw: random.Random, most_gib: int) -> Problem:
    """40 sharers with peaks of their own on 16 cards."""
    demands = tuple(
        Demand(f"d{i}", Kind.SHARE, peak_bytes=draw.randrange(2 * GIB, most_gib * GIB)) for i in range(40)
    )
    shape = draw.choice(((2, 8), (4, 4), (16, 1)))
    return Problem(hosts(*shape, managed=False), demands)


def slices(draw: random.Random) -> Problem:
    """40 slices of several sizes on 16 cards."""
    demands = tuple(
        Demand(f"d{i}", Kind.SLICE, memory_bytes=draw.choice((5, 9, 10, 19, 39)) * GIB) for i in range(40)
    )
    return Problem(hosts(4, 4, managed=True), demands)


def mixed(draw: random.Random) -> Problem:
    """Whole cards, slices and sharers on 16 cards."""
    demands = [Demand(f"w{i}", count=draw.choice((1, 2))) for i in range(4)]
    demands += [Demand(f"s{i}", Kind.SLICE, memory_bytes=draw.choice((9, 19)) * GIB) for i in range(12)]
    demands += [Demand(f"p{i}", Kind.SHARE, peak_bytes=draw.randrange(2, 12) * GIB) for i in range(16)]
    return Problem(hosts(4, 4, managed=True), tuple(demands))


SHAPES: dict[str, Callable[[random.Random], Problem]] = {
    "40 sharers that fit": lambda draw: sharers(draw, 40),
    "40 sharers, nearly full": lambda draw: sharers(draw, 58),
    "40 sharers, too many": lambda draw: sharers(draw, 75),
    "40 slices": slices,
    "whole, slices, sharers": mixed,
}


def main() -> None:
    """Prints one row for each shape."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{'16 cards':<26} {'median':>7} {'worst':>7}  labels")
    for name, make in SHAPES.items():
        ratios, labels = [], Counter[str]()
        for seed in range(rounds):
            problem = make(random.Random(seed))
            started = time.process_time()
            answer = solve(problem, relax=False)
            ratios.append((time.process_time() - started) / REFERENCE_SECONDS)
            labels[str(answer.label)] += 1
        said = ", ".join(f"{count} {label}" for label, count in sorted(labels.items()))
        print(f"{name:<26} {statistics.median(ratios):>7.2f} {max(ratios):>7.2f}  {said}")


if __name__ == "__main__":
    main()
