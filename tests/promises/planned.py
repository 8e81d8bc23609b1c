"""A flow with one of each kind of task and edge, whose plan is looked at and run."""

import videoflow as vf
from tests.engines import flows
from tests.engines.flows import Repeat, Rows, Total, odd_only, same


class Numbers(flows.Numbers):
    """Numbers that need little room."""

    max_item_bytes = 1024


class Pair(vf.Processor):
    """Joins two numbers."""

    def process(self, left: int, right: int | None) -> list[int | None]:
        return [left, right]


def build_flow(count: int = 40) -> vf.Flow:
    numbers = Numbers(count, name="numbers")
    parallel = same(name="parallel", replicas=2)(numbers)
    total = Total(name="total")(parallel)
    pair = Pair(name="pair", missing="none")(numbers, odd_only(name="odd")(numbers))
    inner = same(name="inner", fuse="one")(same(name="outer", fuse="one")(Repeat(name="repeat")(numbers)))
    return vf.Flow(
        [
            Rows(name="rows")(vf.merge(total, Numbers(5, name="more"))),
            Rows(name="pairs")(pair),
            Rows(name="newest")(numbers.latest(max_age_seconds=10)),
            Rows(name="parts")(inner),
        ]
    )
