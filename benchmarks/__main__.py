"""`python -m benchmarks [NAMES]`: measures, prints the ratios, and writes the result down.

For whoever changes what may cost time. It refuses names of workloads that do not exist, and never fails on
time: a budget that is missed says so in the table.
"""

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from benchmarks import machine
from benchmarks.measuring import ROOT, adopt_orphans
from benchmarks.plot import draw
from benchmarks.render import document
from benchmarks.rounds import Outcome, Size, run_workload
from benchmarks.workloads import find_video, workloads

_SHORT_ITEMS = 20


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="workloads, of W1a W1b W1c W2 ...; default all")
    parser.add_argument("--rounds", type=int, default=9, help="of every contender (default 9)")
    parser.add_argument("--seconds", type=float, default=1.0, help="a contender's share of a round")
    parser.add_argument(
        "--short", action="store_true", help=f"one round of {_SHORT_ITEMS} items: does it work?"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "benchmarks.md", help="the result, Markdown"
    )
    parser.add_argument("--cores", type=int, default=2, help="to which contenders are pinned (default 2)")
    parser.add_argument("--items", type=int, default=0, help="of every round, whatever fits")
    parser.add_argument("--remark", default="", help="what a reader of the result must know first")
    return parser.parse_args()


def main() -> None:
    """Runs the command."""
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # no contender outlives it
    adopt_orphans()
    find_video()
    known = workloads()
    unknown = [name for name in given.names if name not in known]
    if unknown:
        sys.exit(f"there is no workload {', '.join(unknown)}; there are {', '.join(known)}")
    size = Size(given.rounds, given.seconds, given.items)
    if given.short:
        size = Size(1, given.seconds, _SHORT_ITEMS)
    facts = machine.facts(machine.pin(given.cores))
    facts["size"] = f"{size.rounds} rounds of about {size.seconds:g} s" + (", short" if given.short else "")
    outcomes: list[Outcome] = []
    for name in given.names or known:
        outcomes.append(
            run_workload(known[name], size, lambda line: print(line, file=sys.stderr, flush=True))
        )
        facts["load after"] = machine.load()
        text = document(facts, outcomes, given.remark)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text)
        given.out.with_suffix(".svg").write_text(draw(outcomes))
    Console().print(Markdown(given.out.read_text()))
    print(f"written to {given.out} and {given.out.with_suffix('.svg')}", file=sys.stderr)


if __name__ == "__main__":
    main()
