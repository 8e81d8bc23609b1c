"""Reading video files with PyAV: exact times, exact indices, an honest end. Used by source nodes.

It refuses live addresses (they come later) and never guesses silently: what was made up, converted or left
out is said in the frame or in the outcome. Needs the extra `video`.
"""

from videoflow.media.decoding._opening import ReadOptions
from videoflow.media.decoding._probe import VideoInfo, max_frame_bytes, probe
from videoflow.media.decoding._reader import VideoReader

__all__ = ["ReadOptions", "VideoInfo", "VideoReader", "max_frame_bytes", "probe"]
