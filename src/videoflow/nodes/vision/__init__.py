"""Detectors, trackers, counters and annotators, over plain NumPy."""
