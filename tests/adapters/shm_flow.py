"""A supervisor for the shared-memory tests: starts workers, notices deaths, starts the next incarnation."""

import json
import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.adapters.shm_worker import channel_id, subscription_id
from videoflow.adapters.shm import ShmHost, TaskShape
from videoflow.backends.capabilities import Profile
from videoflow.backends.coverage import OriginRecord
from videoflow.backends.messaging import (
    Bounds,
    ChannelId,
    ChannelSpec,
    LiveSubscriptionSpec,
    OwnerLabels,
    ReliableSubscriptionSpec,
    SubscriptionId,
)
from videoflow.backends.outcomes import Known
from videoflow.clock import RealClock

LABELS = OwnerLabels("flow", "run")
BOUND = Bounds(16, 1 << 24)
CREDIT = Bounds(12, 1 << 24)
SCRIPT = Path(__file__).with_name("shm_worker.py")
ROOT = SCRIPT.parents[2]


@dataclass
class Node:
    """One task of a test flow; reads are (task, live, competing)."""

    name: str
    role: str
    reads: list[tuple[str, bool, bool]] = field(default_factory=list)
    writes: list[bool] = field(default_factory=list)
    replicas: int = 1
    slab_bytes: int = 0
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Settings:
    """Sizes of a test flow."""

    items: int = 60
    payload_bytes: int = 0
    bound: Bounds = BOUND
    credit: Bounds = CREDIT
    spread: int | None = 8
    capacity: int = 1
    forward: bool = False


