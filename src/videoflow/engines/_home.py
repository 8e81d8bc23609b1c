"""Where runs live when nobody says otherwise: the one place of the engines that reads the environment.

Used by the run folder and by the claims on outputs. It refuses an empty or relative setting in silence,
as the XDG convention asks: the default applies.
"""

import os
from collections.abc import Mapping
from pathlib import Path


def inherited() -> Mapping[str, str]:
    """Returns the environment of this process, which its workers inherit."""
    return dict(os.environ)


def home_folder() -> Path:
    """Returns `$VIDEOFLOW_HOME`, else `videoflow` under the XDG state folder; it may not exist yet."""
    named = os.environ.get("VIDEOFLOW_HOME", "")
    if named:
        return Path(named).expanduser().absolute()
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        state = Path("~/.local/state").expanduser()
    return state / "videoflow"


def runs_folder(chosen: Path | None = None) -> Path:
    """Returns the folder that holds the run folders: the chosen one, else `runs` in the home folder."""
    return chosen.expanduser().absolute() if chosen is not None else home_folder() / "runs"
