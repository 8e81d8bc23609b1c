"""Checks the shape of the tree: file lengths, binaries, and text that belongs to one machine.

Run by `tools/check.sh` and pre-commit. Prints one line per finding; exit code 1 when a limit is broken. Looks
at what git tracks or would track, so that caches and outputs do not count.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURED_ROOTS = ("src", "tests", "tools", "examples", "benchmarks")
MEASURED_SUFFIXES = (".py", ".sh")
MAX_LINES = 400
MAX_CONTRACT_LINES = 300
CONTRACT = re.compile(
    r"src/videoflow/backends/(outcomes|messaging|payload|runtime|capabilities|allocation)\b"
)
ALLOWED_BINARIES = (
    re.compile(r"src/videoflow/nodes/(\w+/)*[\w-]+\.onnx"),  # the detector that the package ships
    re.compile(r"docs/images/[\w-]+\.(png|jpg)"),  # the README's picture of what came out
)
# Spelt with classes of one character, so that this file does not find itself.
FOREIGN_TEXT = {
    "a path of one machine": re.compile(
        r"(?<![\w.$}/])[/](?:root|work|home/\w+|Users/\w+)(?:[/]|$|(?=[\"'\s]))"
    ),
    "a package registry's host": re.compile(
        r"[\w.-]*(?:pypi[.]org|pythonhosted[.]org|npmjs[.](?:org|com)|deb[.]debian[.]org|proxy[.]golang[.]org"
        r"|registry[.]k8s[.]io|docker[.]io|quay[.]io|(?:gcr|ghcr|nvcr)[.]io)"
    ),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY[-]----"),
}


def candidate_paths() -> list[str]:
    """Tracked files and files that git would accept, that still exist."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return sorted({path for path in listed.split("\0") if path and (ROOT / path).is_file()})


def line_limit(path: str) -> int:
    """The number of lines at which a file fails."""
    return MAX_CONTRACT_LINES if CONTRACT.match(path) else MAX_LINES


def length_findings(path: str, text: str) -> Iterator[str]:
    """Yields what is wrong with a file that is too long."""
    lines = text.count("\n")
    limit = line_limit(path)
    if lines > limit:
        yield f"{path}: {lines} lines, the limit is {limit}; split it by reason to change"


def text_findings(path: str, text: str) -> Iterator[str]:
    """Yields what text belongs to one machine."""
    for number, line in enumerate(text.splitlines(), start=1):
        for what, pattern in FOREIGN_TEXT.items():
            if pattern.search(line):
                yield f"{path}:{number}: {what}: {line.strip()[:80]}"


def findings(path: str, data: bytes) -> Iterator[str]:
    """Yields what is wrong with one file."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        if not any(allowed.fullmatch(path) for allowed in ALLOWED_BINARIES):
            yield f"{path}: a binary; generate it, or fetch it at set-up"
        return
    if path.startswith(MEASURED_ROOTS) and path.endswith(MEASURED_SUFFIXES):
        yield from length_findings(path, text)
    yield from text_findings(path, text)


def main() -> int:
    """Prints every finding; returns 1 where there is one."""
    paths = candidate_paths()
    found = [finding for path in paths for finding in findings(path, (ROOT / path).read_bytes())]
    for sentence in found:
        print(f"error  {sentence}")
    print(f"{len(paths)} files looked at, {len(found)} limits broken")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