class Flow:
    """Runs nodes as processes over one host."""

    def __init__(self, nodes: list[Node], settings: Settings, folder: Path) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.settings = settings
        self.log = folder / "log"
        self.host = ShmHost(RealClock(), 1 << 30)
        self.incarnations: Counter[tuple[str, int]] = Counter()
        self.processes: dict[int, tuple[str, int, subprocess.Popen[bytes]]] = {}
        self.deaths = 0
        self.faults: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        self._poll = select.epoll()
        channels, subscriptions = self._specs()
        self.channels = channels
        self.subscriptions = subscriptions
        self.host.provision(channels, subscriptions, [self._shape(node) for node in nodes])

    def _channels_of(self, node: Node) -> list[ChannelId]:
        return [channel_id(node.name, live=live) for live in node.writes]

    def _reads_of(self, node: Node) -> list[SubscriptionId]:
        return [
            subscription_id(channel_id(task, live=live), f"{node.name}/{n}", competing=competing)
            for n, (task, live, competing) in enumerate(node.reads)
        ]

    def _specs(self) -> tuple[list[ChannelSpec], list[ReliableSubscriptionSpec | LiveSubscriptionSpec]]:
        subscriptions: list[ReliableSubscriptionSpec | LiveSubscriptionSpec] = []
        for node in self.nodes.values():
            for (_, live, competing), name in zip(node.reads, self._reads_of(node), strict=True):
                subscriptions.append(self._subscription(name, node.replicas, live=live, competing=competing))
        channels = []
        for node in self.nodes.values():
            for live, channel in zip(node.writes, self._channels_of(node), strict=True):
                readers = tuple(s.subscription for s in subscriptions if s.subscription.channel == channel)
                profile = Profile.LIVE_LATEST if live else Profile.RELIABLE_WORK
                channels.append(
                    ChannelSpec(
                        channel=channel,
                        profile=profile,
                        slots=node.replicas,
                        bounds=self.settings.bound,
                        subscriptions=readers,
                        labels=LABELS,
                    )
                )
        return channels, subscriptions

    def _subscription(
        self, name: SubscriptionId, replicas: int, *, live: bool, competing: bool
    ) -> ReliableSubscriptionSpec | LiveSubscriptionSpec:
        if live:
            return LiveSubscriptionSpec(
                subscription=name,
                credit=self.settings.credit,
                replicas=replicas,
                latest_key=None,
                capacity=self.settings.capacity,
                max_age_seconds=None,
                labels=LABELS,
            )
        return ReliableSubscriptionSpec(
            subscription=name,
            credit=self.settings.credit,
            spread=self.settings.spread if competing else None,
            replicas=replicas,
            labels=LABELS,
        )

    def _shape(self, node: Node) -> TaskShape:
        return TaskShape(
            name=node.name,
            replicas=node.replicas,
            reads=tuple(self._reads_of(node)),
            writes=tuple(self._channels_of(node)),
            slab_bytes=node.slab_bytes,
            largest_bytes=self.settings.payload_bytes if node.slab_bytes else 0,
        )

    def start(self, name: str, slot: int) -> None:
        node = self.nodes[name]
        self.incarnations[name, slot] += 1
        incarnation = self.incarnations[name, slot]
        kit = self.host.kit(name, slot, incarnation)
        document, writing = os.pipe()
        job = {
            "task": name,
            "role": node.role,
            "slot": slot,
            "incarnation": incarnation,
            "reads": node.reads,
            "writes": node.writes,
            "descriptors": kit.descriptors,
            "document": document,
            "log": str(self.log),
            "items": self.settings.items,
            "bytes": self.settings.payload_bytes,
            "forward": self.settings.forward,
            "faults": self.faults.get((name, slot, incarnation), []),
            **node.options,
        }
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps(job)],
            pass_fds=[document, *kit.descriptors],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        )
        os.close(document)
        with os.fdopen(writing, "wb") as file:
            file.write(kit.document)
        kit.close()
        watch = os.pidfd_open(process.pid)
        self.processes[watch] = (name, slot, process)
        self._poll.register(watch, select.EPOLLIN)

    def run(self, *, seconds: float = 50.0, between: Callable[["Flow"], float | None] | None = None) -> None:
        """Runs to the end; `between` is called between events and says in how many seconds again."""
        clock = RealClock()
        deadline = clock.monotonic() + seconds
        for node in self.nodes.values():
            for slot in range(node.replicas):
                self.start(node.name, slot)
        while self.processes:
            pause = between(self) if between is not None else None
            left = deadline - clock.monotonic()
            assert left > 0, f"stalled after {self.deaths} deaths: {self.describe()}"
            for watch, _ in self._poll.poll(min(left, 1.0 if pause is None else pause)):
                self._reap(watch)

    def _reap(self, watch: int) -> None:
        name, slot, process = self.processes.pop(watch)
        self._poll.unregister(watch)
        os.close(watch)
        code = process.wait()
        if code == 0:
            self.host.worker_ended(name, slot)
            return
        assert code == -9, f"{name}.{slot} ended with {code}: {self.describe()}"
        self.deaths += 1
        self.host.worker_died(name, slot)
        self.start(name, slot)

    def kill(self, watch: int) -> None:
        self.processes[watch][2].kill()

    def stop(self) -> None:
        for watch, (_, _, process) in self.processes.items():
            process.kill()
            process.wait()
            os.close(watch)
        self.processes.clear()
        self._poll.close()
        self.host.close()

    def announced(self, channel: ChannelId) -> list[OriginRecord]:
        found = self.host.announced(channel, deadline=0.0)
        assert isinstance(found, Known)
        return list(found.value)

    def settled(self, subscription: SubscriptionId) -> list[OriginRecord]:
        found = self.host.settled(subscription, deadline=0.0)
        assert isinstance(found, Known)
        return list(found.value)

    def seen(self) -> list[tuple[int, int, str]]:
        """Returns what sinks logged: (input, ordinal, kind)."""
        if not self.log.exists():
            return []
        rows = [line.split() for line in self.log.read_text().splitlines()]
        return [(int(row[0]), int(row[1]), row[2]) for row in rows if row[0] != "end"]

    def describe(self) -> list[str]:
        lines = [f"{n}.{s} runs" for n, s, _ in self.processes.values()]
        lines += [
            f"{s.subscription}: {self.host.observe_subscription(s.subscription, deadline=0.0)}"
            for s in self.subscriptions
        ]
        lines += [f"{c.channel}: {self.host.observe_channel(c.channel, deadline=0.0)}" for c in self.channels]
        return lines
