"""The account of a run: as tables, as blocks, as JSON, as HTML."""

import json
import os
import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from videoflow.cli._outcome import ending_blocks, more_dead_letters
from videoflow.cli._summary import summary_lines
from videoflow.graph.report import (
    BatchReport,
    DeadLetterReport,
    EdgeReport,
    FailureReport,
    GapReport,
    NodeReport,
    RunReport,
    SourceReport,
    Verdict,
)
from videoflow.graph.spec import CodeKind, FlowSpec, NodeKind, NodeSpec
from videoflow.media import Frame

STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SPEC = FlowSpec(
    flow_id="people",
    folder="/",
    nodes=(NodeSpec(name="detect", kind=NodeKind.PROCESSOR, code=CodeKind.MODULE, module="m", qualname="N"),),
    edges=(),
)


def letter(ordinal: int) -> DeadLetterReport:
    return DeadLetterReport(
        label=f"{ordinal}-7f3a",
        node="detect",
        error="ValueError: expected an image of (H, W, 3), got (300, 300)",
        attempts=4,
        origin=f"camera/0/{ordinal}",
        event_time=ordinal / 25,
        source="street.mp4",
        where="flow.py:31 in process",
    )


def report(verdict: Verdict = Verdict.INCOMPLETE, **more: object) -> RunReport:
    made = RunReport(
        run_id="01K1BBBBBBBBBBBBBBBBBBBBBB",
        flow_id="people",
        engine="local",
        verdict=verdict,
        exit_status=1,
        sources=[SourceReport(node="camera", outcome="complete", items=795, detail="street.mp4")],
        edges=[
            EdgeReport(parent="camera", child="detect", announced=795, delivered=794, dead_lettered=1),
            EdgeReport(
                parent="detect", child="video", announced=795, delivered=794, skipped={"dead_letter": 1}
            ),
        ],
        nodes=[NodeReport(node="detect", task="detect", items=794, p50_seconds=0.0371, busy_share=0.5)],
        seconds=41.2,
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def text_of(made: RunReport, width: int | None = None, folder: Path = Path("/")) -> str:
    return "\n".join(line.plain for line in summary_lines(made, folder, width))


def test_a_dead_letter_is_the_block_of_the_authoring_page() -> None:
    assert ending_blocks(report(dead_letters=[letter(318)]), SPEC) == [
        "error VF-NODE-FAILED  node detect, frame 318 of street.mp4 (12.720 s), attempt 4 of 4\n"
        "  cause    ValueError: expected an image of (H, W, 3), got (300, 300)        flow.py:31 in process\n"
        "  effect   put aside as dead letter 318-7f3a; 794 of 795 frames completed; verdict incomplete\n"
        "  remedy   videoflow dead-letters show 318-7f3a; mend the node and run again"
    ]


def test_many_dead_letters_are_counted_and_not_all_shown() -> None:
    unlike = [replace(letter(n), error=f"ValueError: {n}") for n in range(10)]
    made = report(dead_letters=unlike)
    assert len(ending_blocks(made, SPEC)) == 3
    assert more_dead_letters(made) == f"and 7 more dead letters: videoflow dead-letters list {made.run_id}"
    assert more_dead_letters(report(dead_letters=[letter(1)])) == ""


def test_dead_letters_that_failed_alike_are_one_block() -> None:
    other = replace(letter(30), error="KeyError: 'x'")
    made = report(dead_letters=[*(letter(n) for n in range(20)), other])
    blocks = ending_blocks(made, SPEC)
    assert len(blocks) == 2
    assert "put aside as dead letter 0-7f3a, and 19 others that failed alike; 774 of 795" in blocks[0]
    assert "KeyError" in blocks[1]
    assert "alike" not in blocks[1]
    assert more_dead_letters(made) == ""


def test_every_bad_ending_has_a_block() -> None:
    failure = FailureReport(code="VF-NODE-FAILED", message="node detect", node="detect", cause="KeyError: 1")
    source = SourceReport(node="camera", outcome="truncated", items=58, detail="it ends at 2.3 s")
    open_edge = EdgeReport(parent="a", child="b", announced=3, delivered=2, closed=False)
    gap = GapReport(where="a -> b", what="item 2 of a was announced and not settled")
    heads = {
        "failure": ending_blocks(report(Verdict.FAILED, failure=failure), SPEC),
        "source": ending_blocks(report(sources=[source]), SPEC),
        "ledger": ending_blocks(report(Verdict.FAILED, edges=[open_edge], gaps=[gap]), SPEC),
        "unknown": ending_blocks(report(edges=[]), SPEC),
    }
    assert heads["failure"][0].startswith("error VF-NODE-FAILED  node detect\n  cause    KeyError: 1")
    assert heads["source"][0].startswith(
        "error VF-SOURCE  source camera ended as truncated\n  cause    it ends at"
    )
    assert heads["ledger"][0].startswith(
        "error VF-RUN-FAILED  the ledger does not close\n  cause    a -> b: item 2"
    )
    assert heads["unknown"][0].startswith("error VF-UNOBSERVABLE")
    assert {kind: len(blocks) for kind, blocks in heads.items()} == dict.fromkeys(heads, 1)


def test_a_failure_is_told_once_although_it_kept_a_source_from_its_end() -> None:
    failure = FailureReport(code="VF-NODE-FAILED", message="node detect", node="detect", cause="KeyError: 1")
    cut_off = SourceReport(node="camera", outcome="unknown", items=58)
    assert len(ending_blocks(report(Verdict.FAILED, failure=failure, sources=[cut_off]), SPEC)) == 1
    assert "ended as unknown" in ending_blocks(report(sources=[cut_off]), SPEC)[0]


@pytest.mark.parametrize("verdict", [Verdict.COMPLETE, Verdict.STOPPED])
def test_a_good_ending_has_none(verdict: Verdict) -> None:
    stopped = SourceReport(node="camera", outcome="unknown", items=3)
    assert ending_blocks(report(verdict, sources=[stopped]), SPEC) == []


def test_the_summary_names_what_is_missing_and_leaves_out_zeros() -> None:
    text = text_of(report())
    assert text.splitlines()[0] == "people: incomplete after 41.2 s on local"
    assert "abandoned" not in text
    assert "camera → detect" in text
    assert "1 skipped: dead_letter" in text
    assert "37.1" in text


def test_a_ledger_that_does_not_close_is_always_seen() -> None:
    edges = [
        EdgeReport(parent="a", child="b", announced=3, delivered=2, closed=False, detail="item 2 is missing"),
        EdgeReport(parent="b", child="c", announced=0, closed=None),
    ]
    text = text_of(report(edges=edges))
    assert "does not close" in text
    assert "item 2 is missing" in text
    assert "unknown" in text


def test_an_output_is_named_as_one_would_type_it_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "out.jsonl").write_text("{}\n")
    told = report(outputs=["out.jsonl"])
    monkeypatch.chdir(tmp_path)
    assert "again/out.jsonl, 3 B" in text_of(told, folder=tmp_path / "again")
    monkeypatch.chdir(tmp_path / "again")
    assert re.search(r" out\.jsonl, 3 B", text_of(told, folder=tmp_path / "again"))


