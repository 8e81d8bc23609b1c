"""Many claimants at once, call by call, with lost answers and crashes, under checks of what always holds.

A claimant is a caller that keeps its operation ids and plans over the deaths of its processes, as a run does.
The schedule is whoever calls `step`: a seed, or Hypothesis.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from videoflow.backends.allocation import (
    ClaimObservation,
    ClaimStatus,
    FeasiblePlan,
    ReleaseStatus,
    WorkloadRequest,
)
from videoflow.backends.outcomes import Known
from videoflow.testing.examiners.allocation._acts import (
    A100,
    card,
    host,
    nothing_left,
    piece,
    recover,
    share,
    sole,
    whole,
)
from videoflow.testing.examiners.allocation._steps import Actor, Stage
from videoflow.testing.examiners.allocation._subject import Ability, AllocationSubject, Fate

MISHAPS: Final = (Fate.LOST, Fate.UNHEARD, Fate.CRASH, Fate.CRASH_AFTER)
ATTEMPTS: Final = 3
BURSTS: Final = (1, 1, 2, 4, 16)
FOREIGN: Final = "theirs"


@dataclass
class Claimant:
    """What a caller keeps while its processes die.

    Attributes:
        name: Its own.
        asks: What it asks for.
        attempt: Which operation it is at.
        plan: The plan of that operation, once there is one.
        claim: What it was given, until it is released.
        lives: How many processes it has had.
        served: Operations that became ready.
        overtaken: It was taken for dead, and another process goes on in its place.
    """

    name: str
    asks: tuple[WorkloadRequest, ...]
    attempt: int = 0
    plan: FeasiblePlan | None = None
    claim: ClaimObservation | None = None
    lives: int = 0
    served: int = 0
    overtaken: bool = False

    @property
    def operation(self) -> str:
        """The id of the operation that it is at."""
        return f"{self.name}/{self.attempt}"


@dataclass
class Race:
    """One world, its claimants, and their processes.

    Attributes:
        subject: Furnished here.
        claimants: How many.
        actors: The processes that are at work.
        visitors: Card → its layout when a foreign workload came to it.
    """

    subject: AllocationSubject
    claimants: int
    actors: list[tuple[Claimant, Actor[bool]]] = field(default_factory=list)
    everybody: list[Claimant] = field(default_factory=list)
    visitors: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        managed = self.subject.can(Ability.GEOMETRY)
        hosts = [host(card(1), card(2), managed=managed)]
        if self.subject.can(Ability.SEVERAL_HOSTS, Ability.STATIC_SLICES):
            hosts.append(host(card(3, slices=(("1g.10gb", 0), ("3g.40gb", 4))), card(4, A100), name="b"))
        if self.subject.can(Ability.SEVERAL_HOSTS, Ability.FOREIGN_OWNER):
            hosts.append(host(card(9), name=FOREIGN, owner="dra.example"))
        self.subject.furnish(hosts)
        self.cards = {found.uuid: found.product for one in hosts for found in one.cards}
        self.fixed = {found.uuid for one in hosts if not one.managed for found in one.cards}
        self.originals = dict(self.subject.layouts())
        self.stage = Stage(self.subject)
        for number in range(self.claimants):
            claimant = Claimant(f"claimant-{number}", self._asks(number))
            self.everybody.append(claimant)
            self._live(claimant)

    def _asks(self, number: int) -> tuple[WorkloadRequest, ...]:
        claims = self.subject.backend().capabilities(self.subject.environment())
        sliced = self.subject.can(Ability.GEOMETRY) or self.subject.can(Ability.STATIC_SLICES)
        asks: list[tuple[WorkloadRequest, ...]] = [(whole(),)]
        if claims.isolated_mig and sliced:
            asks += [(piece("w/0", 39.0),), (piece("w/0", 9.0), piece("w/1", 9.0))]
        if claims.multi_device:
            asks.append((whole(count=2),))
        if claims.cooperative_sharing:
            asks.append((share(gib=15.0),))
        return asks[number % len(asks)]

    # What can happen ----------------------------------------------------------------------------

    def step(self, which: int, fate: Fate = Fate.GO) -> None:
        """Lets one process make its next call; one that dies is followed by the next one of its claimant."""
        claimant, actor = self.actors.pop(which % len(self.actors))
        actor.step(fate)
        self.check()
        if actor.call is not None:
            self.actors.append((claimant, actor))
        elif actor.crashed:
            self.subject.kill(actor.name)
            if not claimant.overtaken:
                self._live(claimant)
        else:
            actor.finish()

    def overtake(self, which: int) -> None:
        """A process is taken for dead: another one goes on in its place, and it goes on all the same."""
        claimant, _ = self.actors[which % len(self.actors)]
        if not claimant.overtaken:
            successor = replace(claimant)
            claimant.overtaken = True
            self.everybody.append(successor)
            self._live(successor)
            claimant.lives = successor.lives

    def visit(self, which: int) -> None:
        """A foreign workload comes to a card, or ends."""
        uuid = sorted(self.cards)[which % len(self.cards)]
        if uuid in self.visitors:
            del self.visitors[uuid]
            self.subject.leave(uuid)
        elif self.subject.arrive(uuid):
            self.visitors[uuid] = self.subject.layouts()[uuid]
        self.check()

    def end(self) -> None:
        """Everybody goes to the end, and a fresh process gives back whatever is left."""
        while self.actors:
            self.step(0)
        for uuid in list(self.visitors):
            del self.visitors[uuid]
            self.subject.leave(uuid)
        recover(self.subject)
        nothing_left(self.subject, self.originals)

    # What always holds --------------------------------------------------------------------------

    def check(self) -> None:
        """No device has two owners, nothing foreign is touched, and every owner is on record."""
        sole(self.subject)
        layouts = self.subject.layouts()
        for uuid, product in self.cards.items():
            if uuid in self.fixed:
                assert layouts[uuid] == self.originals[uuid], f"{uuid} is not ours to cut"
            if uuid in self.visitors:
                assert layouts[uuid] == self.visitors[uuid], f"{uuid} was cut under a foreign workload"
            assert self.subject.legal(product, layouts[uuid]), layouts[uuid]
        owners = {owner for _, owner in self.subject.owned()}
        assert len(owners) <= len(self.subject.records()), "an owner is not on record"
        if FOREIGN in self.originals:
            assert self.subject.host_owner(FOREIGN)

    def _check_users(self, claim: ClaimObservation) -> None:
        """A foreign workload that is on a device came before it was owned, so that it cannot be ready.

        Only for who was not overtaken: a successor may give a claim back while its forerunner still reads
        about it, and then "ready" tells of a moment that is over. What that one cannot do is own the device.
        """
        assert claim.grant is not None
        if self.subject.can(Ability.KEEPS_OUT) and claim.grant.exclusive:
            used = {device.uuid for device in claim.grant.devices if device.mig_uuid is None}
            assert not used & set(self.visitors), "ready, although somebody uses it"

    # What a claimant does -----------------------------------------------------------------------

    def _live(self, claimant: Claimant) -> None:
        claimant.lives += 1
        process = f"{claimant.name}.{claimant.lives}"
        actor = self.stage.enter(process, self._life(claimant, process))
        if actor.call is not None:
            self.actors.append((claimant, actor))

    def _life(self, claimant: Claimant, process: str) -> Callable[[], bool]:
        def live() -> bool:
            while claimant.attempt < ATTEMPTS:
                if claimant.claim is None:
                    self._claim(claimant, process)
                    if claimant.overtaken:
                        return False
                if claimant.claim is None or self._give_back(claimant, claimant.claim, process):
                    claimant.attempt += 1
                    claimant.plan = claimant.claim = None
            return True

        return live

    def _claim(self, claimant: Claimant, process: str) -> None:
        backend = self.subject.backend(process)
        if claimant.plan is None:
            found = backend.inventory("")
            outcome = backend.plan(claimant.asks, found.value) if isinstance(found, Known) else None
            if claimant.overtaken or not isinstance(outcome, FeasiblePlan):
                return
            claimant.plan = outcome
        claim = backend.reserve(claimant.plan, claimant.operation, claimant.plan.snapshot_generation)
        if claim.status is ClaimStatus.READY:
            claimant.served += 1
            if not claimant.overtaken:
                self._check_users(claim)
            again = backend.observe(claim.claim_id)
            if isinstance(again, Known) and not claimant.overtaken:
                assert again.value.status is ClaimStatus.READY, again
        claimant.claim = claim

    def _give_back(self, claimant: Claimant, claim: ClaimObservation, process: str) -> bool:
        backend = self.subject.backend(process)
        for _ in range(ATTEMPTS):
            done = backend.release(claim.claim_id, f"{claimant.operation}/release", claim.desired_generation)
            if done.status is ReleaseStatus.RELEASED:
                return True
        # A foreign workload on its devices keeps them owned; then they are left to whoever comes after it.
        return bool(self.visitors)


def history(subject: AllocationSubject, seed: int, claimants: int, mishaps: float = 0.04) -> int:
    """Runs one random history to its end; returns how many operations became ready.

    Args:
        subject: Whatever it was furnished with is replaced.
        seed: The same seed gives the same history.
        claimants: How many at once.
        mishaps: How likely a call is lost, unheard or the last one of its process; and everything else that
            may happen.
    """
    chance = random.Random(seed)
    race = Race(subject, claimants)
    while race.actors:
        if chance.random() < mishaps:
            race.visit(chance.randrange(99))
        if race.actors and chance.random() < mishaps:
            race.overtake(chance.randrange(99))
        for _ in range(chance.choice(BURSTS)):
            if not race.actors:
                break
            fate = chance.choice(MISHAPS) if chance.random() < mishaps else Fate.GO
            race.step(-1, fate)
        chance.shuffle(race.actors)
    race.end()
    return sum(claimant.served for claimant in race.everybody if not claimant.overtaken)
