"""Counts every way of silencing a check, and holds each kind to its ceiling in `suppressions.toml`.

Each suppression must give its reason where it stands: after the directive in a comment
(`# noqa: BLE001 - user code may raise anything`), or as a string in the call that skips or filters. Run as
`python -m tools.suppressions`; a test runs it too, so that no suppression enters unseen.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEARCHED = ("src", "tests", "tools", "examples", "benchmarks")
CEILINGS = ROOT / "tools" / "suppressions.toml"
REASON = re.compile(r"\w+\W+\w+\W+\w+")  # at least three words

# Directives in comments; what follows the match is the reason.
DIRECTIVES = {
    "whole-file": re.compile(
        r"#\s*(?:(?:ruff|flake8):\s*noqa\b|mypy:\s*\w|pyright:\s*(?:basic|strict))", re.I
    ),
    "noqa": re.compile(r"#\s*noqa\b(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?", re.I),
    "type-ignore": re.compile(r"#\s*(?:type|pyright):\s*ignore\b(?:\[[\w\-, ]+\])?"),
    "no-cover": re.compile(r"#\s*pragma:\s*no\s+(?:cover|branch)\b", re.I),
    "format-off": re.compile(r"#\s*(?:fmt:\s*(?:off|skip)|isort:\s*(?:off|skip))\b"),
}
# Names whose use is a suppression; matched against the dotted name, from its end.
NAMES = {
    "skip": re.compile(r"(?:pytest|mark|unittest)\.(?:skip|skipif|skipIf|skipUnless|importorskip|SkipTest)$"),
    "xfail": re.compile(r"(?:pytest|mark|unittest)\.(?:xfail|expectedFailure)$"),
    "warning-filter": re.compile(r"mark\.filterwarnings$"),
    "type-ignore": re.compile(r"(?:^|\.)no_type_check$"),
}
TELLTALES = re.compile(
    "skip|xfail|expectedfailure|no_type_check|filter|suppress", re.I
)  # in all that is looked for
IGNORED_WARNINGS = re.compile(r"(?:^|warnings\.)(?:simplefilter|filterwarnings)$")


@dataclass(frozen=True)
class Suppression:
    """One silenced check: its kind, where it stands, and the reason given there."""

    kind: str
    where: str
    reason: str

    @property
    def has_reason(self) -> bool:
        """Whether the reason is more than a word."""
        return bool(REASON.search(self.reason))


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, comment) for each comment of a Python source."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def in_comments(where: str, text: str) -> Iterator[Suppression]:
    """Yields the directives in comments; one comment may hold several."""
    if not any(pattern.search(text) for pattern in DIRECTIVES.values()):
        return
    for line, comment in comments(text):
        for kind, pattern in DIRECTIVES.items():
            for match in pattern.finditer(comment):
                yield Suppression(kind, f"{where}:{line}", comment[match.end() :])


def dotted(node: ast.expr) -> str:
    """`a.b.c` for names and attributes, an empty text for anything else."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def kind_of_call(call: ast.Call) -> str | None:
    """The kind of suppression that only a call with certain arguments is."""
    name = dotted(call.func)
    first = dotted(call.args[0]) if call.args else ""
    if name.rpartition(".")[2] == "suppress" and {dotted(argument) for argument in call.args} & {
        "Exception",
        "BaseException",
    }:
        return "blind-suppress"
    if IGNORED_WARNINGS.search(name) and call.args:
        first_value = call.args[0].value if isinstance(call.args[0], ast.Constant) else first
        return "warning-filter" if first_value == "ignore" else None
    return None


def in_code(where: str, text: str) -> Iterator[Suppression]:
    """Yields skips, expected failures and filters; a reason is text in the call or the line's comment."""
    if not TELLTALES.search(text):
        return
    calls: dict[int, ast.Call] = {}
    found: list[tuple[str, int, ast.AST | None]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            calls[id(node.func)] = node
            if kind := kind_of_call(node):
                found.append((kind, node.lineno, None))
        elif isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node)
            found += [(kind, node.lineno, node) for kind, pattern in NAMES.items() if pattern.search(name)]
    line_comments = dict(comments(text)) if found else {}
    for kind, line, named in found:
        call = calls.get(id(named))
        said = "" if call is None else " ".join(texts_in(call))
        yield Suppression(kind, f"{where}:{line}", f"{said} {line_comments.get(line, '')}")


def texts_in(call: ast.Call) -> list[str]:
    """Every text in the arguments of a call."""
    constants = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def in_settings(text: str) -> Iterator[Suppression]:
    """Yields what pyproject.toml switches off; reasons are comments at the end of the entry's line."""
    settings = tomllib.loads(text)["tool"]
    lint = settings["ruff"]["lint"]
    entries = [("per-file-ignores", path) for path in lint.get("per-file-ignores", {})]
    entries += [("rule-off", rule) for rule in lint.get("ignore", [])]
    for override in settings["mypy"].get("overrides", []):
        modules = override["module"] if isinstance(override["module"], list) else [override["module"]]
        entries += [("untyped-library", module) for module in modules]
    filters = settings["pytest"].get("filterwarnings", [])
    entries += [("warning-filter", entry) for entry in filters if entry != "error"]
    lines = text.splitlines()
    for kind, entry in entries:
        number, line = next((n, s) for n, s in enumerate(lines, 1) if f'"{entry}"' in s.partition(" #")[0])
        yield Suppression(kind, f"pyproject.toml:{number}", line.partition(" #")[2])


def found_in(root: Path) -> list[Suppression]:
    """Every suppression of a checkout."""
    found = list(in_settings((root / "pyproject.toml").read_text(encoding="utf-8")))
    for folder in SEARCHED:
        for path in sorted((root / folder).rglob("*.py")):
            text, where = path.read_text(encoding="utf-8"), str(path.relative_to(root))
            found += in_comments(where, text)
            found += in_code(where, text)
    return found


def ceilings() -> dict[str, int]:
    """How many of each kind are allowed."""
    return {kind: entry["ceiling"] for kind, entry in tomllib.loads(CEILINGS.read_text("utf-8")).items()}


def problems(found: list[Suppression], allowed: dict[str, int]) -> list[str]:
    """One sentence per suppression without a reason, and per kind above its ceiling."""
    sentences = [f"{each.where}: {each.kind} without a reason" for each in found if not each.has_reason]
    counts = Counter(each.kind for each in found)
    for kind, count in counts.items():
        if count > allowed.get(kind, 0):
            places = ", ".join(each.where for each in found if each.kind == kind)
            sentences.append(f"{kind}: {count}, the ceiling is {allowed.get(kind, 0)} ({places})")
    return sentences


def main() -> int:
    """Prints the counts and the problems; exit code 1 when there is a problem."""
    found, allowed = found_in(ROOT), ceilings()
    counts = Counter(each.kind for each in found)
    print(", ".join(f"{kind} {counts[kind]} of {ceiling}" for kind, ceiling in allowed.items()))
    found_problems = problems(found, allowed)
    for problem in found_problems:
        print(f"error  {problem}")
    return 1 if found_problems else 0


if __name__ == "__main__":
    sys.exit(main())
