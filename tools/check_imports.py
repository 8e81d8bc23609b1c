"""Limits imports: inside functions to optional libraries, and private modules to their own package.

Ruff switches its rule off for whole folders (PLC0415 in `adapters`, `media`, `nodes` and faces with a lazy
`__getattr__`). This script gives the permission back for optional libraries, and for modules of ours that
need one as soon as they load. Commands of `cli` may import late whatever they run. A module whose name
begins with an underscore belongs to the package that it is in; other packages use what that one offers. Part
of `tools/check.sh`.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "videoflow"
LATE_ROOMS = ("adapters", "media", "nodes")
OPTIONAL_LIBRARIES = {
    "av",
    "cloudpickle",
    "cv2",
    "lightkube",
    "nats",
    "obstore",
    "onnxruntime",
    "pynvml",
    "redis",
    "scipy",
    "starlette",
    "uvicorn",
    "yaml",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Full names of what one statement imports; a name from a package of ours may be one of its modules."""
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [
            f"{module}.{alias.name}" if module.startswith("videoflow") else module for alias in node.names
        ]
    return [alias.name for alias in node.names]


def inner_imports(tree: ast.AST, within: str | None = None) -> Iterator[tuple[str | None, int, str]]:
    """Yields (innermost function or None, line, module) of every import that runs."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import | ast.ImportFrom):
            for module in imported_modules(child):
                yield within, child.lineno, module
        elif isinstance(child, Function):
            yield from inner_imports(child, child.name)
        elif isinstance(child, ast.expr) or (
            isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        ):
            continue  # no import is part of an expression, and what only checkers read does not run
        else:
            yield from inner_imports(child, within)


@cache
def imports_of(path: Path) -> list[tuple[str | None, int, str]]:
    """The imports that run of one file, as `inner_imports` tells them."""
    return list(inner_imports(ast.parse(path.read_text(encoding="utf-8"))))


def file_of(module: str) -> Path | None:
    """The file that runs when a module of ours is imported, or the module that a name is in."""
    own = PACKAGE.parent.joinpath(*module.split("."))
    holder = own.parent  # when the last part is a name inside a module, not a module
    candidates = (
        own.with_suffix(".py"),
        own / "__init__.py",
        holder.with_suffix(".py"),
        holder / "__init__.py",
    )
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    return found if module.startswith("videoflow") else None


def needs_an_optional_library(module: str) -> bool:
    """Whether a module of ours, or one of ours that it imports at once, needs an optional library."""
    waiting, seen = [module], set[Path]()
    while waiting:
        path = file_of(waiting.pop())
        if path is None or path in seen:
            continue
        seen.add(path)
        at_once = [name for function, _, name in imports_of(path) if function is None]
        if any(map(is_optional, at_once)):
            return True
        waiting += at_once
    return False


def is_optional(module: str) -> bool:
    """Whether a module belongs to a library that only an extra installs."""
    return module.partition(".")[0] in OPTIONAL_LIBRARIES


def owner_of_private(module: str) -> str | None:
    """The package that a private module of ours, or a name in one, belongs to; None for anything public."""
    parts = module.split(".")
    private = next(
        (n for n, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None
    )
    if parts[0] != "videoflow" or private is None or file_of(".".join(parts[: private + 1])) is None:
        return None
    return ".".join(parts[:private])


def private_findings(path: Path) -> Iterator[str]:
    """Yields one sentence per import of a module that another package keeps to itself."""
    here = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for _, line, module in imports_of(path):
        owner = owner_of_private(module)
        if owner is not None and not here.startswith(f"{owner}."):
            yield f"{path.relative_to(ROOT)}:{line}: {module} is private to {owner}"


def findings(path: Path) -> Iterator[str]:
    """Yields one sentence per import inside a function that is not there for an optional library."""
    room = path.relative_to(PACKAGE).parts[0]
    for function, line, module in imports_of(path):
        if function is None or room == "cli" or (function == "__getattr__" and path.name == "__init__.py"):
            continue
        late_for_a_library = is_optional(module) or needs_an_optional_library(module)
        if not (room in LATE_ROOMS and late_for_a_library):
            yield f"{path.relative_to(ROOT)}:{line}: {function}() imports {module} needlessly late"


def main() -> int:
    """Prints every finding; exit code 1 when there is one."""
    paths = sorted(PACKAGE.rglob("*.py"))
    found = [sentence for path in paths for sentence in (*findings(path), *private_findings(path))]
    for sentence in found:
        print(f"error  {sentence}")
    print(f"late and private imports: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
