"""Makes the picture of the README: one frame of the video that the demo's flow writes, as an SVG.

    python tools/readme_picture.py docs/people.svg

The scene is the synthetic one, so that the picture shows nobody's footage. The frame is a JPEG inside the
SVG, because a repository of sources holds text.
"""

import base64
import sys
import tempfile
from pathlib import Path

import av
import cv2

from videoflow.graph import call_factory, find_factory, load_flow_file

FRAME = 120
FACTORY = "examples/02-people-counting/flow.py"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">\n'
    "  <title>One frame of the annotated video: boxes, tracks and counts of people</title>\n"
    '  <image width="{width}" height="{height}" href="data:image/jpeg;base64,{data}"/>\n'
    "</svg>\n"
)


def main(target: Path) -> None:
    """Runs the flow on the synthetic scene and writes the picture."""
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "people.mp4"
        given = {
            "source": ["synthetic"],
            "out": [str(video)],
            "frames": [str(FRAME + 30)],
            "line": ["0,220,640,220"],
        }
        call_factory(find_factory(load_flow_file(Path(FACTORY)), None), given).run()
        with av.open(str(video)) as container:
            image = next(f for i, f in enumerate(container.decode(video=0)) if i == FRAME).to_ndarray(
                format="bgr24"
            )
    height, width = image.shape[:2]
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 82])
    if not done:
        raise SystemExit("the frame could not be encoded")
    text = SVG.format(width=width, height=height, data=base64.b64encode(data.tobytes()).decode())
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
