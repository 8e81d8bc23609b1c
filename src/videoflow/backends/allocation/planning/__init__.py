"""What allocators say to the solver, and hear from it, in the same words.

Used by the allocators that plan with `videoflow.placement`, each of which brings its inventory and what it
refuses. Nothing here looks at a device. It refuses nothing by itself; an operator that the solver does not
know is for the allocator to refuse by its name.
"""

from videoflow.backends.allocation.planning._terms import (
    KIND_OF,
    OPERATORS,
    WHOLE_CARD,
    defaults_of,
    geometry_of,
    plan_name,
    rule_of,
    uncertain_hosts,
)

__all__ = [
    "KIND_OF",
    "OPERATORS",
    "WHOLE_CARD",
    "defaults_of",
    "geometry_of",
    "plan_name",
    "rule_of",
    "uncertain_hosts",
]
