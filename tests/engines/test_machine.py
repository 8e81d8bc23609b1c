"""How much memory a run may have: the tightest of machine and container, and the user's word within it."""

from pathlib import Path

import pytest

from videoflow.backends.outcomes import Known, Unknown
from videoflow.engines._machine import available_bytes, budget_bytes

MACHINE = {"proc/meminfo": "MemTotal:  9000 kB\nMemAvailable:  8000 kB\n"}
UNIFIED = {
    "proc/self/cgroup": "0::/job/worker\n",
    "sys/fs/cgroup/job/worker/memory.max": "max\n",
    "sys/fs/cgroup/job/worker/memory.current": "1\n",
    "sys/fs/cgroup/job/memory.max": "3000000\n",
    "sys/fs/cgroup/job/memory.current": "1500000\n",
    "sys/fs/cgroup/job/memory.stat": "anon 5\ninactive_file 500000\n",
}
OLDER = {
    "proc/self/cgroup": "5:cpu:/x\n4:hugetlb,memory:/docker/1\n0::/\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "10\n",
    "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "1000\n",
    "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": "400\n",
}
INSIDE = {  # a container that sees its own group as the root, under the name that it has outside
    "proc/self/cgroup": "0::/docker/1\n",
    "sys/fs/cgroup/memory.max": "5000\n",
    "sys/fs/cgroup/memory.current": "1000\n",
}


@pytest.mark.parametrize(
    ("groups", "left"), [({}, 8000 * 1024), (UNIFIED, 2_000_000), (OLDER, 600), (INSIDE, 4000)]
)
def test_the_tightest_of_machine_and_container_counts(
    groups: dict[str, str], left: int, tmp_path: Path
) -> None:
    for name, text in {**MACHINE, **groups}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    assert available_bytes(1.0, root=tmp_path) == Known(left, 1.0)


def test_a_system_that_does_not_say_leaves_it_unknown(tmp_path: Path) -> None:
    assert isinstance(available_bytes(1.0, root=tmp_path), Unknown)


def test_a_budget_is_what_was_asked_for_or_the_same_for_about_as_much_memory() -> None:
    assert budget_bytes(10, Known(100, 0.0)) == 10
    gibibyte = 1 << 30
    for free in (23 * gibibyte, 23 * gibibyte - 12345678, 17 * gibibyte):
        assert budget_bytes(None, Known(free, 0.0)) == 4 * gibibyte
    assert budget_bytes(None, Known(15 * gibibyte, 0.0)) == 2 * gibibyte