def test_outputs_are_shown_with_what_is_really_there(tmp_path: Path) -> None:
    (tmp_path / "people.mp4").write_bytes(b"x" * 2048)
    text = text_of(report(outputs=["people.mp4", "gone.jsonl", "rtmp://host/a"]), folder=tmp_path)
    assert "people.mp4, 2.0 KiB" in text
    assert "gone.jsonl (not written)" in text
    assert "rtmp://host/a" in text


def test_a_file_of_an_earlier_run_is_not_taken_for_one_of_this(tmp_path: Path) -> None:
    for name, age in {"old.mp4": 3600, "new.mp4": -1}.items():
        (tmp_path / name).write_bytes(b"x" * 2048)
        written = STARTED.timestamp() - age
        os.utime(tmp_path / name, (written, written))
    made = report(outputs=["old.mp4", "new.mp4"], started_at=STARTED.isoformat())
    text = text_of(made, folder=tmp_path)
    assert "old.mp4 (not written; that of an earlier run, 2.0 KiB, is still there)" in text
    assert "new.mp4, 2.0 KiB" in text


def test_gaps_that_are_alike_share_a_row() -> None:
    gaps = [GapReport(where=name, what="the task did not end", cause="it ran on") for name in ("a", "b -> c")]
    text = text_of(report(gaps=[*gaps, GapReport(where="d", what="frames are missing")]))
    assert re.search(r"^a, b → c +the task did not end +it ran on$", text, re.MULTILINE)
    assert re.search(r"^d +frames are missing$", text, re.MULTILINE)


