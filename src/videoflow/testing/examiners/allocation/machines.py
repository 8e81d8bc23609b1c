"""Schedules of claimants that Hypothesis draws and shrinks.

Used by authors of allocation adapters: a test makes a subclass with `make_subject`, and runs its `TestCase`.
Needs Hypothesis, which the rest of the examiner does not.
"""

from collections.abc import Callable
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from videoflow.testing.examiners.allocation._races import MISHAPS, Race
from videoflow.testing.examiners.allocation._subject import AllocationSubject, Fate

picks = st.integers(0, 63)


class AllocationMachine(RuleBasedStateMachine):
    """Whatever is lost and whoever dies, in whatever order: one owner, nothing foreign touched, all restored.

    Attributes:
        claimants: How many.
    """

    make_subject: Callable[[], AllocationSubject]
    claimants: ClassVar[int] = 2

    def __init__(self) -> None:
        super().__init__()
        self.subject = self.make_subject()
        self.race = Race(self.subject, self.claimants)

    @precondition(lambda self: self.race.actors)
    @rule(which=picks, calls=st.integers(1, 9))
    def somebody_goes_on(self, which: int, calls: int) -> None:
        """A process makes some calls."""
        for _ in range(calls):
            if self.race.actors:
                self.race.step(which)

    @precondition(lambda self: self.race.actors)
    @rule(which=picks, fate=st.sampled_from(MISHAPS))
    def something_goes_wrong(self, which: int, fate: Fate) -> None:
        """A call is lost, unheard, or the last one of its process."""
        self.race.step(which, fate)

    @precondition(lambda self: self.race.actors)
    @rule(which=picks)
    def somebody_is_taken_for_dead(self, which: int) -> None:
        """Another process goes on in the place of one that only stands still."""
        self.race.overtake(which)

    @rule(which=picks)
    def a_foreigner_comes_or_goes(self, which: int) -> None:
        """A foreign workload comes to a card, or ends."""
        self.race.visit(which)

    def teardown(self) -> None:
        """Everybody ends; everything is as it was."""
        self.race.end()
        self.subject.close()
