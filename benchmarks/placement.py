"""How long placing takes: 16 cards and 40 sharers, and other shapes, in milliseconds of processor time.

Run as `python benchmarks/placement.py [ROUNDS]`. Prints for each shape the median, the quartiles and the
worst over random problems, how many answers were proven best, feasible with a bound, or unproven, and how
many refusals are proven or only stand. The checker looks over every answer, after its time was taken.
"""

import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

from videoflow.placement import Answer, Card, Demand, Host, Kind, Problem, load_catalogue, solve
from videoflow.placement.check import answer_faults, bound_faults, certificate_faults

GIB = 1 << 30
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


def faults(problem: Problem, answer: Answer) -> list[str]:
    """What a checker holds against an answer."""
    found = [*answer_faults(problem, answer), *bound_faults(problem, answer)]
    for refusal in answer.refusals:
        found += certificate_faults(problem, refusal.certificate, answer)
    return found


def main() -> None:
    """Prints one row for each shape; fails where the checker holds anything against an answer."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    held = []
    print(f"{'16 cards, milliseconds':<26} {'median':>7} {'quartiles':>11} {'worst':>6}  labels; refusals")
    for name, make in SHAPES.items():
        taken, labels, refusals = [], Counter[str](), Counter[str]()
        for seed in range(rounds):
            problem = make(random.Random(seed))
            started = time.process_time()
            answer = solve(problem, relax=False)
            taken.append((time.process_time() - started) * 1000)
            labels[str(answer.label)] += 1
            refusals.update("proven" if refusal.proven else "standing" for refusal in answer.refusals)
            held += faults(problem, answer)
        low, middle, high = statistics.quantiles(taken, n=4)
        said = "; ".join(
            ", ".join(f"{n} {word}" for word, n in sorted(c.items())) for c in (labels, refusals)
        )
        print(f"{name:<26} {middle:>7.0f} {f'{low:.0f} to {high:.0f}':>11} {max(taken):>6.0f}  {said}")
    print(f"the checker holds {len(held)} faults against these answers", *held, sep="\n")
    sys.exit(bool(held))


if __name__ == "__main__":
    main()
