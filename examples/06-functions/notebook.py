# A notebook as a script: each part below `# %%` is a cell. Jupyter, VS Code and Spyder open it as such.

# %% Functions become nodes. Nothing runs yet.
import videoflow as vf
from videoflow.nodes import Collect, SyntheticScene


@vf.processor
def tallest(people: vf.Detections) -> float:
    return float((people.xyxy[:, 3] - people.xyxy[:, 1]).max())


scene = SyntheticScene(frames=30, people=3, name="camera")
height = tallest(scene.truth)

# %% Look at what passes by, frame by frame. Leaving the loop stops the run.
flow = vf.Flow([Collect(name="heights")(height)], name="notebook")
for frame, pixels in flow.watch(scene, height):
    print(frame, f"the tallest has {pixels:.0f} pixels")
    if frame.index == 4:
        break

# %% Run it whole. The report renders as a table; the values come back.
report = flow.run()
heights = report.values["heights"]
print(report.verdict, len(heights), "heights, from", min(heights), "to", max(heights))
