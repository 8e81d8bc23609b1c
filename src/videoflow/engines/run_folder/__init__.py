"""The folders of runs, and the claims on what runs write.

Used by the engines, which make them, and by the command line, which lists, stops, buries and cleans. It
refuses a place that cannot be written, before anything starts.
"""

from videoflow.engines._home import home_folder, runs_folder
from videoflow.engines._outputs import OutputClaims, claim_outputs, outputs_of, require_writable, sweep_claims
from videoflow.engines._unresumable import note_resumable, refuse_stopping
from videoflow.engines.run_folder._finding import find_run, list_runs
from videoflow.engines.run_folder._folder import RunFolder, RunState, Supervisor, write_atomically
from videoflow.engines.run_folder._lost import bury_lost_run, lost_report

__all__ = [
    "OutputClaims",
    "RunFolder",
    "RunState",
    "Supervisor",
    "bury_lost_run",
    "claim_outputs",
    "find_run",
    "home_folder",
    "list_runs",
    "lost_report",
    "note_resumable",
    "outputs_of",
    "refuse_stopping",
    "require_writable",
    "runs_folder",
    "sweep_claims",
    "write_atomically",
]
