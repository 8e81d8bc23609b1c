"""The local engine: the same account as in threads, whatever dies."""

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import videoflow as vf
from tests.engines.flows import Numbers, Rows, Total, same
from tests.engines.local_flows import (
    Blocked,
    CannotOpen,
    Deaf,
    Endless,
    Frames,
    Gate,
    Kills,
    Lines,
    Mean,
    OnlyHere,
    OpensSlowly,
    StartsChild,
)
from videoflow.adapters.shm import ShmHost, WorkerKit
from videoflow.adapters.sqlite import SqliteStore
from videoflow.backends.runtime import Desired, FlowRuntime
from videoflow.clock import RealClock
from videoflow.engines._local_run import LocalRun
from videoflow.engines.run_folder import RunFolder, RunState, bury_lost_run, claim_outputs
from videoflow.errors import MemoryShort, NodeFailed, UsageError
from videoflow.graph.report import RunReport, Verdict
from videoflow.nodes import JsonlSink
from videoflow.planner.plan import Plan

Starter = Callable[..., LocalRun]
DEADLINE_SECONDS = 40.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts flows in a folder of the test's own, and leaves none running."""
    begun: list[LocalRun] = []

    def go(flow: vf.Flow, **options: Any) -> LocalRun:
        run = flow.start("local", runs_folder=tmp_path / "runs", **options)
        assert isinstance(run, LocalRun)
        begun.append(run)
        return run

    yield go
    for run in begun:
        run.stop()
        run.stop()
        run.wait()


def until(condition: Callable[[], bool], run: LocalRun) -> None:
    """Waits for something to become true while a run goes on."""
    clock = RealClock()
    deadline = clock.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert clock.monotonic() < deadline, "it did not become true"
        assert run.wait_for(0.02) is None, "the run ended before"


def lines(path: Path) -> list[int]:
    return [int(line) for line in path.read_text(encoding="ascii").split()]


def open_descriptors() -> list[str]:
    """What this process has open: memory, sockets, files."""
    numbers = os.listdir("/proc/self/fd")
    return sorted(os.path.realpath(f"/proc/self/fd/{number}") for number in numbers[:-1])


def closed(report: RunReport) -> bool:
    return all(edge.closed for edge in report.edges)


