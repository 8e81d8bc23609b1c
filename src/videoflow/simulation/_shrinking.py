"""Makes a failing schedule as small as it goes, and tells what happens in it.

Used by the search and by `videoflow simulate`. A smaller schedule counts when it breaks the same promise.
"""

from collections.abc import Iterator
from dataclasses import replace

from videoflow.graph.spec import NodeKind
from videoflow.simulation._schedule import PlannedFault, Schedule
from videoflow.simulation._simulate import Result, Simulation

_MOST_RUNS = 200


def promise_of(violation: str) -> str:
    """Returns which promise a violation breaks."""
    return violation.partition(":")[0]


class _Shrinking:
    def __init__(self, simulation: Simulation, result: Result) -> None:
        self.simulation = simulation
        self.best = result
        self.promises = {promise_of(violation) for violation in result.violations}
        self.runs = 0

    def keeps(self, schedule: Schedule) -> bool:
        """Whether a smaller schedule still fails; the smallest is kept."""
        if self.runs >= _MOST_RUNS or schedule == self.best.schedule:
            return False
        self.runs += 1
        found = self.simulation.run(schedule)
        fails = bool(self.promises & {promise_of(violation) for violation in found.violations})
        if fails:
            self.best = found
        return fails

    def without_faults(self) -> None:
        """Leaves out faults: halves first, then one by one, as long as it fails."""
        size = max(1, len(self.best.schedule.faults) // 2)
        while size:
            faults, at = self.best.schedule.faults, 0
            while at < len(faults):
                fewer = faults[:at] + faults[at + size :]
                if self.keeps(replace(self.best.schedule, faults=fewer)):
                    faults = fewer
                else:
                    at += size
            size //= 2

    def with_fewer_items(self) -> None:
        """Shortens each source, by halves and then by single items."""
        items = dict(self.best.schedule.items or self.simulation.items())
        spec = self.simulation.subject.plan.spec
        for source, count in items.items():
            if not spec.node(source).traits.resumable:
                continue  # it is numbered anew after each death, and would be shortened in each epoch
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                shorter = {**items, source: middle}
                if self.keeps(replace(self.best.schedule, items=tuple(sorted(shorter.items())))):
                    items[source] = high = middle
                else:
                    low = middle + 1

    def with_less_chance(self) -> None:
        """Takes the simplest order of moves, no stop, and the first time that each point is reached."""
        self.keeps(replace(self.best.schedule, stops=()))
        self.keeps(replace(self.best.schedule, stops=self.best.schedule.stops[:1]))
        self.keeps(replace(self.best.schedule, calm=True))
        for number, fault in enumerate(self.best.schedule.faults):
            for hit in range(1, fault.hit):
                faults = list(self.best.schedule.faults)
                faults[number] = replace(fault, hit=hit)
                if self.keeps(replace(self.best.schedule, faults=tuple(faults))):
                    break


def shrink(simulation: Simulation, result: Result) -> Result:
    """Returns the smallest failing run that was found, told step by step.

    Args:
        simulation: Of what failed.
        result: The failing run.
    """
    shrinking = _Shrinking(simulation, result)
    shrinking.without_faults()
    shrinking.with_fewer_items()
    shrinking.with_less_chance()
    shrinking.without_faults()
    shrinking.with_fewer_items()
    return simulation.run(shrinking.best.schedule, telling=True)


def story(simulation: Simulation, result: Result, most: int = 60) -> Iterator[str]:
    """Yields what happens in a run, in lines.

    Args:
        simulation: Of what was run.
        result: The run, told.
        most: The most events; earlier ones are left out.
    """
    plan = simulation.subject.plan
    yield f"seed {result.schedule.seed}" + (
        ", the one furthest down moves first" if result.schedule.calm else ""
    )
    for node in plan.spec.nodes:
        inputs = ", ".join(_edge(edge.name, edge.latest is not None) for edge in plan.spec.inputs(node.name))
        options = f", {node.options.replicas} replicas" if node.options.replicas > 1 else ""
        source = node.kind is NodeKind.PRODUCER
        items = dict(result.schedule.items or simulation.items()).get(node.name)
        what = f"{items} items" if source else f"reads {inputs}"
        yield f"  {node.name}: {node.qualname}{options}; {what}"
    yield "what goes wrong:"
    yield from (f"  {_fault(fault)}" for fault in result.schedule.faults)
    for step in result.schedule.stops:
        yield f"  the run is asked to stop at step {step}"
    if result.schedule.quits:
        yield "  the last time it is to end without draining"
    if result.schedule.resumed:
        yield "  it is stopped to be resumed, and another run goes on with it"
    events = [event for event in result.story if not event.what.startswith(("Pull (waits)", "NextItem"))]
    if len(events) > most:
        yield f"what happens, after {len(events) - most} other events:"
    else:
        yield "what happens:"
    yield from (f"  {event.step:5d}  {event.station} {event.what}" for event in events[-most:])
    yield "what may not be:"
    yield from (f"  {violation}" for violation in result.violations)


def _edge(name: str, live: bool) -> str:
    return f"the newest of {name}" if live else name


_DOES: dict[str, str] = {
    "crash": "dies",
    "raise": "ends with an exception",
    "delay": "is not heard of for long",
    "lost": "does not get the answer",
    "unsent": "does not get through, and does not know",
    "full": "finds no room",
    "twice": "does it twice",
    "short": "gets less than there is",
    "empty": "gets nothing",
    "unreadable": "cannot read",
    "replace": "is replaced, and lives on for a while",
}


def _fault(fault: PlannedFault) -> str:
    point = fault.point.removeprefix("call:").removeprefix("fence:")
    return f"{fault.station} {_DOES[fault.action]} at {point}, time {fault.hit}"
