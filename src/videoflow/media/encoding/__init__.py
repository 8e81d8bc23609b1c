"""Writing H.264 files that play everywhere and can be continued after a crash. Used by video sinks.

It refuses frames of another size, and files of which it cannot prove what they hold. Needs the extra `video`.
"""

from videoflow.media.encoding._finishing import WriteSummary
from videoflow.media.encoding._writer import VideoWriter

__all__ = ["VideoWriter", "WriteSummary"]
