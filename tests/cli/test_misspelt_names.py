"""A name that a flow file misspells: the error names the one that was meant."""

from pathlib import Path

import pytest

from tests.cli.helpers import command

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("from videoflow.nodes import Colect\n", "did you mean 'Collect'?"),
        ("import videoflow as vf\n@vf.procesor\ndef f(x): ...\n", "did you mean 'processor'?"),
        ("import pathlib\npathlib.Path.hom()\n", "did you mean 'home'?"),
        (
            "import videoflow as vf\ndef build_flow() -> vf.Flow:\n    camera = 1\n    return camrea\n",
            "did you mean 'camera'?",
        ),
        ("from videoflow.nodes import Zzz\n", "mend that line"),
        ("import nowhere\n", "mend that line"),
        ("{}['colect']\n", "mend that line"),
    ],
)
def test_a_misspelt_name_in_a_flow_file_is_refused_with_the_nearest(
    text: str, remedy: str, capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.py").write_text(text)
    ending = command(capfd, "explain", "flow.py")
    assert ending.status == 2
    assert f"remedy   {remedy}" in ending.err
