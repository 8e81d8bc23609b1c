"""The shared-memory log between real processes: exclusive, competing, passed on, and killed."""

import os
import random
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.adapters.shm_flow import ROOT, Flow, Node, Settings
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.intervals import IntervalSet
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


_LOOK_SECONDS = 0.005


def killing(count: int, seed: int, *, every: int) -> Callable[[Flow], float]:
    """Kills a random worker when so many items more came out, on average; `count` times."""
    chance = random.Random(seed)
    state = {"next": 1.0, "killed": 0}

    def between(flow: Flow) -> float:
        if state["killed"] == count:
            return 1.0
        out = len(flow.seen())
        if out >= state["next"] and flow.processes:
            flow.kill(chance.choice(sorted(flow.processes)))
            state["killed"] += 1
            state["next"] = out + chance.random() * 2 * every
        return _LOOK_SECONDS

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


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_nothing_is_lost_or_said_twice(tmp_path: Path, seed: int) -> None:
    size = 100_000
    settings = Settings(items=200, payload_bytes=size, forward=seed % 2 == 0)
    with running(chain(2, slab=size * 30), settings, tmp_path) as flow:
        flow.run(between=killing(12, seed, every=8))
        assert flow.deaths >= 6
        assert_complete(flow, 200)


def closed(records: list[OriginRecord]) -> dict[tuple[str, int], tuple[tuple[int, int], ...]]:
    found: dict[tuple[str, int], IntervalSet] = {}
    for record in records:
        mine = found.setdefault((record.node, record.epoch), IntervalSet())
        for _, _, intervals in record.ordinals:
            for first, last in intervals:
                assert not any(n in mine for n in range(first, last + 1)), "two fates for one item"
                mine.add(first, last)
    return {key: numbers.intervals() for key, numbers in found.items()}


@pytest.mark.parametrize("kills", [0, 8])
def test_a_live_reader_gets_the_newest_and_every_loss_is_in_the_ledger(tmp_path: Path, kills: int) -> None:
    size = 50_000
    nodes = [
        Node("source", "source", writes=[True, False], slab_bytes=size * 40),
        Node("work", "processor", [("source", True, True)], [False], 2, size * 20),
        Node("sink", "sink", [("source", True, False), ("work", False, False), ("source", False, False)]),
    ]
    settings = Settings(items=250, payload_bytes=size, forward=True)
    with running(nodes, settings, tmp_path) as flow:
        flow.run(between=killing(kills, 5, every=16))
        assert flow.deaths >= kills // 2
        whole = {("source", 0): ((0, 249),)}
        for sub in flow.subscriptions:
            assert closed(flow.settled(sub.subscription)) == closed(flow.announced(sub.subscription.channel))
            if sub.subscription.channel.node == "source":
                assert closed(flow.settled(sub.subscription)) == whole
        reliable = {ordinal for number, ordinal, _ in flow.seen() if number == 2}
        assert reliable == set(range(250)), "the live reader cost the reliable one something"
        assert 249 in {ordinal for number, ordinal, kind in flow.seen() if number == 0 and kind == "data"}


BARRIERS = {
    "source": ["payload.sealed", "shm.appended", "shm.committed", "publish.accepted", "terminator.sent"],
    "work": [
        "receive.after",
        "payload.sealed",
        "shm.appended",
        "shm.committed",
        "publish.accepted",
        "shm.settled",
        "settle.sent",
        "terminator.sent",
    ],
    "sink": ["receive.after", "shm.settled", "settle.sent"],
}


@pytest.mark.parametrize("forward", [False, True], ids=["new", "passed-on"])
@pytest.mark.parametrize("task", BARRIERS)
def test_killed_at_every_barrier(tmp_path: Path, task: str, forward: bool) -> None:
    size = 60_000
    settings = Settings(items=80, payload_bytes=size, forward=forward)
    with running(chain(1, slab=size * 30), settings, tmp_path) as flow:
        barriers = [b for b in BARRIERS[task] if not (forward and task == "work" and b == "payload.sealed")]
        for number, barrier in enumerate(barriers, 1):
            hit = 1 if barrier == "terminator.sent" else 2 + number % 3
            flow.faults[task, 0, number] = [{"barrier": barrier, "hit": hit}]
        flow.run()
        assert flow.deaths == len(barriers), "a barrier was not hit"
        assert_complete(flow, 80)


SUPERVISOR = """
import sys
from pathlib import Path
from tests.adapters.shm_flow import Flow, Settings
from tests.adapters.test_shm_processes import chain

def tell(flow):
    if flow.log.exists():
        print(*[process.pid for _, _, process in flow.processes.values()], flush=True)
    return 0.05

Flow(chain(2, slab=1 << 20), Settings(items=10**6, payload_bytes=10_000), Path(sys.argv[1])).run(between=tell)
"""


def test_workers_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )
    assert supervisor.stdout is not None
    workers = [os.pidfd_open(int(pid)) for pid in supervisor.stdout.readline().split()]
    assert len(workers) == 4
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    poll, clock = select.poll(), RealClock()
    for worker in workers:
        poll.register(worker, select.POLLIN)
    left, deadline = set(workers), clock.monotonic() + 20
    while left:
        assert clock.monotonic() < deadline, "a worker outlived its supervisor"
        for worker, _ in poll.poll(1000):
            left.discard(worker)
            poll.unregister(worker)
    for worker in workers:
        os.close(worker)
