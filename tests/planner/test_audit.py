"""Planning reads capabilities and does nothing else: on fakes, on real backends, before a refused run."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import videoflow as vf
from tests.planner.building import threads_facts
from tests.planner.compositions import CLUSTER, OBJECTS, RECORDS
from tests.planner.refusal_parts import Case
from tests.planner.refusals import CASES
from tests.planner.test_requiring import cameras
from videoflow.adapters import shm, sqlite
from videoflow.backends.memory import (
    MemoryBroker,
    MemoryMessaging,
    MemoryPayloads,
    MemoryPool,
    MemoryRuntimeStore,
)
from videoflow.backends.outcomes import Known
from videoflow.clock import RealClock
from videoflow.engines.local import LocalEngine
from videoflow.engines.threads import ThreadsEngine
from videoflow.errors import FlowError, IncompatibleProfile
from videoflow.graph import request_of, run_options
from videoflow.planner import plan_flow

PURE = ("videoflow.planner", "videoflow.backends", "videoflow.errors", "videoflow.graph.spec")
LANGUAGE = ("dataclasses", "enum", "typing", "collections", "abc", "functools", "re", "msgspec", "<string>")
# What touches the world from C; all else in C that planning uses works on values.
OUTSIDE = {
    "posix",
    "_io",
    "io",
    "_socket",
    "select",
    "mmap",
    "fcntl",
    "_sqlite3",
    "_thread",
    "time",
    "_posixsubprocess",
}


@contextmanager
def profiled(*, into: set[str]) -> Iterator[None]:
    """Notes the module of every function that this thread calls, of Python and of C."""

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            into.add(str(frame.f_globals.get("__name__")))
        elif event == "c_call":
            into.add(f"C:{getattr(argument, '__module__', None)}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.fixture(scope="module")
def settled_heap() -> Iterator[None]:
    """What other tests left behind is collected once, and is not looked at again by each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def modules_called(call: Callable[[], object]) -> set[str]:
    """The modules whose functions a call uses; it is made once before, so that nothing is loaded in it."""
    found: set[str] = set()
    with suppress(FlowError):
        call()
    gc.collect()  # what is collected while it is watched may call anything
    gc.disable()
    try:
        with profiled(into=found), suppress(FlowError):
            call()
    finally:
        gc.enable()
    return found - {__name__}


@pytest.mark.usefixtures("settled_heap")
@pytest.mark.parametrize("case", CASES, ids=[case.asked for case in CASES])
def test_judging_touches_nothing_but_values(case: Case) -> None:
    for call in (case.refused, case.admitted):
        modules = modules_called(call)
        assert any(name.startswith("videoflow.planner") for name in modules), "nothing was watched"
        outside = {name for name in modules if name[:2] == "C:" and name[2:] in OUTSIDE}
        assert not outside, f"it reached for {outside}"
        foreign = {
            name
            for name in modules
            if name[:2] != "C:" and not name.startswith((*PURE, *LANGUAGE, "tests.planner", "contextlib"))
        }
        assert not foreign, f"it called {foreign}"


class Backend:
    """Says what it guarantees, and fails the test when anything else is asked of it."""

    def __init__(self, capabilities: Any) -> None:
        self._capabilities = capabilities
        self.calls: list[str] = []

    def capabilities(self) -> Any:
        self.calls.append("capabilities")
        return self._capabilities

    def __getattr__(self, name: str) -> Any:
        self.__dict__["calls"].append(name)
        raise AssertionError(f"planning called {name}")


def test_of_backends_it_is_told_their_capabilities_once_and_asks_nothing_more() -> None:
    backends = [Backend(record) for record in (CLUSTER, OBJECTS, RECORDS)]
    messaging, payload, runtime = (backend.capabilities() for backend in backends)
    facts = replace(threads_facts(), messaging=messaging, payload=payload, runtime=runtime)
    for graph in (cameras(isolated=True), cameras(tolerated_failures=1), cameras()):
        try:
            plan_flow(graph.spec(), facts)
        except IncompatibleProfile:
            continue
    assert [backend.calls for backend in backends] == [["capabilities"]] * 3


REAL = (MemoryMessaging, MemoryPayloads, MemoryRuntimeStore, MemoryBroker, sqlite.SqliteStore, shm.ShmHost)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of the real backends, in order; making one is a call only where it makes something."""
    made: list[str] = []

    def noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **keywords: Any) -> Any:
            made.append(name)
            return function(*args, **keywords)

        return noted

    for backend in REAL:
        for base in (cls for cls in backend.__mro__ if cls.__module__.startswith("videoflow.")):
            for name, member in list(vars(base).items()):
                is_making = name == "__init__" and backend in (sqlite.SqliteStore, shm.ShmHost)
                if callable(member) and (is_making or not name.startswith("_")):
                    monkeypatch.setattr(base, name, noting(f"{backend.__name__}.{name}", member))
    return made


SMALL = vf.Resources(cpus=0.25)


class Numbers(vf.Producer):
    """Fails the test when it is opened."""

    def open(self) -> None:
        raise AssertionError("opened")

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        yield vf.Item(1, offset=0)


def counting(**stated: Any) -> vf.Flow:
    return vf.Flow(
        [Sink(name="log", resources=SMALL)(Numbers(name="numbers", resources=SMALL))],
        requirements=vf.Requirements(**stated),
    )


class Sink(vf.Consumer):
    """Takes anything."""

    def consume(self, value: int) -> None: ...


def test_the_threads_engine_plans_on_real_backends_by_their_capabilities_alone(calls: list[str]) -> None:
    plan = ThreadsEngine().plan(request_of(counting()._compiled(), run_options({})))
    assert plan.admitted.channels[0].carried_by == "memory"
    assert sorted(set(calls)) == [
        "MemoryMessaging.capabilities",
        "MemoryPayloads.capabilities",
        "MemoryRuntimeStore.capabilities",
    ]


def test_reading_capabilities_of_memory_changes_nothing() -> None:
    pool = MemoryPool(1 << 20)
    payloads = MemoryPayloads(pool, "planner", RealClock())
    first, second = payloads.capabilities().free_bytes, payloads.capabilities().free_bytes
    assert isinstance(first, Known)
    assert isinstance(second, Known)
    assert first.value == second.value == 1 << 20


@pytest.mark.parametrize(
    ("engine", "stated"),
    [
        ("threads", {"isolated": True}),
        ("threads", {"durable_control": True}),
        ("threads", {"restart_safe": True}),
        ("threads", {"tolerated_failures": 1}),
        ("threads", {"exactly_once_effects": True}),
        ("local", {"restart_safe": True}),
        ("local", {"tolerated_failures": 1}),
        ("local", {"exactly_once_effects": True}),
    ],
)
def test_a_refused_run_has_made_nothing(
    engine: str, stated: dict[str, Any], calls: list[str], tmp_path: Path
) -> None:
    threads = threading.active_count()
    with pytest.raises(IncompatibleProfile):
        counting(**stated).start(engine, runs_folder=tmp_path / "runs")
    assert [call for call in calls if not call.endswith(".capabilities")] == []
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == threads


@pytest.mark.parametrize(
    ("engine", "stated"),
    [
        ("threads", {}),
        ("local", {"isolated": True, "durable_control": True}),
        ("local", {"dedicated_cpus": True}),
    ],
)
def test_what_an_engine_does_guarantee_is_admitted(engine: str, stated: dict[str, Any]) -> None:
    request = request_of(counting(**stated)._compiled(), run_options({}))
    plan = ThreadsEngine().plan(request) if engine == "threads" else LocalEngine().plan(request)
    assert plan.admitted.channels