def test_a_run_is_complete_and_leaves_only_its_folder(start: Starter, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    flow = vf.Flow([Lines(str(out), name="sink")(Mean(name="mean")(Frames(60, name="frames")))])
    assert start(flow).wait().verdict is Verdict.COMPLETE  # what is made once is made here
    out.unlink()
    gc.collect()  # what others left behind is not counted
    descriptors = open_descriptors()
    run = start(flow)
    processes = run.processes()
    report = run.wait()
    assert report.verdict is Verdict.COMPLETE
    assert lines(out) == list(range(60))
    assert closed(report)
    assert [edge.delivered for edge in report.edges] == [60, 60]
    assert sorted(processes) == ["frames-0", "mean-0", "sink-0"]
    for number in processes.values():
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    assert open_descriptors() == descriptors
    assert not [t.name for t in threading.enumerate() if t.name.startswith("videoflow")]
    folder = RunFolder(Path(report.folder))
    assert folder.state() is RunState.FINISHED
    assert "hello from the sink" in (folder.logs_path / "sink-0.log").read_text()


def test_plan_json_is_what_the_engine_runs(start: Starter) -> None:
    run = start(vf.Flow([Rows(name="rows")(Total(name="total")(Numbers(20, name="numbers")))]))
    assert Plan.from_json(run.folder.plan_path.read_bytes()) == run.plan
    report = run.wait()
    assert report.values["rows"] == [sum(range(n + 1)) for n in range(20)] + [{"final": 190}]
    assert closed(report)


def test_fused_nodes_keep_their_ledger(start: Starter) -> None:
    numbers = Numbers(40, name="numbers")
    first = same(name="first", fuse="one")(numbers)
    second = Kills(7, "raise", name="second", fuse="one", retries=0)(first)
    report = start(vf.Flow([Rows(name="rows")(second)])).wait()
    inner = next(edge for edge in report.edges if edge.child == "second")
    assert (inner.announced, inner.delivered, inner.dead_lettered, inner.closed) == (40, 39, 1, True)
    assert report.values["rows"] == [n for n in range(40) if n != 7]


def test_a_class_without_a_name_is_sent_by_value(start: Starter) -> None:
    class Adds(vf.Processor):
        def __init__(self, more: int) -> None:
            super().__init__()
            self.more = more

        def process(self, value: int) -> int:
            return value + self.more

    report = start(vf.Flow([Rows(name="rows")(Adds(5)(Numbers(10)))])).wait()
    assert report.values["rows"] == list(range(5, 15))


def test_killed_workers_are_replaced_and_nothing_is_lost_or_repeated(start: Starter, tmp_path: Path) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out.txt"
    slow = Gate(str(out), str(gate), 150, name="slow")
    run = start(vf.Flow([slow(Mean(name="mean")(Frames(2_000, side=8, name="frames")))]))
    until(lambda: out.exists() and 150 in lines(out), run)
    for name, number in run.processes().items():
        if name != "slow-0":
            os.kill(number, signal.SIGKILL)
    gate.touch()
    report = run.wait()
    assert report.verdict is Verdict.COMPLETE
    assert lines(out) == [number % 251 for number in range(2_000)]
    assert closed(report)
    assert {node.node: node.restarts for node in report.nodes} == {"frames": 1, "mean": 1, "slow": 0}


def test_a_killer_frame_is_put_aside_and_its_neighbours_are_not(start: Starter) -> None:
    killer = Kills(30, "kill", name="killer", retries=1)
    run = start(vf.Flow([Rows(name="rows")(killer(Numbers(60, name="numbers")))]))
    report = run.wait()
    assert report.verdict is Verdict.INCOMPLETE
    assert report.values["rows"] == [n for n in range(60) if n != 30]
    (letter,) = report.dead_letters
    assert (letter.node, letter.origin, letter.attempts) == ("killer", "numbers/0/30", 2)
    assert closed(report)


def test_a_call_beyond_its_timeout_is_ended_and_put_aside(start: Starter) -> None:
    hangs = Kills(5, "hang", name="hangs", retries=0, timeout_seconds=0.2)
    report = start(vf.Flow([Rows(name="rows")(hangs(Numbers(10, name="numbers")))])).wait()
    assert report.values["rows"] == [n for n in range(10) if n != 5]
    assert [letter.origin for letter in report.dead_letters] == ["numbers/0/5"]
    assert any(gap.where == "hangs" and gap.cause == "timeout_seconds" for gap in report.gaps)
    log = Path(report.folder, "logs", "hangs-0.log").read_text()
    assert "node hangs did not return within its timeout of 0.2 s" in log


def test_a_failure_in_open_is_the_first_and_is_named(start: Starter) -> None:
    report = start(vf.Flow([Rows(name="rows")(CannotOpen("raise", name="camera")(Numbers(10)))])).wait()
    assert report.verdict is Verdict.FAILED
    assert report.failure is not None
    assert (report.failure.node, report.failure.cause) == ("camera", "OSError: no such camera")
    assert closed(report)


def test_a_process_that_dies_for_ever_is_given_up_and_named(start: Starter) -> None:
    crashes = CannotOpen("crash", name="crashes")
    flow = vf.Flow([Rows(name="rows")(crashes(Numbers(10, name="numbers")))])
    report = start(flow, restart_backoff_seconds=0.01).wait()
    assert report.verdict is Verdict.FAILED
    assert report.failure is not None
    assert report.failure.node == "crashes"
    assert report.failure.code == NodeFailed.code
    assert "SIGSEGV" in report.failure.cause
    assert "local_flows.py" in report.failure.cause  # where, by the dump of the dying process
    assert "5 times in a row" in report.failure.message
    edge = next(edge for edge in report.edges if edge.child == "crashes")
    assert edge.announced == edge.abandoned
    assert closed(report)


def test_a_worker_that_cannot_load_its_class_fails_the_run_at_once(start: Starter) -> None:
    flow = vf.Flow([Rows(name="rows")(OnlyHere(str(os.getpid()), name="only")(Numbers(5)))])
    report = start(flow).wait()
    assert report.verdict is Verdict.FAILED
    assert report.failure is not None
    assert "made in the process" in report.failure.cause
    assert next(node for node in report.nodes if node.node == "only").restarts == 0


def test_warming_up_is_no_stall(start: Starter) -> None:
    flow = vf.Flow([Rows(name="rows")(OpensSlowly(name="model")(Numbers(5, name="numbers")))])
    assert start(flow, stall_seconds=2.0).wait().verdict is Verdict.COMPLETE


def test_stop_drains_and_keeps_a_prefix(start: Starter, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    run = start(vf.Flow([Lines(str(out), name="sink")(Endless(name="endless"))]))
    until(lambda: out.exists() and len(lines(out)) > 50, run)
    run.stop()
    report = run.wait()
    assert (report.verdict, report.exit_status) == (Verdict.STOPPED, 0)
    assert report.sources[0].outcome == "stopped"
    assert closed(report)
    assert lines(out) == list(range(report.sources[0].items))


def test_a_second_stop_does_not_drain(start: Starter, tmp_path: Path) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out.txt"
    run = start(vf.Flow([Gate(str(out), str(gate), 20, name="stuck")(Endless(name="endless"))]))
    until(lambda: out.exists() and 20 in lines(out), run)
    processes = run.processes()
    run.stop()
    run.stop()
    report = run.wait()
    assert report.verdict is Verdict.STOPPED
    assert report.edges[0].in_flight > 0
    for number in processes.values():
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_a_stop_through_the_records_of_the_run_is_heard(start: Starter, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    run = start(vf.Flow([Lines(str(out), name="sink")(Endless(name="endless"))]))
    until(lambda: out.exists() and len(lines(out)) > 5, run)
    clock = RealClock()
    store = SqliteStore(run.folder.store_path, clock)
    FlowRuntime(store, run.run_id).raise_desired(Desired.STOP, deadline=clock.monotonic() + 10)
    store.close()
    report = run.wait()
    assert report.verdict is Verdict.STOPPED
    assert closed(report)


def test_a_blocked_source_is_interrupted(start: Starter, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    run = start(vf.Flow([Lines(str(out), name="sink")(Blocked(name="blocked"))]))
    until(lambda: out.exists() and len(lines(out)) == 1, run)
    run.stop()
    report = run.wait()
    assert report.verdict is Verdict.STOPPED
    assert closed(report)


def test_what_a_worker_started_ends_with_it(start: Starter, tmp_path: Path) -> None:
    child = tmp_path / "child"
    start(vf.Flow([Rows(name="rows")(StartsChild(str(child), name="starts")(Numbers(5)))])).wait()
    status = Path(f"/proc/{child.read_text()}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_payloads_do_not_pass_through_the_supervisor(start: Starter) -> None:
    run = start(vf.Flow([Rows(name="rows")(Mean(name="mean")(Frames(100, side=512, name="frames")))]))
    report = run.wait()
    assert report.values["rows"] == list(range(100))
    assert run.socket_bytes * 100 < 100 * 512 * 512


def test_a_source_that_does_not_stop_is_ended_and_what_it_made_arrives(
    start: Starter, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    run = start(vf.Flow([Lines(str(out), name="sink")(Deaf(name="deaf"))]), drain_seconds=12.0)
    until(lambda: out.exists() and len(lines(out)) == 3, run)
    run.stop()
    report = run.wait()
    assert report.verdict is Verdict.STOPPED
    assert closed(report)
    assert lines(out) == [0, 1, 2]
    assert any(gap.where == "deaf" and "killing" in gap.what for gap in report.gaps)


def test_a_drain_that_takes_too_long_is_ended(start: Starter, tmp_path: Path) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out.txt"
    stuck = Gate(str(out), str(gate), 5, name="stuck")
    run = start(vf.Flow([stuck(Endless(name="endless"))]), drain_seconds=0.5)
    until(lambda: out.exists() and 5 in lines(out), run)
    run.stop()
    report = run.wait()
    assert report.verdict is Verdict.STOPPED
    assert report.edges[0].in_flight > 0
    assert any(gap.where == "stuck" for gap in report.gaps)


def test_a_start_that_fails_leaves_nothing(
    start: Starter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, runs = tmp_path / "out.jsonl", tmp_path / "runs"
    flow = vf.Flow([JsonlSink(out, name="sink")(Numbers(5, name="numbers"))])
    descriptors = open_descriptors()
    with pytest.raises(MemoryShort):
        start(flow, memory_bytes=1 << 60)
    with claim_outputs([out], "another run"), pytest.raises(UsageError, match="another run"):
        start(flow)
    assert not runs.exists()
    monkeypatch.setattr(ShmHost, "kit", _out_of_memory)
    with pytest.raises(MemoryShort):
        start(flow)
    assert list(runs.iterdir()) == []
    assert open_descriptors() == descriptors
    with claim_outputs([out], "the next run"):
        pass


def _out_of_memory(host: ShmHost, task: str, slot: int, incarnation: int) -> WorkerKit:
    raise MemoryShort("no memory for this test")


def test_workers_end_with_their_supervisor_and_the_run_is_lost(tmp_path: Path) -> None:
    runs, gate, out = tmp_path / "runs", tmp_path / "gate", tmp_path / "out.txt"
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import videoflow as vf;"
        "from tests.engines.local_flows import Gate, Endless;"
        "stuck = Gate(sys.argv[3], sys.argv[4], 5, name='stuck')(Endless(name='endless'));"
        "run = vf.Flow([stuck], name='lost').start('local', runs_folder=Path(sys.argv[2]));"
        "print(*run.processes().values(), flush=True); run.wait()"
    )
    arguments = [str(Path(__file__).parents[2]), str(runs), str(out), str(gate)]
    supervisor = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    workers = [os.pidfd_open(int(number)) for number in supervisor.stdout.readline().split()]
    assert len(workers) == 2
    folder = RunFolder(next(runs.iterdir()))
    assert folder.state() is RunState.RUNNING
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    for worker in workers:
        poll = select.poll()
        poll.register(worker, select.POLLIN)
        assert poll.poll(DEADLINE_SECONDS * 1000), "a worker outlived its supervisor"
        os.close(worker)
    assert folder.state() is RunState.LOST
    report = bury_lost_run(folder)
    assert (report.verdict, report.failure and report.failure.message) == (Verdict.FAILED, "supervisor lost")
    assert folder.state() is RunState.FINISHED
