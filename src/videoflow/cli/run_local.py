"""`videoflow run-local`: runs a flow on this machine, shows how it goes, and says how it ended."""

import logging
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from videoflow.cli._boundary import INTERRUPTED
from videoflow.cli._console import columns, show_block, watched
from videoflow.cli._flow_file import (
    WORDS,
    Debug,
    Fuse,
    GpuPolicy,
    Help,
    Memory,
    Require,
    Target,
    gpu_policy,
    load,
    profile_asked,
    profile_first,
    required_too,
    show_help,
)
from videoflow.cli._follow import follow
from videoflow.cli._logs import Logs
from videoflow.cli._outcome import ending_blocks, more_dead_letters
from videoflow.cli._progress import progress_on
from videoflow.cli._signals import StopRequests
from videoflow.cli._summary import summary_lines
from videoflow.cli._units import parse_bytes
from videoflow.cli._where import RunDir
from videoflow.engines.run_folder import RunFolder, require_writable, runs_folder, write_atomically
from videoflow.errors import NotYet, OutputUnwritable, UsageError
from videoflow.graph import Flow
from videoflow.graph.report import RunReport, Verdict
from videoflow.graph.running import RunOptions
from videoflow.graph.spec import FlowSpec

_DEFAULTS = RunOptions()


@dataclass(frozen=True)
class _Shown:
    """What is shown, and where the report goes."""

    quiet: bool
    json: bool
    report: Path | None
    debug: bool


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run-local", context_settings=WORDS, add_help_option=False)(run_local)


def run_local(  # noqa: PLR0913 (each parameter is an option of the command line)
    context: typer.Context,
    target: Target = "",
    engine: Annotated[str, typer.Option(metavar="NAME", help="local (processes) or threads.")] = "local",
    run_dir: RunDir = None,
    memory_bytes: Memory = "",
    require: Require = None,
    drain_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a stop may drain.", min=0)
    ] = _DEFAULTS.drain_seconds,
    stall_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="No progress for so long, with work waiting, is a stall.", min=1
        ),
    ] = _DEFAULTS.stall_seconds,
    allow_dead_letters: Annotated[
        int, typer.Option(metavar="N", help="So many inputs put aside still make a complete run.", min=0)
    ] = 0,
    allow_incomplete: Annotated[
        bool, typer.Option("--allow-incomplete", help="Exit with 0 when the run is incomplete.")
    ] = False,
    run_gpu_policy: GpuPolicy = "strict",
    run_profile: Annotated[
        bool,
        typer.Option(
            "--run-profile",
            help="Measure where the time goes, and say what limits the flow; --profile after the file does "
            "the same, unless the flow has that option. What nodes cost is kept for later plans.",
        ),
    ] = False,
    run_fuse: Fuse = True,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the report here.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but errors.")] = False,
    debug: Debug = False,
    messaging: Annotated[str, typer.Option(hidden=True)] = "auto",
    resume: Annotated[
        str,
        typer.Option(
            metavar="RUN",
            help="Go on with a run that was stopped to be resumed: its id, part of it, or `last`.",
            show_default=False,
        ),
    ] = "",
    shown_help: Help = False,
) -> int:
    """Run a flow on this machine; the options of the flow, its factory's parameters, follow the file."""
    if shown_help:
        show_help(context, target)
        return 0
    _refuse_later(messaging=messaging)
    _refuse_elsewhere(engine, sys.platform)
    options = RunOptions(
        runs_folder=runs_folder(run_dir),
        memory_bytes=parse_bytes(memory_bytes) if memory_bytes else None,
        drain_seconds=drain_seconds,
        stall_seconds=stall_seconds,
        allow_dead_letters=allow_dead_letters,
        allow_incomplete=allow_incomplete,
        gpu_policy=gpu_policy(run_gpu_policy),
        resume=resume,
        fuse=run_fuse,
    )
    if report is not None:
        require_writable(report.absolute())
    target, words, first = profile_first(target, context.args)
    file = load(target)
    words, asked = profile_asked(file, words)
    flow = required_too(file.build(words), require)
    options = replace(options, profile=run_profile or first or asked)
    return _run(flow, engine, options, _Shown(quiet, json, report, debug))


def _refuse_later(*, messaging: str) -> None:
    if messaging != "auto":
        raise NotYet("--messaging is not built yet", remedy="leave it out; local runs need no server")


def _refuse_elsewhere(engine: str, platform: str) -> None:
    if engine == "local" and platform != "linux":
        raise UsageError(
            "the engine local runs on Linux only",
            cause=f"this is {platform}",
            effect="nothing was started",
            remedy="run it with --engine threads",
        )


def run_flow(flow: Flow, engine: str, options: RunOptions) -> int:
    """Runs a flow as `run-local` does without options of its own; returns the exit status."""
    _refuse_elsewhere(engine, sys.platform)
    return _run(flow, engine, options, _Shown(quiet=False, json=False, report=None, debug=False))


def _run(flow: Flow, engine: str, options: RunOptions, shown: _Shown) -> int:
    """Starts the flow, follows it to its end, and shows the account; returns the exit status."""
    console = watched()
    logging.getLogger("videoflow.engines").addHandler(logging.NullHandler())  # it stands in the logs too
    spec = flow.compile()
    progress = progress_on(console, spec, engine, quiet=shown.quiet)
    with StopRequests(progress.close) as requests:
        try:
            handle = flow.start(engine, **vars(options))
            requests.started = True
            folder = RunFolder(runs_folder(options.runs_folder) / handle.run_id)
            if folder.path.exists():
                folder.note_signals()  # `videoflow stop` may then ask by a signal
            ended = follow(handle, requests, progress, Logs(folder.logs_path), options.drain_seconds)
        finally:
            progress.close()
    if not shown.quiet:
        for line in summary_lines(ended, flow.folder, columns(console)):
            console.print(line)
    cause = getattr(handle, "cause", None)  # where user code ran in this process
    if shown.debug and isinstance(cause, BaseException):
        console.print("\n" + "".join(traceback.format_exception(cause)).rstrip(), style="dim")
    _show_ending(ended, spec, shown)
    _hand_over(ended, shown)
    return _status(ended, requests)


def _show_ending(report: RunReport, spec: FlowSpec, shown: _Shown) -> None:
    console = watched()
    for number, block in enumerate(ending_blocks(report, spec)):
        if number or not shown.quiet:
            console.print()
        show_block(console, block)
    more = more_dead_letters(report)
    if more:
        console.print(f"\n{more}")


def _hand_over(report: RunReport, shown: _Shown) -> None:
    """Gives the report to who asked for it."""
    if shown.json:
        print(report.to_json().decode())
    if shown.report is not None:
        try:
            shown.report.absolute().parent.mkdir(parents=True, exist_ok=True)
            write_atomically(shown.report, report.to_json())
        except OSError as error:
            raise OutputUnwritable(
                "the report cannot be written",
                cause=error.strerror or str(error),
                where=str(shown.report),
                effect=f"the run itself ended as {report.verdict}",
                remedy="free the place, and take the report from the run folder",
            ) from error


def _status(report: RunReport, requests: StopRequests) -> int:
    cut_short = requests.count > 1 and report.verdict is not Verdict.COMPLETE
    if requests.interrupted and (report.verdict is Verdict.STOPPED or cut_short):
        return INTERRUPTED
    return report.exit_status
