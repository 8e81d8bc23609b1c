"""The shared-memory log between real processes: exclusive, competing, passed on, and killed."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.adapters.shm_flow import Flow, Node, Settings


@contextmanager
def running(nodes: list[Node], settings: Settings, folder: Path) -> Iterator[Flow]:
    flow = Flow(nodes, settings, folder)
    try:
        yield flow
    finally:
        flow.stop()


def chain(replicas: int, slab: int = 0) -> list[Node]:
    return [
        Node("source", "source", writes=[False], slab_bytes=slab),
        Node("work", "processor", [("source", False, True)], [False], replicas, slab),
        Node("sink", "sink", [("work", False, False)]),
    ]


def test_every_item_arrives_once_and_in_the_order_of_its_slot(tmp_path: Path) -> None:
    settings = Settings(items=300)
    with running(chain(2), settings, tmp_path) as flow:
        flow.run()
        assert Counter(ordinal for _, ordinal, _ in flow.seen()) == Counter(range(300))
        for spec in flow.channels:
            assert [r.ordinals for r in flow.announced(spec.channel)] == [[("delivered", "", [(0, 299)])]]
        for sub in flow.subscriptions:
            assert [r.ordinals for r in flow.settled(sub.subscription)] == [[("delivered", "", [(0, 299)])]]


@pytest.mark.parametrize("forward", [False, True])
def test_payloads_are_intact_whether_passed_on_or_made_anew(tmp_path: Path, forward: bool) -> None:
    size = 200_000
    settings = Settings(items=120, payload_bytes=size, forward=forward)
    with running(chain(2, slab=size * 30), settings, tmp_path) as flow:
        flow.run()
        assert Counter(ordinal for _, ordinal, _ in flow.seen()) == Counter(range(120))
        assert flow.host.socket_bytes < 120 * size / 100
