"""A group whose first node shares its input by key: every node in it has state of its own share."""

from collections.abc import Iterator
from typing import Any

import videoflow as vf
from tests.engines.flows import Rows
from tests.simulation.graphs import simulated, source
from videoflow.graph import merge
from videoflow.simulation import PlannedFault, Schedule
from videoflow.simulation import _library as library

GROUP: Any = {"fuse": "one", "replicas": 2}


class Keyed(vf.Producer):
    """Numbers under three keys."""

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, 24):
            yield vf.Item(number, offset=number, key=f"{number % 3}")


class Newest(vf.Processor):
    """Pairs a number with the one before it of its remainder by three."""

    def process(self, pair: Any, ctx: vf.Context) -> list[Any]:
        number = pair[0] if isinstance(pair, list) else pair
        key = f"{number % 3}"
        before = ctx.state.get(key)
        ctx.state[key] = number
        return [number, before]


def test_a_group_in_parts_makes_what_its_nodes_make_alone() -> None:
    def rows(**second: Any) -> Any:
        first = Newest(name="first", partition_by="key", fuse="one" if "fuse" in second else None, replicas=2)
        newest = Newest(name="second", **second)(first(Keyed(name="keyed")))
        return vf.Flow([Rows(name="rows")(newest)]).run().values["rows"]

    assert rows(**GROUP) == rows(partition_by="key", replicas=2)
    assert rows(**GROUP)[3:] == [[number, number - 3] for number in range(3, 24)]


def test_each_part_goes_on_with_its_own_state() -> None:
    several = merge(source(6), library.Source(5, name="s2"), library.Source(5, name="s3"))
    first = library.Sum(1, name="first", partition_by="source", **GROUP)(several)
    last = library.LastWords(2, name="last", **GROUP)(first)
    simulation = simulated(library.Rows(name="rows")(last))
    assert simulation.broken == ()
    for seed, point in enumerate(("commit.after", "process.after", "publish.sent", "settle.sent") * 2):
        fault = PlannedFault(f"first-{seed % 2}", point, "crash", 1 + seed % 2)
        result = simulation.run(Schedule(seed, (fault,)))
        assert result.violations == (), result
