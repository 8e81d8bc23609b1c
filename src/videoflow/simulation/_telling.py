"""The events of a run in words, for its story.

Used by the simulator where a run is told.
"""

from dataclasses import dataclass

from videoflow.backends.messaging import Kind
from videoflow.simulation._station import Ending
from videoflow.worker.core import actions


@dataclass(frozen=True)
class Event:
    """Something that happened.

    Attributes:
        step: In which step of the run.
        station: To whom.
        what: In words.
    """

    step: int
    station: str
    what: str


def describe(action: actions.Action, ending: Ending) -> str:
    """Returns an action in words."""
    said = type(action).__name__
    if isinstance(action, actions.Call):
        element = action.element
        said = f"calls {action.node} with item {element.origin.ordinal} of {element.origin.node}"
        said += "".join(f", element {hop.k + 1} of {hop.n}" for hop in element.path)
        said += f", attempt {action.attempt}" if action.attempt > 1 else ""
    elif isinstance(action, actions.Burst):
        items = [delivery.envelope.origin for delivery in action.deliveries]
        said = "works on " + ", ".join(f"item {origin.ordinal} of {origin.node}" for origin in items)
    elif isinstance(action, actions.CallBatch):
        origins = ", ".join(f"item {e.origin.ordinal} of {e.origin.node}" for e in action.elements)
        said = f"calls {action.node} with {origins}"
    elif isinstance(action, actions.Publish):
        said = "publishes " + ", ".join(_publication(p) for p in action.publications)
    elif isinstance(action, actions.Settle):
        said = "settles " + ", ".join(
            f"{token.subscription.channel} {token.position[1]}: {getattr(how, 'reason', type(how).__name__)}"
            for token, how in action.settlements
        )
    elif isinstance(action, actions.Commit):
        said = f"commits number {action.number} with {len(action.publications)} outputs"
        said += ", flushed" if action.flushed else ""
    return said if ending in (Ending.GOES_ON, Ending.ENDED) else f"{said} ({ending.name.lower()})"


def _publication(publication: actions.Publication) -> str:
    envelope = publication.envelope
    name = f"{envelope.channel} {envelope.origin.ordinal}"
    name += "".join(f".{hop.k}" for hop in envelope.path)
    return name if envelope.kind is Kind.DATA else f"{name} ({envelope.kind}: {envelope.cause})"
