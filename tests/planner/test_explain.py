"""What a user reads who asks why: notes, words, sums, and the drawing."""

from typing import Any

import pytest

from tests.planner.building import GIB, Graph, local_facts, threads_facts
from videoflow.graph.spec import BatchSpec, LatestSpec
from videoflow.planner import plan_flow
from videoflow.planner._words import size_text
from videoflow.planner.explain import Section, explain_mermaid, explain_text, plain_text
from videoflow.planner.plan import Plan


def people() -> Graph:
    state = {"stateful": True}
    graph = Graph()
    graph.source("camera")
    graph.step("detect", "camera", options={"replicas": 2}, traits={"max_item_bytes": 65536})
    graph.step("track", "detect", options={"ordered": True, "fuse": "people"}, traits=state)
    graph.step("count", "track", options={"ordered": True, "fuse": "people"}, traits=state)
    graph.step("draw", "camera", "track", "count")
    graph.sink("video", "draw", traits={**state, "checkpoints": True, "holds_items": 31})
    graph.sink("screen", ("count", LatestSpec(max_age_seconds=0.5)))
    return graph


def planned(graph: Graph, **facts: Any) -> Plan:
    return plan_flow(graph.spec(), threads_facts(sizes={"camera": 691_200}, **facts))


def section(plan: Plan, title: str) -> Section:
    [found] = [part for part in explain_text(plan) if part.title == title]
    return found


def test_tasks_are_shown_with_nodes_mode_order_and_the_reasons() -> None:
    table = section(planned(people()), "Tasks")
    assert table.columns == ("task", "nodes", "replicas", "takes its input", "commits")
    rows = {row.cells[0]: row for row in table.rows}
    assert rows["detect"].cells == ("detect", "detect", "2", "whichever replica is free", "stateless")
    assert rows["track"].cells == ("track", "track, count", "1", "in order", "outbox")
    assert rows["track"].why[0] == "track and count carry the label 'people': one process, direct calls"
    assert "track keeps state" in " ".join(rows["track"].why)
    assert rows["draw"].cells[3] == "in order, joined"


def test_edges_are_shown_with_their_figures_and_where_they_come_from() -> None:
    rows = {row.cells[0]: row for row in section(planned(people()), "Edges").rows}
    assert rows["track → count"].cells[1] == "direct call"
    assert rows["detect → track"].cells[4] == "21"
    assert "20 behind detect" in rows["detect → track"].why[1]
    assert rows["count → screen"].cells[5] == "the latest, at most 0.5 s old"


def test_the_memory_table_adds_up_and_names_the_largest_buffers() -> None:
    plan = planned(people())
    table = section(plan, "Memory for items in flight, at most")
    assert table.rows[-2].cells == ("all together", size_text(plan.memory_bytes))
    assert table.rows[-1].cells == ("allowed (--memory-bytes)", "64 GiB")
    assert table.sentences[0].startswith("the largest buffers: camera (64 MiB), draw (64 MiB)")
    names = [row.cells[0] for row in table.rows[:-2]]
    assert "channel count (live)" in names
    assert "next outputs of detect x2" in names


def test_only_words_that_occur_are_explained() -> None:
    plain = Graph()
    plain.source("camera")
    plain.sink("log", "camera")
    words = [row.cells[0] for row in section(planned(plain), "Words").rows]
    assert words == ["task", "channel", "bound", "credit", "hold", "stateless"]
    everything = [row.cells[0] for row in section(planned(people()), "Words").rows]
    assert {"spread", "outbox", "live"} <= set(everything)


def test_plain_text_has_every_section_once_and_no_trailing_blanks() -> None:
    text = plain_text(explain_text(planned(people())))
    titles = [part.title for part in explain_text(planned(people()))]
    lines = text.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == titles
    assert not [line for line in lines if line != line.rstrip()]


def test_a_consumer_without_checkpoint_is_said_to_be_at_least_once() -> None:
    notes = " / ".join(planned(people()).notes)
    assert "screen is at-least-once" in notes
    assert "video is at-least-once" not in notes


def test_threads_say_that_they_isolate_nothing_and_processes_do_not() -> None:
    assert any("isolates no crash" in note for note in planned(people()).notes)
    local = plan_flow(people().spec(), local_facts(budget=8 * GIB, sizes={"camera": 691_200}))
    assert not any("isolates no crash" in note for note in local.notes)


def test_more_replicas_than_processors_is_a_note() -> None:
    assert any("count as 7 processors and there are 2" in note for note in planned(people(), cpus=2).notes)
    assert not any("processors" in note for note in planned(people(), cpus=7).notes)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"deterministic": False}, "a: deterministic=False"),
        ({"batch": BatchSpec(max_items=4, max_wait_seconds=0.1)}, "a: the size of a batch"),
    ],
)
def test_what_may_differ_between_runs_is_listed(options: dict[str, Any], sentence: str) -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options=options)
    graph.sink("log", "a")
    [found] = planned(graph).outside_identity
    assert found.startswith(sentence)


def test_a_lossless_deterministic_flow_of_one_source_has_nothing_outside_identity() -> None:
    graph = Graph()
    graph.source("camera")
    graph.step("a", "camera", options={"replicas": 3})
    graph.sink("log", "a")
    assert planned(graph).outside_identity == ()


def test_live_edges_and_several_sources_are_outside_identity() -> None:
    graph = Graph()
    graph.source("left")
    graph.source("right")
    graph.sink("log", ("left", "right"))
    graph.sink("screen", ("left", LatestSpec()))
    live, between = planned(graph).outside_identity
    assert live == "screen: left comes live, so timing decides what is dropped"
    assert between.startswith("the order between the sources left and right")


def test_streams_merged_apart_are_a_note() -> None:
    graph = Graph()
    graph.source("left")
    graph.source("right")
    graph.step("p", ("left", "right"))
    graph.step("q", ("left", "right"))
    graph.step("draw", "p", "q")
    graph.sink("log", "draw")
    assert any("draw joins streams whose sources were merged" in note for note in planned(graph).notes)


def test_the_drawing_frames_fused_tasks_and_dots_live_edges() -> None:
    drawn = explain_mermaid(planned(people()))
    assert drawn.startswith("flowchart LR\n")
    assert 'subgraph t2["task track"]' in drawn
    assert 'n1["detect x2"]' in drawn
    assert 'n3 -.->|"memory"| n6' in drawn
    assert "n2 --> n3" in drawn
