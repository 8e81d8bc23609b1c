"""Where accelerators come from: one exact solver for whole cards, MIG slices and shared memory.

Used by allocation backends and by `videoflow explain`; pure, and below every contract. It refuses to guess: a
card that the catalogue does not know is not cut, memory that could not be read gives nothing, and an answer
says how much it proves.
"""

from videoflow.placement._answer import (
    Answer,
    Assignment,
    Certificate,
    Device,
    Label,
    Measure,
    Proof,
    Refusal,
    Relaxation,
)
from videoflow.placement._bounds import Aim
from videoflow.placement._catalogue import CardModel, Catalogue, Profile, load_catalogue
from videoflow.placement._explain import Explanation, Row, Verdict, explain
from videoflow.placement._geometry import (
    footprint,
    is_legal,
    layout,
    legal_starts,
    most_slices,
    narrowest,
    stranded_slots,
)
from videoflow.placement._labels import classify_labels
from videoflow.placement._problem import (
    UNKNOWN_DISTANCE,
    Card,
    Demand,
    Host,
    Kind,
    Link,
    Operator,
    Problem,
    Rule,
    Slice,
)
from videoflow.placement._rules import fulfils, uncheckable
from videoflow.placement._solve import DEFAULT_BUDGET, solve
from videoflow.placement._visible import Maskable, Visible, resolve_mask

__all__ = [
    "DEFAULT_BUDGET",
    "UNKNOWN_DISTANCE",
    "Aim",
    "Answer",
    "Assignment",
    "Card",
    "CardModel",
    "Catalogue",
    "Certificate",
    "Demand",
    "Device",
    "Explanation",
    "Host",
    "Kind",
    "Label",
    "Link",
    "Maskable",
    "Measure",
    "Operator",
    "Problem",
    "Profile",
    "Proof",
    "Refusal",
    "Relaxation",
    "Row",
    "Rule",
    "Slice",
    "Verdict",
    "Visible",
    "classify_labels",
    "explain",
    "footprint",
    "fulfils",
    "is_legal",
    "layout",
    "legal_starts",
    "load_catalogue",
    "most_slices",
    "narrowest",
    "resolve_mask",
    "solve",
    "stranded_slots",
    "uncheckable",
]
