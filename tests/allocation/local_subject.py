"""The allocator of one host under examination: a ledger file and a driver that says what the fixture says.

The raw probes read the ledger file by their own means. All processes of a test are this one, whose children
are workloads; a foreigner is the first process of the machine.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from tests.allocation.mig_table import VendorTable
from videoflow.adapters.nvml import DeviceReading, HostReading, Using
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.allocation import ClaimObservation, DeviceIdentity, HostSharing
from videoflow.backends.outcomes import Observation, UnknownReason, known, unknown
from videoflow.backends.runtime import Change, Stored, StoreOutcome
from videoflow.clock import RealClock
from videoflow.deploy import allocation_local
from videoflow.processes import this_process
from videoflow.testing.examiners.allocation import (
    Ability,
    AllocationSubject,
    Call,
    Crashed,
    Fate,
    FixtureHost,
    Layout,
    Read,
)

GIB = 1 << 30
FOREIGNER = 1
TABLE = VendorTable()


class Asked:
    """Asks the test about each call, and says what becomes of it."""

    def __init__(self) -> None:
        self.decide: Callable[[Call], Fate] | None = None

    def __call__(self, process: str, operation: str, *, writes: bool) -> Fate:
        fate = Fate.GO if self.decide is None else self.decide(Call(process, writes, operation, "here"))
        if fate is Fate.CRASH:
            raise Crashed
        return fate


class AskedStore(SqliteStore):
    """The ledger of one process, whose every call is asked about."""

    def __init__(self, path: Path, process: str, subject: "LocalSubject") -> None:
        super().__init__(path, RealClock())
        self.process = process
        self.subject = subject

    def scan(self, prefix: str, *, deadline: float) -> Observation[dict[str, Stored]]:
        fate = self.subject.asked(self.process, "read", writes=False)
        failed = self.subject.failing.get(Read.RECORDS)
        if failed is not None or fate in (Fate.LOST, Fate.UNHEARD):
            return unknown(failed or UnknownReason.TIMEOUT, 0.0, "the records")
        found = super().scan(prefix, deadline=deadline)
        if fate is Fate.CRASH_AFTER:
            raise Crashed
        return found

    def commit(self, changes: Sequence[Change], *, deadline: float) -> StoreOutcome:
        fate = self.subject.asked(self.process, "commit", writes=True)
        if fate is Fate.UNHEARD:
            return StoreOutcome.UNKNOWN
        outcome = super().commit(changes, deadline=deadline)
        if outcome is StoreOutcome.COMMITTED:
            self.subject.written += [f"{self.process} {change.key}" for change in changes]
        if fate is Fate.CRASH_AFTER:
            raise Crashed
        return StoreOutcome.UNKNOWN if fate is Fate.LOST else outcome


class LocalSubject(AllocationSubject):
    """Args: product: The package under examination, or a copy of it with a defect."""

    lacks: ClassVar[Mapping[Ability, str]] = {
        Ability.SEVERAL_HOSTS: "it is for one host",
        Ability.GEOMETRY: "it uses MIG slices that are there",
        Ability.FOREIGN_OWNER: "other allocators of a host are seen by their processes alone",
        Ability.KEEPS_OUT: "nothing keeps a process of others from a device",
        Ability.STAGES: "there is nothing to prepare",
        Ability.CLAIM_MANIFESTS: "it binds by environment alone",
        Ability.GATES: "it provides no gated feature",
    }

    def __init__(self, product: ModuleType = allocation_local) -> None:
        self.product: Any = product
        self.asked = Asked()
        self.failing: dict[Read, UnknownReason] = {}
        self.written: list[str] = []
        self.readings: list[DeviceReading] = []
        self.cards: dict[str, Layout] = {}
        self.users: dict[str, list[int]] = {}
        self.folder = Path(tempfile.mkdtemp())
        self.worlds = 0
        self.processes: dict[str, tuple[Any, AskedStore]] = {}
        self.workload = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)
        self.workload.kill()
        self.workload.communicate()
        shutil.rmtree(self.folder)

    @property
    def ledger(self) -> Path:
        return self.folder / f"ledger-{self.worlds}.sqlite"

    def furnish(self, hosts: Sequence[FixtureHost]) -> None:
        for name in list(self.processes):
            self.kill(name)
        self.worlds += 1
        (host,) = hosts
        self.readings, self.cards, self.users = [], {}, {}
        self.written.clear()
        for ordinal, card in enumerate(host.cards):
            identity = DeviceIdentity(host.name, ordinal, card.uuid, None, card.product, card.memory_bytes)
            unread = () if card.memory_bytes is not None else (f"{card.uuid}: memory",)
            sharing = HostSharing.PHYSICAL if host.sharing == "mig" else HostSharing(host.sharing)
            whole = DeviceReading(identity, 0, (), sharing=sharing, problems=unread)
            self.readings.append(replace(whole, partitioned=bool(card.slices) or host.sharing == "mig"))
            self.cards[card.uuid] = card.slices
            for profile, start in card.slices:
                cut = replace(
                    identity,
                    mig_uuid=f"MIG-{card.uuid}-{start}",
                    mig_profile=profile,
                    memory_bytes=TABLE.usable_bytes(card.product, profile),
                )
                self.readings.append(replace(whole, identity=cut, sharing=HostSharing.MIG))

    def backend(self, process: str = "main") -> Any:
        if process not in self.processes:
            clock, product = RealClock(), self.product
            store = AskedStore(self.ledger, process, self)
            settings = product.LocalSettings(self.readings[0].identity.node, mask=self.mask())
            made = product.LocalAllocation(
                settings,
                lambda: self.look(process),
                product.Ledger(store, clock, lambda holder: True),
                this_process(),
                clock,
            )
            self.processes[process] = (made, store)
        return self.processes[process][0]

    def mask(self) -> str:
        """What names everything that can be used, slices too."""
        shown = [reading.identity for reading in self.readings if not reading.partitioned]
        return ",".join(str(identity.mig_uuid or identity.uuid) for identity in shown)

    def look(self, process: str) -> Observation[HostReading]:
        fate = self.asked(process, "look", writes=False)
        failed = self.failing.get(Read.PRIMARY)
        if failed is not None or fate in (Fate.LOST, Fate.UNHEARD):
            return unknown(failed or UnknownReason.TIMEOUT, 0.0, "the devices")
        if fate is Fate.CRASH_AFTER:
            raise Crashed
        return known(HostReading(tuple(map(self.as_now, self.readings))), RealClock().monotonic())

    def as_now(self, reading: DeviceReading) -> DeviceReading:
        key = str(reading.identity.mig_uuid or reading.identity.uuid)
        failed = self.failing.get(Read.SECONDARY)
        if failed is not None:
            return replace(reading, users=None, used_bytes=None, problems=(f"{key}: {failed}",))
        pids = self.users.get(key, [])
        return replace(reading, users=tuple(Using(pid, GIB) for pid in pids), used_bytes=len(pids) * GIB)

    def kill(self, process: str) -> None:
        if process in self.processes:
            self.processes.pop(process)[1].close()

    def environment(self, *, gates: bool = True) -> Mapping[str, str]:
        return {}

    def on_call(self, decide: Callable[[Call], Fate] | None) -> None:
        self.asked.decide = decide

    def fail(self, read: Read, reason: UnknownReason | None) -> None:
        if reason is None:
            self.failing.pop(read, None)
        else:
            self.failing[read] = reason

    def arrive(self, device: str, *, tolerant: bool = False) -> bool:
        self.users.setdefault(device, []).append(FOREIGNER)
        return True

    def leave(self, device: str) -> None:
        self.users[device].remove(FOREIGNER)

    def start(self, claim_id: str, workload_id: str) -> None:
        env = self.backend("launcher").bindings(claim_id, workload_id).env
        for key in env["CUDA_VISIBLE_DEVICES"].split(","):
            self.users.setdefault(key, []).append(self.workload.pid)

    def end(self, claim_id: str, workload_id: str) -> None:
        for pids in self.users.values():
            while self.workload.pid in pids:
                pids.remove(self.workload.pid)

    def claims(self, process: str = "main") -> Observation[tuple[ClaimObservation, ...]]:
        found: Observation[tuple[ClaimObservation, ...]] = self.backend(process).claims("")
        return found

    def writes(self) -> tuple[str, ...]:
        return tuple(self.written)

    def owned(self) -> tuple[tuple[str, str], ...]:
        return tuple((device, share["claim"]) for device, share in self.shares())

    def exclusive(self) -> tuple[tuple[str, str], ...]:
        return tuple((device, share["claim"]) for device, share in self.shares() if share["exclusive"])

    def layouts(self) -> Mapping[str, Layout]:
        return dict(self.cards)

    def records(self) -> tuple[str, ...]:
        return tuple(sorted(key.removeprefix("claim/") for key in self.raw() if key.startswith("claim/")))

    def host_owner(self, host: str) -> str:
        return ""

    def legal(self, product: str, layout: Layout) -> bool:
        return not TABLE.illegal(product, layout)

    def shares(self) -> list[tuple[str, Any]]:
        found = self.raw()
        return [
            (key.removeprefix("device/"), share)
            for key in sorted(found)
            if key.startswith("device/")
            for share in found[key]
        ]

    def raw(self) -> dict[str, Any]:
        if not self.ledger.exists():
            return {}
        with closing(sqlite3.connect(self.ledger)) as connection:
            rows = connection.execute("SELECT key, value FROM records").fetchall()
        return {bytes(key).decode(): json.loads(value) for key, value in rows}


assert os.getpid() != FOREIGNER, "a foreigner must not be this process"
