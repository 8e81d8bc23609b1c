"""`videoflow simulate`: many simulated runs of a flow, each with its own faults, and what they broke."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from videoflow.cli._console import results, watched
from videoflow.cli._flow_file import WORDS, Debug, Help, Target, load, show_help
from videoflow.graph import Compiled, Flow
from videoflow.simulation import Result, Simulation, StandIn, Table, recorded, shrink, story

_FAILED = 4
_PROGRESS_EVERY = 100


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("simulate", context_settings=WORDS, add_help_option=False)(simulate)


def simulate(
    context: typer.Context,
    target: Target = "",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="How many schedules of faults.")] = 1000,
    seed: Annotated[int, typer.Option(metavar="S", help="The first of them.")] = 0,
    items: Annotated[int, typer.Option(metavar="K", min=1, help="So many items of each source.")] = 12,
    debug: Debug = False,
    shown_help: Help = False,
) -> int:
    """Run a flow thousands of times in one thread, on virtual time, while everything breaks.

    Workers die, answers are lost, stores are full, runs are stopped. What comes out is compared with a run
    without faults. The first schedule that breaks a promise is made small and told, and the status is 4.
    """
    if shown_help:
        show_help(context, target)
        return 0
    flow = load(target).build(context.args)
    subject, stand_ins = recorded(_compiled(flow), items)
    _show_stand_ins(stand_ins)
    simulation = Simulation(subject)
    table, counted = Table(), 0
    for number in range(seed, seed + seeds):
        result = simulation.run(simulation.schedule(number))
        counted += result.counts
        table.add(result.hits)
        if result.violations:
            _tell(simulation, result, number)
            return _FAILED
        if (number - seed + 1) % _PROGRESS_EVERY == 0:
            watched().print(f"{number - seed + 1} of {seeds} schedules")
    console = results()
    console.print("what went wrong, and where:")
    for line in _places(table):
        console.print(line)
    console.print(f"\n{seeds} schedules, something was injected in {counted}; no promise was broken")
    return 0


def _places(table: Table) -> Iterator[str]:
    """Yields a line for each point that something happened at: how often what."""
    at: dict[str, Counter[str]] = {}
    for (point, action, _), count in table.counts.items():
        at.setdefault(point, Counter())[action] += count
    for point, actions in sorted(at.items()):
        told = "  ".join(f"{count} {action}" for action, count in sorted(actions.items()) if count)
        yield f"  {point.replace(':', ' '):<18}{told}"


def _compiled(flow: Flow) -> Compiled:
    return flow._compiled()


def _show_stand_ins(stand_ins: list[StandIn]) -> None:
    console = watched()
    if stand_ins:
        console.print("replayed from one run without faults, and not run:")
    for each in stand_ins:
        console.print(f"  {each.node}: {each.why}")


def _tell(simulation: Simulation, result: Result, number: int) -> None:
    console = results()
    console.print(f"schedule {number} broke a promise; this is the smallest like it:\n")
    for line in story(simulation, shrink(simulation, result)):
        console.print(line)
    console.print(f"\nagain: the same command with --seed {number} --seeds 1")
