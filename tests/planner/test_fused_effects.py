"""Sinks with effect keys in a task of several nodes."""

import pytest

from tests.planner.building import Graph, threads_facts
from videoflow.errors import FlowInvalid
from videoflow.planner import plan_flow


def test_a_sink_with_an_effect_key_is_not_fused_below_what_may_answer_anew() -> None:
    def graph(*, deterministic: bool, fused: bool) -> Graph:
        made, label = Graph(), {"fuse": "one"}
        made.source("camera")
        made.step("guess", "camera", options={**label, "deterministic": deterministic})
        made.step("same", "guess", options=label)
        keyed = {"effect_key_seconds": None}
        made.sink("table", "same", options=label if fused else {}, traits=keyed)
        return made

    for deterministic, fused in ((True, True), (False, False)):
        assert plan_flow(graph(deterministic=deterministic, fused=fused).spec(), threads_facts()).tasks
    with pytest.raises(FlowInvalid, match="table: it cannot be fused as 'one': its effect key"):
        plan_flow(graph(deterministic=False, fused=True).spec(), threads_facts())
