"""Nodes that remember, that have a last word, and that write each row once, whatever is killed meanwhile."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Unpack

import videoflow as vf
from videoflow.nodes import JsonlSink, SyntheticScene


class Speeds(vf.Processor):
    """Says how fast everybody walks, and at the end how far they came.

    All that it knows is in `ctx.state`: it is committed together with its outputs, so a process that dies
    takes nothing with it, and counts nothing twice.
    """

    ports = ("out", "totals")
    many: Mapping[str, int] = {"out": 16}

    def process(self, people: vf.Detections, ctx: vf.Context) -> Iterator[dict[str, float]]:
        for row in people.rows():
            number, (x1, _, x2, _) = row["track_id"], row["xyxy"]
            last = ctx.state.get(f"track/{number}", {"x": (x1 + x2) / 2, "way": 0.0})
            moved = abs((x1 + x2) / 2 - last["x"])
            ctx.state[f"track/{number}"] = {"x": (x1 + x2) / 2, "way": last["way"] + moved}
            yield {"track": number, "pixels": moved}

    def flush(self, ctx: vf.Context) -> vf.Out:
        ways = {key.removeprefix("track/"): ctx.state[key]["way"] for key in sorted(ctx.state)}
        return vf.Out({"ways": ways}, "totals")


class Table(vf.Consumer):
    """Writes rows as comma-separated text, each exactly once.

    It writes as rows come, and says from time to time that they are durable. After a restart it cuts the
    file back to what it said last, and is given everything since then again.
    """

    holds_items = 50  # the most rows that it keeps unsettled

    def __init__(self, path: str, **options: Unpack[vf.NodeOptions]) -> None:
        super().__init__(**options)
        self.path = Path(path)

    def open(self, ctx: vf.Context) -> None:
        self.durable: dict[str, int] = ctx.state.get("durable", {"bytes": 0, "rows": 0})
        self.rows = self.durable["rows"]
        self.file = self.path.open("ab")
        self.file.truncate(self.durable["bytes"])

    def consume(self, row: dict[str, float]) -> None:
        self.file.write(f"{row['track']},{row['pixels']}\n".encode())
        self.rows += 1

    def checkpoint(self, ctx: vf.Context) -> int | None:
        fresh: int = self.rows - self.durable["rows"]
        if fresh < self.holds_items and not ctx.draining:
            return None
        self.file.flush()
        self.durable = {"bytes": self.file.tell(), "rows": self.rows}
        ctx.state["durable"] = self.durable
        return fresh

    def close(self) -> None:
        self.file.close()

    def outputs(self) -> tuple[str, ...]:
        return (str(self.path),)


def build_flow(frames: int = 60, table: str = "speeds.csv", totals: str = "totals.jsonl") -> vf.Flow:
    """Measure how people walk.

    Args:
        frames: Length of the drawn scene.
        table: One row for each person and frame.
        totals: One line at the end.
    """
    scene = SyntheticScene(frames, name="camera")
    speeds = Speeds(name="speeds")(scene.truth)
    rows = Table(table, name="table")(speeds)
    last_words = JsonlSink(totals, name="totals")(speeds.totals)
    return vf.Flow([rows, last_words], name="state")
