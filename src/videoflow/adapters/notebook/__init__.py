"""Classes made in a notebook, sent by value to a process that the notebook's own started."""

from videoflow.adapters.notebook._by_value import dump_classes, load_classes

__all__ = ["dump_classes", "load_classes"]
