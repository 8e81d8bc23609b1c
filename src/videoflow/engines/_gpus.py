"""What can be seen of this host's accelerators, for people.

Used by `videoflow gpus` and `videoflow doctor`. It refuses to write anything.
"""

from typing import TYPE_CHECKING

from videoflow import registry
from videoflow.clock import Clock
from videoflow.engines._home import home_folder, inherited

if TYPE_CHECKING:
    from videoflow.backends.outcomes import Observation
    from videoflow.deploy.allocation_local import Survey


def survey_gpus(clock: Clock) -> "Observation[Survey]":
    """Returns all GPUs of this host, who uses them, and what is not known; Unknown where none was listed.

    Raises:
        EnvironmentFault: The ledger of this user cannot be opened.
    """
    with registry.load(registry.ALLOCATORS, "local")(
        home_folder(), inherited(), clock, make=False
    ) as allocator:
        found: Observation[Survey] = allocator.survey()
        return found
