"""The planner: a spec and the capabilities of backends become a plan, or a refusal by name; pure.

Used by the engines, which run the plan, and by the command line, which shows it. It refuses to touch
anything: all that it knows comes in as `PlanFacts`. `plan` holds the document, `explain` its words.
"""

from videoflow.planner._composition import (
    AdmittedChannel,
    ChannelRequirement,
    CompositionPlan,
    CompositionRequirements,
    Effects,
    plan_composition,
)
from videoflow.planner._facts import PlanFacts, SizingDefaults
from videoflow.planner._plan import plan_flow

__all__ = [
    "AdmittedChannel",
    "ChannelRequirement",
    "CompositionPlan",
    "CompositionRequirements",
    "Effects",
    "PlanFacts",
    "SizingDefaults",
    "plan_composition",
    "plan_flow",
]
