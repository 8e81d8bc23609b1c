"""A drawn scene of walking people, with the truth about it. Pure NumPy; it loads no heavy library."""

from videoflow.nodes.scene._scene import SyntheticScene

__all__ = ["SyntheticScene"]
