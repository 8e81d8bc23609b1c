"""Where the class of a node comes from: a module, a flow file, or a notebook.

Used by the compiler, which writes it down, by workers, which find the class again, and by the command line,
which loads flow files. It refuses a flow file that is missing, does not parse, fails while it runs, or has no
factory, each with file and line.
"""

import ast
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType

from videoflow.errors import FlowError, FlowFileError, UsageError, said_by
from videoflow.graph._arguments import resolved_annotations, restore
from videoflow.graph._folder import within_folder
from videoflow.graph._node import Node
from videoflow.graph._options import nearest
from videoflow.graph._types import Value
from videoflow.graph.spec import CodeKind, NodeSpec

FLOW_MODULE = "__videoflow_flow__"
_MAIN = "__main__"
_loading: ContextVar[str] = ContextVar("videoflow_loading", default="")


def refuse_while_loading(what: str) -> None:
    """Refuses to start a run from a flow file that is being loaded.

    Raises:
        UsageError: A flow file is being loaded.
    """
    path = _loading.get()
    if path:
        raise UsageError(
            f"{what} is reached while {path} is being loaded",
            cause="the command line and every worker run the flow file to find its classes",
            remedy="guard the call with `if __name__ == '__main__'`",
        )


def load_flow_file(path: str | Path) -> ModuleType:
    """Runs a flow file as the module `__videoflow_flow__`, and returns it.

    The folder of the file is put on the import path, as it is for a script.

    Raises:
        FlowFileError: It cannot be read, parsed or run; `where` says file and line.
        UsageError: It starts a run while it is being loaded.
    """
    file = Path(path).absolute()
    try:
        source = file.read_bytes()
    except OSError as error:
        raise FlowFileError(
            f"the flow file {path} cannot be read",
            cause=error.strerror or str(error),
            remedy="name a Python file that defines build_flow",
        ) from error
    code = _compiled(source, file)
    module = ModuleType(FLOW_MODULE)
    module.__file__ = str(file)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    with ExitStack() as undone:
        before = sys.modules.get(FLOW_MODULE)
        if before is None:
            undone.callback(sys.modules.pop, FLOW_MODULE)
        else:
            undone.callback(sys.modules.__setitem__, FLOW_MODULE, before)
        sys.modules[FLOW_MODULE] = module
        _run(code, module, file)
        undone.pop_all()
    return module


def line_in(file: str, trace: TracebackType | None) -> str:
    """Returns `file:line` of the last frame of a traceback that is in a file, or an empty text."""
    lines = [entry.lineno for entry in traceback.extract_tb(trace) if entry.filename == file]
    return f"{file}:{lines[-1]}" if lines else ""


def find_factory(module: ModuleType, name: str | None = None) -> Callable[..., Value]:
    """Returns the function that builds the flow of a module.

    Without a name: `build_flow`, else the only function annotated `-> vf.Flow`, else a module-level `flow`,
    which is returned as a function without parameters.

    Raises:
        FlowFileError: There is none, there are several, or none of that name.
    """
    file = getattr(module, "__file__", None) or module.__name__
    own = {key: found for key, found in vars(module).items() if _could_build(found)}
    if name is not None:
        if name not in own:
            raise FlowFileError(f"{file} has no factory {name!r}", remedy=nearest(name, own))
        return _as_factory(own[name])
    if "build_flow" in own:
        return _as_factory(own["build_flow"])
    annotated = [key for key, found in own.items() if _returns_flow(found, module)]
    if len(annotated) > 1:
        raise FlowFileError(
            f"{file} has {len(annotated)} factories: {', '.join(annotated)}",
            cause="each is annotated -> vf.Flow, and none is called build_flow",
            remedy=f"name one: {Path(file).name}:{annotated[0]}",
        )
    if annotated:
        return _as_factory(own[annotated[0]])
    if "flow" in own and not inspect.isfunction(own["flow"]):
        return _as_factory(own["flow"])
    raise FlowFileError(
        f"{file} has no factory",
        cause="there is no build_flow, no function annotated -> vf.Flow, and no flow at module level",
        remedy="write def build_flow() -> vf.Flow",
    )


