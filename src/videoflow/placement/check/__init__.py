"""Looks over answers and certificates without the solver.

For tests, and for whoever would rather not trust a search: it shares the types and the catalogue with the
solver and nothing else. It packs one host at a time, by trying everything, and does not look over what
would take too many steps: it says so, and that is no pass.
"""

from videoflow.placement.check._answers import answer_faults
from videoflow.placement.check._certificates import bound_faults, certificate_faults

__all__ = ["answer_faults", "bound_faults", "certificate_faults"]
