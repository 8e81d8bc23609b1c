"""What `import videoflow` loads and costs.

The cost is processor time, not time on the wall, and the least of several interleaved runs, so that a busy
machine (two test runs at once, say) cannot fail the test: other work only adds to a run, and the least is
what the import itself needs. Both sides run from compiled files in a folder of the test's own, because an
environment that forbids writing them would charge every run for compiling. The limit is the promise made to
users: 150 ms more than Python with NumPy.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ADDED_SECONDS_MAX = 0.150
ROUNDS = 7
FORBIDDEN = (
    "av",
    "cloudpickle",
    "cv2",
    "lightkube",
    "nats",
    "obstore",
    "onnx",
    "onnxruntime",
    "pynvml",
    "redis",
    "scipy",
    "starlette",
    "uvicorn",
)
# Ours, but only for those who ask: an engine, a command or a real adapter is loaded when it is chosen.
CHOSEN_LATER = (
    "videoflow.adapters",
    "videoflow.cli",
    "videoflow.engines",
    "videoflow.worker",
    "videoflow.testing",
)


def environment(compiled: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONPYCACHEPREFIX": str(compiled)}


def processor_seconds(statement: str, compiled: Path) -> float:
    """User and system time of one fresh interpreter that runs a statement."""
    child = subprocess.Popen([sys.executable, "-c", statement], env=environment(compiled))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_utime + usage.ru_stime


def loaded_modules(statement: str, compiled: Path) -> set[str]:
    """Names in `sys.modules` after a statement in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(compiled), capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_import_loads_no_heavy_library_and_no_client(tmp_path: Path) -> None:
    loaded = loaded_modules("import videoflow", tmp_path)
    assert "videoflow" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in FORBIDDEN}


def test_the_import_loads_no_engine_no_command_and_no_adapter(tmp_path: Path) -> None:
    loaded = loaded_modules("import videoflow", tmp_path)
    assert not {name for name in loaded if ".".join(name.split(".")[:2]) in CHOSEN_LATER}


def test_the_node_library_can_be_named_without_its_libraries(tmp_path: Path) -> None:
    loaded = loaded_modules("from videoflow.nodes import Detector, Tracker, VideoSink, VideoSource", tmp_path)
    assert not {name for name in loaded if name.partition(".")[0] in FORBIDDEN}


def test_a_worker_process_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    loaded = loaded_modules("import videoflow.worker.process", tmp_path)
    assert not {name for name in loaded if name.partition(".")[0] in FORBIDDEN}
    assert not loaded & {"asyncio", "ssl", "email", "importlib.metadata", "rich", "typer"}


def test_a_command_loads_no_library_that_checks_data(tmp_path: Path) -> None:
    loaded = loaded_modules("import videoflow.cli.app; videoflow.cli.app.main(['--version'])", tmp_path)
    assert "typer" in loaded
    assert "pydantic" not in loaded


def test_the_import_adds_little_to_python_with_numpy(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    bare, ours = "import numpy", "import numpy, videoflow"
    for statement in (bare, ours):
        processor_seconds(statement, tmp_path)
    pairs = [(processor_seconds(bare, tmp_path), processor_seconds(ours, tmp_path)) for _ in range(ROUNDS)]
    added = min(b for _, b in pairs) - min(a for a, _ in pairs)
    record_property("import_added_ms", round(added * 1000))
    assert added < ADDED_SECONDS_MAX, pairs
