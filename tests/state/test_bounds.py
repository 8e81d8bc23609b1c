"""What a node may keep: values that an edge carries, within the bound of its class, by name."""

from typing import Any

import pytest

import videoflow as vf
from tests.state.nodes import Numbers, Rows
from videoflow.testing import drive


class Hoards(vf.Processor):
    """Keeps everything, and forgets all but the newest where it is told to."""

    max_state_bytes = 600
    max_item_bytes = 4096

    def __init__(self, *, forgets: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.forgets = forgets

    def process(self, number: int, ctx: vf.Context) -> int:
        ctx.state[f"seen/{number}"] = "x" * 100
        if self.forgets and number:
            del ctx.state[f"seen/{number - 1}"]
        return len(ctx.state)


class KeepsSet(vf.Processor):
    """Tries to keep what no edge carries."""

    max_item_bytes = 4096

    def process(self, number: int, ctx: vf.Context) -> int:
        ctx.state["seen"] = {"numbers": [{number}]}
        return number


class Swollen(vf.Processor):
    """Hands over more of itself with every input."""

    max_state_bytes = 600
    max_item_bytes = 4096

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.text = ""

    def process(self, number: int) -> int:
        self.text += "x" * 100
        return number

    def snapshot(self) -> str:
        return self.text

    def restore(self, value: str) -> None:
        self.text = value


def flow_of(node: vf.Node) -> vf.Flow:
    made: Any = node
    return vf.Flow([Rows(name="rows")(made(Numbers(12, name="numbers")))], name="bounded")


def test_what_is_deleted_makes_room() -> None:
    report = flow_of(Hoards(forgets=True, name="hoards")).run()
    assert report.values["rows"] == [1] * 12


@pytest.mark.parametrize("made", [Hoards(name="hoards"), Swollen(name="swollen")])
def test_more_than_the_bound_ends_the_run_by_node_key_and_bytes(made: vf.Node) -> None:
    name = made._videoflow_record.options["name"]
    with pytest.raises(vf.FlowError) as caught:
        flow_of(made).run(drain_seconds=3600.0)  # nothing waits for a worker that cannot go on
    report: Any = caught.value.report
    failure = report.failure
    said = f"{failure.message} {failure.cause} {failure.remedy}"
    assert (failure.node, failure.code) == (name, "VF-STATE")
    assert "seen/5" in said if name == "hoards" else "its snapshot" in said
    assert "max_state_bytes = 600" in said
    assert "bytes" in said
    assert caught.value.exit_status == 4


def test_on_error_may_put_the_input_aside_instead_and_the_state_stays() -> None:
    made = Hoards(name="hoards", on_error={"StateTooLarge": "poison"})
    report = flow_of(made).run(allow_dead_letters=99)
    assert report.values["rows"] == [1, 2, 3, 4, 5]
    assert len(report.dead_letters) == 7


def test_a_value_that_no_edge_carries_names_the_key_and_the_line() -> None:
    report = flow_of(KeepsSet(name="keeps")).run()
    letter = report.dead_letters[0]
    assert "node keeps: ctx.state['seen']['numbers'][0] cannot be kept" in letter.error
    assert letter.where.startswith("test_bounds.py:")
    assert letter.where.endswith(" in process")


def test_drive_refuses_what_a_run_would() -> None:
    with pytest.raises(vf.StateTooLarge, match=r"hoards would keep .* bytes"):
        drive(Hoards(name="hoards"), range(12))
    with pytest.raises(vf.StateTooLarge, match="snapshot"):
        drive(Swollen(), range(12))
    with pytest.raises(vf.ValueRefused, match=r"ctx\.state"):
        drive(KeepsSet(), [1])


@pytest.mark.parametrize("bound", [0, -1, 1.5, "64 MiB"])
def test_a_bound_is_a_number_of_bytes(bound: Any) -> None:
    node = Hoards(name="hoards")
    node.max_state_bytes = bound
    with pytest.raises(vf.FlowInvalid, match="max_state_bytes"):
        flow_of(node).compile()
