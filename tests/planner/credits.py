"""A model of credits: a plan as nothing but logs, leases and windows, stepped by a seeded scheduler.

It knows nothing of how the planner computes. It plays a plan with tokens for items, and tells whether a
schedule came to a state from which nothing can move although work is left: a deadlock. Bytes, live edges
and more than one fan-out on a path are outside it.
"""

import random
from dataclasses import dataclass

from tests.planner.credit_actors import Action, Actor, Owner, Replica, Source
from tests.planner.credit_logs import Leases, Log, Output
from videoflow.planner.plan import ChannelRef, InputMode, Plan, TaskPlan


class Model:
    """A plan with all its actors."""

    def __init__(self, plan: Plan, items: int, skips: bool) -> None:
        self.skips = skips
        self.logs: dict[ChannelRef, Log] = {
            channel.ref: Log(channel.bound_items, channel.readers) for channel in plan.channels
        }
        self.subscriptions: list[Leases] = []
        self.actors: list[Actor] = []
        for task in plan.tasks:
            self._add(plan, task, items)

    def _add(self, plan: Plan, task: TaskPlan, items: int) -> None:
        outputs = [
            Output(
                self.logs[ref],
                f"{ref.node}.{ref.port}",
                plan.spec.node(ref.node).many.get(ref.port, 1),
                self.skips,
            )
            for output in task.outputs
            for ref in output.channels
        ]
        inputs = [[Leases(s, self.logs[s.channel]) for s in merged.subscriptions] for merged in task.inputs]
        flat = [leases for merged in inputs for leases in merged]
        self.subscriptions += flat
        if task.mode is InputMode.SOURCE:
            self.actors.append(Source(task.name, outputs, items))
        elif task.mode is InputMode.COMPETING:
            self.actors += [Replica(task, flat, outputs) for _ in range(task.replicas)]
        else:
            lookahead = sum(plan.spec.node(node).options.lookahead for node in task.nodes)
            self.actors.append(Owner(task, inputs, outputs, lookahead))

    @property
    def is_done(self) -> bool:
        return all(leases.is_finished for leases in self.subscriptions)

    def stuck(self) -> str:
        """What everybody holds, for a failing test to show."""
        return "\n".join(
            f"{s.plan.channel.node}.{s.plan.channel.port} -> {s.plan.reader}: leased {s.charged} of "
            f"{s.plan.credit_items}, channel {s.log.load} of {s.log.bound}"
            for s in self.subscriptions
        )


@dataclass(frozen=True)
class Schedule:
    """How to play.

    Attributes:
        seed: Of all choices.
        items: So many from each source.
        crashes: Replicas die now and then, and what they held is delivered again.
        skips: Nodes now and then say nothing; without, every port makes all that it may.
        delayed: Whichever replica takes this ordinal stands still until nothing else can move, stage after
            stage: the worst that an unfair machine can do to an ordered reader.
    """

    seed: int
    items: int = 24
    crashes: bool = True
    skips: bool = True
    delayed: int | None = None


def play(plan: Plan, schedule: Schedule) -> str | None:
    """Plays one schedule; None when it came to its end, else what everybody held when nothing could move.

    Every actor gets a weight that changes now and then, so that some starve for long: a fair schedule
    would hide most deadlocks.
    """
    draw = random.Random(schedule.seed)
    model = Model(plan, schedule.items, schedule.skips)
    weights = [1.0] * len(model.actors)
    while True:
        if draw.random() < 0.01:
            weights = [10.0 ** draw.choice((-6, -3, 0)) for _ in model.actors]
        if schedule.crashes and draw.random() < 0.01:
            draw.choice(model.actors).crash()
        able = _able(model, weights, schedule.delayed)
        if not able:
            return None if model.is_done else model.stuck()
        actions = draw.choices([actions for actions, _ in able], [weight for _, weight in able])[0]
        draw.choice(actions)()


def _able(model: Model, weights: list[float], delayed: int | None) -> list[tuple[list[Action], float]]:
    prompt: list[tuple[list[Action], float]] = []
    late: list[tuple[list[Action], float]] = []
    for actor, weight in zip(model.actors, weights, strict=True):
        is_late = delayed is not None and actor.delays(delayed)
        actions = list(actor.actions())
        if actions:
            (late if is_late else prompt).append((actions, weight))
    return prompt or late
