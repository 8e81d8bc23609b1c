"""Makes the peers' environments: `python -m benchmarks.setup [NAMES]`.

Each has a folder of its own under `.work/benchmarks/`. What cannot be installed is noted with pip's last
words, and the benchmarks print that beside the peer's name. It refuses nothing; a second run redoes what
failed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.environments import ENVIRONMENTS, FOLDER, Environment, folder, note, python, why_not


def _interpreter(version: str) -> str | None:
    if not version or sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is not None and _runs(found):
        return found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next((str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python"))), None)


def _runs(command: str) -> bool:
    """A shim may be there for a version that is not."""
    return subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0


def _make(name: str, wanted: Environment) -> str:
    """Makes an environment; returns why it cannot be, or ""."""
    interpreter = _interpreter(wanted.version)
    if interpreter is None:
        return f"there is no Python {wanted.version} here"
    shutil.rmtree(folder(name), ignore_errors=True)
    made = subprocess.run(
        [interpreter, "-m", "venv", str(folder(name))], capture_output=True, text=True, check=False
    )
    if made.returncode:
        return _last_words(made.stderr)
    install = [python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*install, *wanted.packages], capture_output=True, text=True, check=False)
    if done.returncode:
        return _last_words(done.stderr)
    for package in wanted.optional:
        subprocess.run([*install, "--only-binary", ":all:", package], capture_output=True, check=False)
    return ""


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("ERROR")] or text.splitlines() or ["?"]
    return lines[-1].removeprefix("ERROR: ")


def main() -> None:
    """Makes those that are named, or all that are not there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or [name for name in ENVIRONMENTS if why_not(name)]:
        why = _make(name, ENVIRONMENTS[name])
        note(name).write_text(why)
        print(f"{name}: {why or 'ready'}", flush=True)


if __name__ == "__main__":
    main()
