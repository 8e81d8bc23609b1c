"""The shared-memory log between real processes: exclusive, competing, passed on, and killed."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.adapters.shm_flow import Flow, Node, Settings
from videoflow.backends.outcomes import Known
from videoflow.clock import RealClock


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


def killing(count: int, seed: int, *, every: float = 0.03) -> Callable[[Flow], float]:
    """Kills a random worker every so many seconds on average, `count` times, once something came out."""
    chance = random.Random(seed)
    clock = RealClock()
    state = {"next": 0.0, "killed": 0}

    def between(flow: Flow) -> float:
        now = clock.monotonic()
        if state["killed"] < count and now >= state["next"] and flow.processes and flow.log.exists():
            flow.kill(chance.choice(sorted(flow.processes)))
            state["killed"] += 1
            state["next"] = now + chance.random() * 2 * every
        return max(0.0, state["next"] - clock.monotonic()) if state["killed"] < count else 1.0

    return between


def assert_complete(flow: Flow, items: int) -> None:
    ordinals = Counter(ordinal for _, ordinal, _ in flow.seen())
    assert set(ordinals) == set(range(items))
    whole = [[("delivered", "", [(0, items - 1)])]]
    for spec in flow.channels:
        assert [r.ordinals for r in flow.announced(spec.channel)] == whole
        status = flow.host.observe_channel(spec.channel, deadline=0.0)
        assert isinstance(status, Known)
        assert sum(last + 1 for last in status.value.last.values()) == items, "something was said twice"
        assert status.value.items == 0
    for sub in flow.subscriptions:
        assert [r.ordinals for r in flow.settled(sub.subscription)] == whole


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_nothing_is_lost_or_said_twice(tmp_path: Path, seed: int) -> None:
    size = 100_000
    settings = Settings(items=200, payload_bytes=size, forward=seed % 2 == 0)
    with running(chain(2, slab=size * 30), settings, tmp_path) as flow:
        flow.run(between=killing(12, seed, every=0.15))
        assert flow.deaths >= 6
        assert_complete(flow, 200)