def code_reference(cls: type) -> tuple[CodeKind, str, str]:
    """Returns how a worker finds a class: the kind of code, module or path, and qualified name.

    A class that has no importable name, from a notebook or from inside a function, is of kind `NOTEBOOK`: it
    can only be sent by value, from the process that has it.
    """
    module, qualname = cls.__module__, cls.__qualname__
    if "<locals>" in qualname:
        return CodeKind.NOTEBOOK, "", qualname
    if module in (_MAIN, FLOW_MODULE):
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None or not Path(file).is_file():
            return CodeKind.NOTEBOOK, "", qualname
        return CodeKind.FLOW_FILE, str(Path(file).absolute()), qualname
    return CodeKind.MODULE, module, qualname


def resolve(spec: NodeSpec) -> type[Node]:
    """Returns the class of a node, in a process that has only the spec.

    Raises:
        FlowFileError: The module, the file or the class cannot be found.
        UsageError: The class was made in a notebook, and has to be sent instead.
    """
    if spec.code is CodeKind.NOTEBOOK:
        raise UsageError(
            f"node {spec.name}: the class {spec.qualname} has no file",
            cause="it was made in a notebook or inside a function, and only its own process can send it",
            remedy="move the class to the top level of a module or of the flow file",
        )
    if spec.code is CodeKind.FLOW_FILE:
        loaded = sys.modules.get(FLOW_MODULE)
        same = loaded is not None and loaded.__file__ == spec.module
        found: Value = loaded if same else load_flow_file(spec.module)
    else:
        try:
            found = import_module(spec.module)
        except ImportError as error:
            raise FlowFileError(
                f"node {spec.name}: the module {spec.module} cannot be imported here",
                cause=str(error),
                remedy="start the run from a folder from which it can be imported, or install it",
            ) from error
    for part in spec.qualname.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, Node)):
        raise FlowFileError(
            f"node {spec.name}: {spec.module} has no node class {spec.qualname}",
            remedy="compile the flow again with the code as it is now",
        )
    return found


def instantiate(spec: NodeSpec, cls: type[Node], folder: str | Path | None = None) -> Node:
    """Makes a node again from what was recorded when the flow was built.

    Args:
        spec: The node.
        cls: Its class.
        folder: Where the flow was built; None in a process that works there.

    Raises:
        ArgumentInvalid: The arguments do not fit the class, which must have changed since.
    """
    positional, keywords = restore(cls, spec.arguments)
    with within_folder(folder or Path.cwd()):
        node: Node = cls(*positional, **keywords, name=spec.name)
    return node


def _compiled(source: bytes, file: Path) -> Value:
    try:
        return compile(ast.parse(source, str(file)), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        if not isinstance(error, SyntaxError) or error.lineno is None:  # a null byte: not a text at all
            raise FlowFileError(
                f"the flow file {file.name} is not Python",
                cause=str(error),
                remedy="name a Python file that defines build_flow",
            ) from error
        raise FlowFileError(
            f"the flow file {file.name} is not valid Python",
            cause=f"{error.msg}: {(error.text or '').strip()}".removesuffix(": "),
            where=f"{file}:{error.lineno}",
            remedy="mend that line",
        ) from error


def _run(code: Value, module: ModuleType, file: Path) -> None:
    with _while_loading(file):
        try:
            exec(code, module.__dict__)
        except FlowError:
            raise
        except (Exception, SystemExit) as error:
            raise FlowFileError(
                f"the flow file {file.name} failed while it was loaded",
                cause=said_by(error),
                where=line_in(str(file), error.__traceback__),
                remedy="mend that line; what only a script does stands under if __name__ == '__main__'",
            ) from error


@contextmanager
def _while_loading(file: Path) -> Iterator[None]:
    token = _loading.set(str(file))
    try:
        yield
    finally:
        _loading.reset(token)


def _could_build(found: Value) -> bool:
    return inspect.isfunction(found) or hasattr(type(found), "_videoflow_flow")


def _returns_flow(function: Value, module: ModuleType) -> bool:
    own = inspect.isfunction(function) and function.__module__ == module.__name__
    return own and hasattr(resolved_annotations(function).get("return"), "_videoflow_flow")


def _as_factory(found: Value) -> Callable[..., Value]:
    if inspect.isfunction(found):
        return found

    def flow() -> Value:
        """Returns the flow that stands at module level."""
        return found

    flow.__module__ = FLOW_MODULE
    return flow
