"""Detectors, trackers, counters and annotators, over plain NumPy.

Importing this package loads neither ONNX Runtime nor OpenCV nor SciPy; a node loads what it needs when it
opens. A missing library is refused there, with what to install.
"""

from videoflow.nodes.vision._annotator import Annotator
from videoflow.nodes.vision._detector import Detector
from videoflow.nodes.vision._line_counter import LineCounter
from videoflow.nodes.vision._tracker import Tracker

__all__ = ["Annotator", "Detector", "LineCounter", "Tracker"]
