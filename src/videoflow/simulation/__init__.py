"""Deterministic simulation: whole flows in one thread, on virtual time, while everything breaks.

Used by the nightly search, by `videoflow simulate`, by tests. The product runs as it is: the shell and the
core of the worker, the planner's plan, the memory backends, the account of the engines. Every choice is
seeded, so that what failed fails again. It refuses to judge what lies outside the claim of equal results, and
says so by level.
"""

from videoflow.simulation._explore import Found, Search, explore, graph_of, results
from videoflow.simulation._generated import generate
from videoflow.simulation._kinds import kind_of
from videoflow.simulation._levels import Level
from videoflow.simulation._schedule import PlannedFault, Schedule
from videoflow.simulation._shrinking import promise_of, shrink, story
from videoflow.simulation._simulate import Result, Simulation
from videoflow.simulation._standins import StandIn, recorded
from videoflow.simulation._subject import Subject, subject_of
from videoflow.simulation._table import Table
from videoflow.simulation._wishes import FEATURES

__all__ = [
    "FEATURES",
    "Found",
    "Level",
    "PlannedFault",
    "Result",
    "Schedule",
    "Search",
    "Simulation",
    "StandIn",
    "Subject",
    "Table",
    "explore",
    "generate",
    "graph_of",
    "kind_of",
    "promise_of",
    "recorded",
    "results",
    "shrink",
    "story",
    "subject_of",
]
