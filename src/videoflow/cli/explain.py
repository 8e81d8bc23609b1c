"""`videoflow explain`: the plan that an engine would run, and why it is so."""

from typing import Annotated, Protocol, cast

import typer

from videoflow import registry
from videoflow.cli._console import columns, results
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
    required_too,
    show_help,
)
from videoflow.cli._plan_text import plan_lines
from videoflow.cli._units import parse_bytes
from videoflow.graph.running import RunOptions, RunRequest
from videoflow.planner.explain import explain_mermaid
from videoflow.planner.plan import Plan


class Planning(Protocol):
    """An engine that can say what it would run."""

    def plan(self, request: RunRequest) -> Plan:
        """Returns the plan that `start` would run."""
        ...


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("explain", context_settings=WORDS, add_help_option=False)(explain)


def explain(  # noqa: PLR0913 (each parameter is an option of the command line)
    context: typer.Context,
    target: Target = "",
    engine: Annotated[str, typer.Option(metavar="NAME", help="For local or threads.")] = "local",
    memory_bytes: Memory = "",
    require: Require = None,
    run_gpu_policy: GpuPolicy = "strict",
    run_fuse: Fuse = True,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    diagram: Annotated[bool, typer.Option("--mermaid", help="Print the plan as a Mermaid diagram.")] = False,
    debug: Debug = False,
    shown_help: Help = False,
) -> None:
    """Show how a flow would run, and why: tasks, transports, buffers, commit orders, guarantees."""
    if shown_help:
        show_help(context, target)
        return
    flow = required_too(load(target).build(context.args), require)
    options = RunOptions(
        memory_bytes=parse_bytes(memory_bytes) if memory_bytes else None,
        gpu_policy=gpu_policy(run_gpu_policy),
        fuse=run_fuse,
    )
    found = cast("Planning", registry.load(registry.ENGINES, engine)())
    plan = found.plan(RunRequest(flow.compile(), {}, options))
    if json:
        print(plan.to_json().decode())
    elif diagram:
        print(explain_mermaid(plan), end="")
    else:
        console = results()
        for line in plan_lines(plan, columns(console)):
            console.print(line)
