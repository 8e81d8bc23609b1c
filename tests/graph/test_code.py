"""Flow files, factories, and how a worker finds a class again."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import videoflow as vf
from tests.graph.nodes import Double, Numbers, Sink, halve
from videoflow.graph import FLOW_MODULE, code_reference, find_factory, instantiate, load_flow_file, resolve
from videoflow.graph.spec import CodeKind, FlowSpec

FLOW = """
import videoflow as vf
from helpers_of_{name} import step

class Numbers(vf.Producer):
    def __init__(self, count: int = 3) -> None:
        self.count = count

    def produce(self, resume):
        for number in range(resume or 0, self.count):
            yield vf.Item(number, offset=number)

class Outer:
    class Show(vf.Consumer):
        def consume(self, value):
            pass

@vf.processor
def add(value, *, by: int = step):
    return value + by

def build_flow(count: int = 5) -> vf.Flow:
    return vf.Flow([Outer.Show(name="show")(add(Numbers(count), by=7))])
"""


@pytest.fixture(autouse=True)
def _clean_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves the import path and the loaded flow file as they were."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop(FLOW_MODULE, None)  # another test of this process may have loaded one
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name == FLOW_MODULE or name.startswith("helpers_of_"):
            del sys.modules[name]


def written(folder: Path, text: str, name: str = "flow.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def printed(folder: Path, *arguments: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True).stdout


@pytest.fixture
def flow_file(tmp_path: Path) -> Path:
    """A flow file with a module beside it."""
    name = tmp_path.name.replace("-", "_")
    written(tmp_path, "step = 1\n", f"helpers_of_{name}.py")
    return written(tmp_path, FLOW.format(name=name))


def test_a_flow_file_is_a_module_that_finds_its_neighbours(flow_file: Path) -> None:
    module = load_flow_file(flow_file)
    assert sys.modules[FLOW_MODULE] is module
    flow = find_factory(module)()
    assert isinstance(flow, vf.Flow)
    assert flow.name == "flow"


def test_a_worker_finds_the_classes_of_a_flow_file_and_makes_equal_nodes(flow_file: Path) -> None:
    document = find_factory(load_flow_file(flow_file))(4).compile().to_json()
    del sys.modules[FLOW_MODULE]
    spec = FlowSpec.from_json(document)
    assert {node.code for node in spec.nodes} == {CodeKind.FLOW_FILE}
    assert {node.module for node in spec.nodes} == {str(flow_file)}
    made: dict[str, Any] = {node.name: instantiate(node, resolve(node)) for node in spec.nodes}
    assert made["numbers"].count == 4
    assert made["add"].process(1) == 8
    assert type(made["show"]).__qualname__ == "Outer.Show"
    assert made["numbers"]._videoflow_record.options == {"name": "numbers"}


def test_a_flow_file_that_is_loaded_is_not_run_again(flow_file: Path) -> None:
    module = load_flow_file(flow_file)
    spec = find_factory(module)().compile().node("numbers")
    assert resolve(spec) is module.Numbers
    assert sys.modules[FLOW_MODULE] is module


def test_the_script_itself_is_a_flow_file_and_its_run_is_guarded(flow_file: Path, tmp_path: Path) -> None:
    script = written(
        tmp_path,
        flow_file.read_text()
        + """