def test_what_a_source_said_is_not_said_twice() -> None:
    source = SourceReport(node="camera", outcome="truncated", items=58, detail="it ends at 2.3 s")
    gaps = [
        GapReport(where="camera", what="the source ended as truncated", cause="it ends at 2.3 s"),
        GapReport(where="door", what="frames are missing"),
    ]
    text = text_of(report(sources=[source], gaps=gaps))
    assert text.count("it ends at 2.3 s") == 1
    assert "frames are missing" in text


def test_json_holds_everything_that_json_can_and_says_what_it_cannot() -> None:
    frame = Frame(
        image=np.zeros((40, 40, 3), np.uint8), pts=1, time_base=Fraction(1, 25), index=1, source="a"
    )
    values = {"rows": [np.float32(0.5), np.arange(3), (1, None), b"abc", frame, {"k": np.zeros((2, 2))}]}
    document = json.loads(report(values=values).to_json())
    half, numbers, pair, raw, shown, nested = document["values"]["rows"]
    assert (half, numbers, pair, nested) == (0.5, [0, 1, 2], [1, None], {"k": [[0.0, 0.0], [0.0, 0.0]]})
    assert raw == {"left_out": "bytes", "size": 3}
    assert shown["image"] == {"left_out": "array", "shape": [40, 40, 3], "dtype": "uint8"}
    assert (shown["index"], shown["time_base"]) == (1, "1/25")
    assert document["verdict"] == "incomplete"


def test_a_report_reads_back_as_it_was() -> None:
    made = report(dead_letters=[letter(318)], values={"rows": [{"a": 1}]})
    assert RunReport.from_json(made.to_json()) == made


def test_a_notebook_shows_verdict_ledger_and_failure_with_everything_escaped() -> None:
    failure = FailureReport(code="VF-NODE-FAILED", message="node <b>", cause="ValueError: <script>x</script>")
    html = report(
        Verdict.FAILED, failure=failure, dead_letters=[letter(318)], outputs=["a&b.mp4"]
    )._repr_html_()
    for part in ("failed", "camera → detect", "318-7f3a", "a&amp;b.mp4", "&lt;script&gt;", "794", "closes"):
        assert part in html, part
    assert "<script>" not in html
    assert html.count("<table") == html.count("</table>") == 5


def test_how_large_batches_were_and_how_long_inputs_waited_is_shown() -> None:
    sizes = {1: 2, 3: 4, 8: 90}
    batches = BatchReport(
        calls=96, mean_items=7.6, sizes=sizes, waits=[(0.002, 734)], p50_wait_seconds=0.0015
    )
    shown = text_of(report(nodes=[NodeReport(node="detect", task="detect", items=734, batches=batches)]))
    row = next(line.split() for line in shown.splitlines() if line.startswith("detect") and "7.6" in line)
    assert row[:4] == ["detect", "96", "7.6", "1.5"]
    assert "2 of 1, 4 of 3, 90 of 8" in shown
    assert "batches of" not in text_of(report(nodes=[NodeReport(node="draw", task="draw")]))
