"""How a shell reads: what has come, how far its inputs are, and the values in envelopes.

Used by the shell. It refuses to begin where the position of an owned subscription cannot be read; what is
merely not known yet reads as no progress.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from videoflow import faults
from videoflow.backends.messaging import Acquired, Delivery, Envelope, SubscriptionId, SubscriptionKind
from videoflow.backends.outcomes import Known
from videoflow.backends.runtime import Desired
from videoflow.errors import UnobservableState
from videoflow.wire import Value
from videoflow.worker._control import RunControl
from videoflow.worker._figures import TaskFigures
from videoflow.worker._job import Backends, Job, Quit
from videoflow.worker._names import subscription_id
from videoflow.worker._payloads import Payloads
from videoflow.worker._suspending import Suspending, in_channel
from videoflow.worker.core import actions as a

_WAIT_SECONDS = 0.5
_LAST_SECONDS = 2.0
_LULL_SECONDS = 0.005  # in which what may be given out is given, where it is given from another process


class Reading:
    """The inputs of one replica.

    Args:
        job: Which replica.
        backends: Where its inputs are.
        payloads: Decodes values.
        figures: Where it counts.
        control: What is desired of the run.

    Attributes:
        suspending: What an earlier run kept, and what this one keeps.
    """

    def __init__(
        self, job: Job, backends: Backends, payloads: Payloads, figures: TaskFigures, control: RunControl
    ) -> None:
        self._backends = backends
        self._messaging = backends.messaging
        self._payloads = payloads
        self._figures = figures
        self._control = control
        self._subscriptions = tuple(
            subscription_id(plan, job.flow_id, job.program.run_id, job.slot)
            for _, plan in job.program.subscriptions
        )
        self._markers = tuple(
            subscription_id(plan, job.flow_id, job.program.run_id, job.slot)
            for _, plan in job.program.controls
        )
        self._planned = job.program.subscriptions
        self._lull_since: float | None = None
        self._floors: dict[SubscriptionId, Mapping[int, int]] = {}
        self.suspending = Suspending(job, backends, payloads, self._subscriptions, self._markers)
        self._reported: list[a.Progress] | None = None
        self._control_seen = -1
        self._news = control.watch(lambda: self._control_seen)

    def acquire(self, epoch: int) -> tuple[Acquired | None, ...]:
        """Takes over what is exclusive; None for each competing subscription.

        Raises:
            UnobservableState: A position could not be read.
        """
        self.suspending.look()
        return self.suspending.acquired([self._acquire(each, epoch) for each in self._subscriptions])

    def _acquire(self, subscription: SubscriptionId, epoch: int) -> Acquired | None:
        if subscription.kind is SubscriptionKind.COMPETING:
            return None
        observed = self._messaging.acquire(subscription, epoch, deadline=self._backends.deadline())
        if not isinstance(observed, Known):
            raise UnobservableState(
                f"the position of {subscription} could not be read", cause=observed.detail
            )
        return observed.value

    def pull(self, action: a.Pull) -> a.Pulled:
        """Receives what there is; waits as the action says.

        Raises:
            Quit: While it waited.
        """
        rests = action.wait and action.until is None and self._is_far_from_its_end()
        while True:
            again, marked_again = self.suspending.given()
            wanted = zip(self._subscriptions, map(in_channel, action.after), strict=True)
            deliveries = again or self._messaging.receive_each([*wanted], max_items=action.max_items)
            self.suspending.took(deliveries)
            markers = marked_again or self._received(self._markers_now)
            failed = self._control.failed_task
            if any(deliveries):
                self._figures.move(1)
                faults.reach("receive.after")
                known = self._reported or self._nothing_known()
                self._lull_since = None
                return a.Pulled(deliveries, known, failed, markers, self._backends.clock.monotonic())
            if rests and not any(markers):  # what there is to be known next wakes up who waits
                rests = False
                self._wait_for_input()
                continue
            progress = [self._progress(subscription) for subscription in self._subscriptions]
            pulled = a.Pulled(deliveries, progress, failed, markers, self._backends.clock.monotonic())
            if any(markers) or not action.wait:
                self._reported = None
                return pulled
            if progress != self._reported or self._control.version != self._control_seen:
                self._reported, self._control_seen = progress, self._control.version
                return pulled
            until = action.until
            if action.until is not None:
                until = min(action.until, self._held_up_at(pulled.at))
                if pulled.at >= until:
                    pulled.held_up = pulled.at < action.until
                    return pulled
            self._wait_for_input(until)

    def _is_far_from_its_end(self) -> bool:
        """Whether no writer had ended when that was looked at last, and nothing else is desired since."""
        reported = self._reported
        if reported is None or self._control.version != self._control_seen:
            return False
        return not any(p.drained or p.finished or p.aborted or p.sealed for p in reported)

    def pull_markers(self, action: a.PullMarkers) -> list[Sequence[Delivery]]:
        """Receives the markers that have come; waits as the action says.

        Raises:
            Quit: While it waited.
        """
        if action.rest:
            return self._received(self._rest_of_markers)
        return self._received(self._last_markers if action.last else self._markers_now)

    def _received(self, receive: Callable[[SubscriptionId], Sequence[Delivery]]) -> list[Sequence[Delivery]]:
        found = [receive(subscription) for subscription in self._markers]
        if any(found):
            self._figures.move(1)
            self.suspending.took(found, markers=True)
            faults.reach("receive.after")
        return found

    def _markers_now(self, subscription: SubscriptionId) -> Sequence[Delivery]:
        return self._messaging.receive(subscription, deadline=0.0)

    def _last_markers(self, subscription: SubscriptionId) -> Sequence[Delivery]:
        found, deadline = self._markers_now(subscription), self._backends.deadline(_LAST_SECONDS)
        while not found and self._backends.clock.monotonic() < deadline and not self._control.quit:
            observed = self._messaging.observe_subscription(subscription, deadline=deadline)
            if not isinstance(observed, Known) or not observed.value.available or observed.value.leased:
                break
            found = self._messaging.receive(subscription, deadline=deadline)
        return found

    def _rest_of_markers(self, subscription: SubscriptionId) -> Sequence[Delivery]:
        """Returns what has come, or waits for it; nothing only where its writers have ended."""
        while True:
            drained = self._progress(subscription).drained
            found = self._markers_now(subscription)
            if found or drained:
                self._control_seen = -1  # whoever pulls next is told again
                return found
            self._control_seen = self._control.version  # what is known ends no wait
            if self._control.quit:
                raise Quit
            waitable = self._messaging.waitable(subscription)
            self._figures.waiting = True
            self._backends.clock.wait([waitable, self._news], self._backends.deadline(_WAIT_SECONDS))
            self._figures.waiting = False

    def load(self, action: a.Load) -> tuple[Any, ...] | a.Failure:
        """Decodes the members of a group; waits for bytes that cannot be read now.

        Raises:
            Quit: While it waited.
        """
        values: list[Any] = []
        for delivery in action.members:
            value = None if delivery is None else self._loaded(delivery.envelope)
            if isinstance(value, a.Failure):
                return value
            values.append(value)
        faults.reach("process.before")
        return tuple(values)

    def load_one(self, delivery: Delivery) -> Value | a.Failure:
        """Decodes one input of several that are worked on together.

        Raises:
            Quit: The worker was told to end, perhaps while it waited.
        """
        if self._control.quit:
            raise Quit
        value = self._payloads.load(delivery.envelope)
        if isinstance(value, a.Failure):
            value = self._loaded(delivery.envelope)
        faults.reach("process.before")
        return value

    def _loaded(self, envelope: Envelope) -> Value | a.Failure:
        """Returns a value, or why it cannot be had, which no hiccup of the store is a reason for."""
        while True:
            value = self._payloads.load(envelope)
            if not isinstance(value, a.Failure) or value.disposition is not a.Disposition.TRANSIENT:
                return value
            if self._control.quit:
                raise Quit

    def _held_up_at(self, now: float) -> float:
        """Returns when it is taken for granted that no more can be given out; infinite where more can."""
        if not self._is_held_up():
            self._lull_since = None
            return math.inf
        if self._lull_since is None:
            self._lull_since = now
        return self._lull_since + _LULL_SECONDS

    def _is_held_up(self) -> bool:
        """Whether the window of a subscription is used up, by what this replica has not settled perhaps.

        That is so where as much lies behind the oldest unsettled statement as may be given out before it is;
        writers that look at the window at once keep it smaller by one for each other writer.
        """
        for subscription, (_, plan) in zip(self._subscriptions, self._planned, strict=True):
            if plan.spread is None:
                continue
            channel = self._messaging.observe_channel(
                subscription.channel, deadline=self._backends.deadline()
            )
            if isinstance(channel, Known):
                floors, lasts = self._floors[subscription], channel.value.last
                behind = sum(last - floors.get(slot, -1) for slot, last in lasts.items())
                if behind > plan.spread - len(lasts):
                    return True
        return False

    def _wait_for_input(self, until: float | None = None) -> None:
        for subscription in self._markers:  # how far they are is no news: nothing waits for their end
            self._progress(subscription)
        waitables = self._messaging.waitables((*self._subscriptions, *self._markers))
        deadline = self._backends.deadline(_WAIT_SECONDS)
        self._figures.waiting = True
        self._backends.clock.wait(
            [*waitables, self._news], deadline if until is None else min(deadline, until)
        )
        self._figures.waiting = False
        if self._control.quit:
            raise Quit

    def _nothing_known(self) -> list[a.Progress]:
        return [a.Progress() for _ in self._subscriptions]

    def _progress(self, subscription: SubscriptionId) -> a.Progress:
        deadline = self._backends.deadline()
        observed = self._messaging.observe_subscription(subscription, deadline=deadline)
        if not isinstance(observed, Known):
            self._floors[subscription] = {}
            return a.Progress()
        status = observed.value
        self._floors[subscription] = status.settled_floors
        sealed = status.drained
        if not sealed and (status.aborted or self._control.desired is Desired.ABORT):
            channel = self._messaging.observe_channel(subscription.channel, deadline=deadline)
            sealed = isinstance(channel, Known) and channel.value.sealed
        return a.Progress(status.drained, status.finished, status.aborted, sealed)