spec = build_flow().compile()
print({node.code.value for node in spec.nodes}, {node.module for node in spec.nodes})
build_flow().run()
""",
        "script.py",
    )
    with pytest.raises(vf.UsageError) as caught:
        load_flow_file(script)
    assert "guard the call with `if __name__ == '__main__'`" in caught.value.remedy
    assert FLOW_MODULE not in sys.modules
    text = script.read_text().replace("build_flow().run()", "")
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.startswith("{'notebook'}")  # no file, as in a notebook
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, script.name], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.strip() == f"{{'flow_file'}} {{'{script}'}}"


def test_importable_classes_are_named_by_module_and_local_ones_are_sent_by_value() -> None:
    class Local(vf.Processor):
        def process(self, value: Any) -> Any:
            return value

    assert code_reference(Double) == (CodeKind.MODULE, "tests.graph.nodes", "Double")
    assert code_reference(halve) == (CodeKind.MODULE, "tests.graph.nodes", "halve")
    kind, module, qualname = code_reference(Local)
    assert (kind, module) == (CodeKind.NOTEBOOK, "")
    assert qualname.endswith("<locals>.Local")
    spec = vf.Flow([Sink()(Local()(Numbers()))]).compile().node("local")
    with pytest.raises(vf.UsageError, match="no file"):
        resolve(spec)
    assert isinstance(instantiate(spec, Local), Local)


def test_a_class_or_module_that_is_gone_is_named(flow_file: Path) -> None:
    document = find_factory(load_flow_file(flow_file))().compile().node("add")
    del sys.modules[FLOW_MODULE]
    flow_file.write_text("import videoflow as vf\n")
    with pytest.raises(vf.FlowFileError, match="no node class add"):
        resolve(document)
    gone = vf.Flow([Sink()(Numbers())]).compile().node("sink")
    elsewhere = type(gone)(name="a", kind=gone.kind, code=gone.code, module="no.such.module", qualname="A")
    with pytest.raises(vf.FlowFileError, match=r"no\.such\.module"):
        resolve(elsewhere)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("import videoflow as vf\ndef build_flow(:\n    pass\n", 2, "not valid Python"),
        ("x = 1\ny = x / 0\n", 2, "ZeroDivisionError"),
        ("def f():\n    import no_such_module_at_all\nf()\n", 2, "ModuleNotFoundError"),
        ("import sys\nsys.exit('bye')\n", 2, "SystemExit: bye"),
    ],
)
def test_a_file_that_does_not_load_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(vf.FlowFileError) as caught:
        load_flow_file(path)
    assert caught.value.where == f"{path}:{line}"
    assert said in caught.value.block()
    assert caught.value.__cause__ is not None
    assert FLOW_MODULE not in sys.modules


def test_a_file_that_is_missing_or_no_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(vf.FlowFileError, match="cannot be read"):
        load_flow_file(tmp_path / "none.py")
    path = tmp_path / "video.mp4"
    path.write_bytes(b"\x00\x00\x00\x20ftypisom")
    with pytest.raises(vf.FlowFileError, match=r"video\.mp4 is not"):
        load_flow_file(path)


def module_with(**names: Any) -> ModuleType:
    module = ModuleType("flow_of_a_test")
    for name, found in names.items():
        if callable(found):
            found.__module__ = module.__name__
        setattr(module, name, found)
    return module


def flow() -> vf.Flow:
    return vf.Flow([Sink()(Numbers())], name="found")


def annotated(name: str) -> Any:
    def build() -> vf.Flow:
        return vf.Flow([Sink()(Numbers())], name=name)

    return build


def unannotated(name: str) -> Any:
    return lambda: vf.Flow([Sink()(Numbers())], name=name)


@pytest.mark.parametrize(
    ("names", "asked", "found"),
    [
        ({"build_flow": unannotated("a"), "other": annotated("b")}, None, "a"),
        ({"helper": unannotated("a"), "other": annotated("b")}, None, "b"),
        ({"flow": flow(), "helper": unannotated("a")}, None, "found"),
        ({"build_flow": unannotated("a"), "other": unannotated("b")}, "other", "b"),
        ({"flow": flow(), "other": annotated("b")}, "flow", "found"),
    ],
)
def test_the_factory_is_the_one_that_the_page_names(names: Any, asked: str | None, found: str) -> None:
    assert find_factory(module_with(**names), asked)().name == found


@pytest.mark.parametrize(
    ("names", "asked", "said"),
    [
        ({"build_flow": unannotated("a")}, "buildflow", "did you mean 'build_flow'"),
        ({"one": annotated("a"), "two": annotated("b")}, None, "has 2 factories: one, two"),
        ({"helper": unannotated("a")}, None, "has no factory"),
        ({"flow": unannotated("a")}, None, "has no factory"),
    ],
)
def test_no_factory_or_several_are_refused(names: Any, asked: str | None, said: str) -> None:
    with pytest.raises(vf.FlowFileError) as caught:
        find_factory(module_with(**names), asked)
    assert said in caught.value.block()
