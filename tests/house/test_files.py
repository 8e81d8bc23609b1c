"""The scripts that look at file lengths, binaries, foreign text, late imports and private modules."""

from pathlib import Path

import pytest

from tools import check_files, check_imports


def broken(path: str, data: bytes) -> list[str]:
    return list(check_files.findings(path, data))


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("src/videoflow/worker/core.py", 401),
        ("tests/worker/test_core.py", 401),
        ("tools/check.sh", 401),
        ("src/videoflow/backends/payload.py", 301),
        ("src/videoflow/backends/messaging/_types.py", 301),
    ],
)
def test_a_file_above_its_limit_is_refused_and_one_line_less_is_not(path: str, lines: int) -> None:
    assert broken(path, b"x = 1\n" * lines)
    assert not broken(path, b"x = 1\n" * (lines - 1))


def test_a_memory_reference_is_no_contract_file() -> None:
    assert not broken("src/videoflow/backends/memory/_log.py", b"x = 1\n" * 301)


@pytest.mark.parametrize("path", ["docs/picture.bmp", "tests/media/street.mp4", "src/videoflow/model.onnx"])
def test_a_binary_is_refused(path: str) -> None:
    assert broken(path, b"\x00\xff\x10")


@pytest.mark.parametrize(
    "path", ["docs/images/demo.png", "src/videoflow/nodes/vision/models/person-ssd.onnx"]
)
def test_the_shipped_model_and_the_pictures_of_the_documentation_are_not_refused(path: str) -> None:
    assert not broken(path, b"\x00\xff\x10")


@pytest.mark.parametrize("text", ["cd {}root/x", "'{}home/ann/video.mp4'", "see {}work/x", "{}Users/ann/x"])
def test_a_path_of_one_machine_is_refused(text: str) -> None:
    assert broken("docs/a.md", text.format("/").encode())


@pytest.mark.parametrize("text", ["$scratch{}work/x", "tests{}home/ann", "{}tmp/x", "{}workers/x"])
def test_an_ordinary_path_is_not_refused(text: str) -> None:
    assert not broken("docs/a.md", text.format("/").encode())


def test_a_registry_host_is_refused() -> None:
    assert broken("tools/a.sh", b"curl https://registry.npm" + b"js.org/x")
    assert broken("src/a.py", b'image = "registry.k' + b'8s.io/pause:3.10"')


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package in the place of ours."""
    folder = tmp_path / "src" / "videoflow"
    (folder / "nodes").mkdir(parents=True)
    (folder / "worker").mkdir()
    monkeypatch.setattr(check_imports, "ROOT", tmp_path)
    monkeypatch.setattr(check_imports, "PACKAGE", folder)
    return folder


@pytest.mark.parametrize(
    ("path", "source", "is_refused"),
    [
        ("nodes/a.py", "def open():\n    import cv2\n", False),
        ("nodes/b.py", "def open():\n    import json\n", True),
        ("nodes/c.py", "def open():\n    from videoflow.nodes.heavy import draw\n", False),
        ("worker/d.py", "def run():\n    import cv2\n", True),
        ("worker/e.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cv2\n", False),
        ("nodes/__init__.py", "def __getattr__(name):\n    from importlib import import_module\n", False),
    ],
    ids=["optional", "standard", "sibling-that-is-heavy", "room-that-may-not", "types-only", "lazy-face"],
)
def test_late_imports_are_for_optional_libraries(
    package: Path, path: str, source: str, is_refused: bool
) -> None:
    (package / "nodes" / "heavy.py").write_text("import cv2\n")
    (package / path).write_text(source)
    assert bool(list(check_imports.findings(package / path))) is is_refused


@pytest.mark.parametrize(
    ("path", "source", "is_refused"),
    [
        ("nodes/a.py", "from videoflow.worker._link import Link\n", True),
        ("nodes/b.py", "from videoflow.worker import _link\n", True),
        ("nodes/c.py", "import videoflow.worker._link\n", True),
        ("nodes/d.py", "def run():\n    from videoflow.worker._link import Link\n", True),
        ("worker/e.py", "from videoflow.worker._link import Link\n", False),
        ("worker/__init__.py", "from videoflow.worker._link import Link\n", False),
        ("nodes/f.py", "from videoflow.worker import Link\n", False),
        ("nodes/g.py", "from videoflow.worker import __doc__\n", False),
    ],
    ids=["name", "module", "dotted", "late", "own", "own-face", "offered", "dunder"],
)
def test_a_private_module_is_imported_by_its_own_package_alone(
    package: Path, path: str, source: str, is_refused: bool
) -> None:
    (package / "worker" / "__init__.py").touch()
    (package / "worker" / "_link.py").touch()
    (package / path).write_text(source)
    assert bool(list(check_imports.private_findings(package / path))) is is_refused
