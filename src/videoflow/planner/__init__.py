"""The planner: a spec and the capabilities of backends become a plan, or a refusal by name; pure.

Used by the engines, which run the plan, and by the command line, which shows it. It refuses to touch
anything: all that it knows comes in as `PlanFacts`. `plan` holds the document, `explain` its words.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from videoflow.planner._accelerators import accelerator_requests
    from videoflow.planner._admitted import AdmittedChannel, CompositionPlan, Distance, Ground
    from videoflow.planner._composition import plan_composition
    from videoflow.planner._costs import FlowCosts, NodeCost
    from videoflow.planner._facts import PlanFacts, SizingDefaults
    from videoflow.planner._findings import Guarantee
    from videoflow.planner._plan import plan_flow
    from videoflow.planner._requirements import (
        ChannelRequirement,
        CompositionRequirements,
        Effects,
        JoinRequirement,
        SinkDeclaration,
        TaskRequirement,
    )

__all__ = [
    "AdmittedChannel",
    "ChannelRequirement",
    "CompositionPlan",
    "CompositionRequirements",
    "Distance",
    "Effects",
    "FlowCosts",
    "Ground",
    "Guarantee",
    "JoinRequirement",
    "NodeCost",
    "PlanFacts",
    "SinkDeclaration",
    "SizingDefaults",
    "TaskRequirement",
    "accelerator_requests",
    "plan_composition",
    "plan_flow",
]

# A worker process reads plans and makes none: it does not pay for loading what plans.
_MODULES = (
    "_accelerators",
    "_admitted",
    "_composition",
    "_costs",
    "_facts",
    "_findings",
    "_plan",
    "_requirements",
)


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in _MODULES:
            found: object = getattr(import_module(f"videoflow.planner.{module}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'videoflow.planner' has no attribute {name!r}", name=name)
