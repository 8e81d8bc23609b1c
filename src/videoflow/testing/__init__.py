"""Tests of nodes and adapters: `drive` for one node, faults for everything, examiners for adapters.

Used by authors of nodes and of adapters. What is here needs no test tool; `videoflow.testing.examiners` needs
pytest, and its `machines` Hypothesis, as `pip install 'videoflow[testing]'` brings them.
"""

import sys

from videoflow.testing._drive import drive
from videoflow.testing._lossy import LossyStore
from videoflow.testing._schedules import FaultNotFired, Pause, delay, injected

__all__ = ["FaultNotFired", "LossyStore", "Pause", "delay", "drive", "injected"]

# A failed law then shows the values that it compared; before the examiners are loaded, or it has no effect.
if "pytest" in sys.modules:
    sys.modules["pytest"].register_assert_rewrite("videoflow.testing.examiners")
