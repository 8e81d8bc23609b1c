"""A script that runs itself in processes without a guard: one clear failure, and at once."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import videoflow as vf

class Numbers(vf.Producer):
    def produce(self, resume):
        for number in range(5):
            yield vf.Item(number, offset=number)

@vf.consumer
def see(value):
    pass

flow = vf.Flow([see(name="see")(Numbers(name="numbers"))], name="unguarded")
try:
    flow.run(engine="local", runs_folder="runs")
except vf.RunFailed as error:
    print(error.block())
    print("restarts", sum(node.restarts for node in error.report.nodes))
"""


def test_a_run_without_a_guard_fails_once_with_the_remedy(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert "error VF-USAGE" in done.stdout
    assert "a run is reached while" in done.stdout
    assert "guard the call with `if __name__ == '__main__'`" in done.stdout
    assert done.stdout.splitlines()[-1] == "restarts 0"
