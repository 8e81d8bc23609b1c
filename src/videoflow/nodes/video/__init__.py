"""Nodes that read and write video files. They need the extra `video`, loaded when it is needed."""

from videoflow.nodes.video._sink import VideoSink
from videoflow.nodes.video._source import VideoSource

__all__ = ["VideoSink", "VideoSource"]
