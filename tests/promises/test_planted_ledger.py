"""Lose one item, repeat one, miscount one: the run itself must say so, naming the edge and the item."""

from pathlib import Path
from typing import Any

import pytest

from tests.promises.planting import Change, Planted, sampled
from tests.promises.probes import FLOWS, ITEMS

CHANNEL = "backends/memory/_channel.py"
SUBSCRIPTION = "backends/memory/_subscription.py"
RECEIVER = "backends/memory/_receiver.py"
BURST, CORE = "worker/core/_burst.py", "worker/core/_core.py"
SHM_RECEIVING = "adapters/shm/_receiving.py"
SHM_OUTLET = "adapters/shm/_outlet.py"


def loses(number: int) -> Change:
    """The channel of `same` drops one appended item silently."""
    return Change(
        CHANNEL,
        "            reader.append(entry)\n",
        f'            if (self.spec.channel.node, origin.ordinal) != ("same", {number}):\n'
        "                reader.append(entry)\n",
    )


def gives_twice(node: str) -> Change:
    """The channel of a node hands out its seventh item a second time."""
    return Change(
        CHANNEL,
        "            reader.append(entry)\n",
        "            reader.append(entry)\n"
        f'            if (self.spec.channel.node, origin.ordinal) == ("{node}", 7):\n'
        "                at = envelope.writer.slot, slot.next\n"
        "                again = Entry(envelope, at, now, self._appended, place)\n"
        "                slot.next += 1\n"
        "                self._appended += 1\n"
        "                reader.append(again)\n",
    )


def silent(number: int) -> Change:
    """A task works on an item and settles it, and publishes nothing."""
    return Change(
        CORE,
        "        pending.publications = made.publications\n",
        "        pending.publications = [\n"
        "            said for said in made.publications\n"
        f"            if said[1][0].envelope.origin.ordinal != {number}\n"
        "        ]\n",
    )


FORGETFUL_TASK = (
    Change(
        BURST,
        "            given = elements[step.place]\n",
        "            given = elements[step.place]\n"
        "            if step.edge >= 0 and element.origin.ordinal == 19:\n"
        "                continue\n",
    ),
    Change(
        BURST, "        elif self._inner:\n", "        elif self._inner and element.origin.ordinal != 19:\n"
    ),
)
FORGETFUL_SOURCE = Change(
    BURST,
    "        made.item = None\n",
    "        if origin.ordinal == 19:\n            made.publications.pop()\n        made.item = None\n",
)
WORKS_TWICE = Change(
    BURST,
    "            made.answers = self._through(_element(delivery.envelope, value), call, made)\n",
    "            made.answers = self._through(_element(delivery.envelope, value), call, made)\n"
    "            if delivery.envelope.origin.ordinal == 7:\n"
    "                self._through(_element(delivery.envelope, value), call, BurstOutcome())\n",
)
COUNTED_AS_ANOTHER = Change(
    SUBSCRIPTION,
    "        coverage.close(envelope.origin, envelope.path, fate)\n",
    "        shifted = envelope.origin.ordinal + (envelope.origin.ordinal == 7)\n"
    "        coverage.close(envelope.origin._replace(ordinal=shifted), envelope.path, fate)\n",
)
UNANNOUNCED = Change(
    CHANNEL,
    "        elif fate is not None:\n            self.announced.close(",
    "        elif fate is not None and origin.ordinal != 7:\n            self.announced.close(",
)
UNCOUNTED_DROP = Change(
    SUBSCRIPTION,
    "        self.settled.close(envelope.origin, envelope.path, buried_fate(cause))\n",
    "",
)
SHM_LOSES = Change(
    SHM_RECEIVING,
    "            inlet.ask(limit)\n            self._process.hub.flush()\n        return found\n",
    "            inlet.ask(limit)\n            self._process.hub.flush()\n"
    '        mine = inlet.subscription.channel.node == "same"\n'
    "        return [d for d in found if not (mine and d.envelope.origin.ordinal == 7)]\n",
)
SHM_UNSETTLED = Change(
    SHM_RECEIVING,
    "            if fate is not None:\n                rows.add",
    "            if fate is not None and envelope.origin.ordinal != 7:\n                rows.add",
)
SHM_UNANNOUNCED = (
    Change(
        SHM_OUTLET,
        "            self._rows.add(self.number, envelope, fate)\n",
        "            if envelope.origin.ordinal != 7:\n"
        "                self._rows.add(self.number, envelope, fate)\n",
    ),
    Change(
        SHM_OUTLET,
        "        self._rows.close(self.number, DELIVERED, origin, (), interval)\n",
        "        for n in {*range(interval[0][0], interval[0][1] + 1)} - {7}:\n"
        "            self._rows.close(self.number, DELIVERED, origin, (), ((n, n),))\n",
    ),
)

NOT_SETTLED = "item {} of numbers was announced and not settled"
NOT_ANNOUNCED = "item {} of numbers was settled and never announced"

# Defect, flow, engine; then the edge that is named, and what is said of it.
CAUGHT: dict[str, tuple[tuple[Change, ...], str, str, tuple[str, str], str]] = {
    "lost": ((loses(7),), "chain", "threads", ("same", "rows"), NOT_SETTLED.format(7)),
    "lost, the last": ((loses(19),), "chain", "threads", ("same", "rows"), NOT_SETTLED.format(19)),
    "lost in a task": (
        (silent(19),),
        "unordered",
        "threads",
        ("left", "right"),
        "item 19 of numbers went into left and never came out",
    ),
    "lost between two nodes of a task": (
        FORGETFUL_TASK,
        "fused",
        "threads",
        ("first", "second"),
        "item 19 of numbers went into first and never came out",
    ),
    "lost by the source": (
        (FORGETFUL_SOURCE,),
        "chain",
        "threads",
        ("numbers", "same"),
        "numbers made 20 items, and 19 came out",
    ),
    "counted as another": (
        (COUNTED_AS_ANOTHER,),
        "chain",
        "threads",
        ("same", "rows"),
        NOT_SETTLED.format(7),
    ),
    "not counted when announced": (
        (UNANNOUNCED,),
        "chain",
        "threads",
        ("same", "rows"),
        NOT_ANNOUNCED.format(7),
    ),
    "worked on twice": (
        (WORKS_TWICE,),
        "chain",
        "threads",
        ("numbers", "same"),
        "same was called for 21 items, and 20 were delivered",
    ),
    "worked on twice in a process": (
        (WORKS_TWICE,),
        "chain",
        "local",
        ("numbers", "same"),
        "same was called for 21 items, and 20 were delivered",
    ),
    "not counted by its reader": (
        (SHM_UNSETTLED,),
        "chain",
        "local",
        ("same", "rows"),
        NOT_SETTLED.format(7),
    ),
    "not counted by its writer": (
        SHM_UNANNOUNCED,
        "chain",
        "local",
        ("same", "rows"),
        NOT_ANNOUNCED.format(7),
    ),
}


def edge_of(report: dict[str, Any], parent: str, child: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        edge for edge in report["edges"] if (edge["parent"], edge["child"]) == (parent, child)
    )
    return found


ALWAYS = (
    "lost by the source",
    "lost between two nodes of a task",
    "counted as another",
    "worked on twice in a process",
)


@pytest.mark.parametrize("name", sampled(CAUGHT, ALWAYS))
def test_a_hole_in_the_ledger_fails_the_run_and_is_named(name: str, tmp_path: Path) -> None:
    changes, flow, engine, (parent, child), words = CAUGHT[name]
    report = Planted(tmp_path, changes).flow(flow, engine)
    assert (report["verdict"], report["exit_status"]) == ("failed", 4)
    edge = edge_of(report, parent, child)
    assert edge["closed"] is False
    assert edge["detail"] == words
    assert {"where": f"{parent} -> {child}", "what": words, "cause": "the ledger does not close"} in report[
        "gaps"
    ]


@pytest.mark.parametrize(
    ("change", "engine"), [(loses(7), "threads"), pytest.param(SHM_LOSES, "local", marks=pytest.mark.nightly)]
)
def test_a_lost_item_is_missed_by_who_waits_for_it(change: Change, engine: str, tmp_path: Path) -> None:
    report = Planted(tmp_path, [change]).flow("chain", engine)
    assert (report["failure"]["node"], report["exit_status"]) == ("rows", 4)
    assert report["failure"]["message"] == "item 7 of numbers never reached node rows"


def test_an_item_given_twice_has_no_effect_twice_in_an_ordered_reader(tmp_path: Path) -> None:
    report = Planted(tmp_path, [gives_twice("same")]).flow("chain", "threads")
    assert report["verdict"] == "complete"
    assert report["values"]["rows"] == list(range(ITEMS))
    assert all(edge["closed"] and edge["announced"] == ITEMS for edge in report["edges"])


def test_an_item_given_twice_to_replicas_goes_no_further_and_is_noticed(tmp_path: Path) -> None:
    report = Planted(tmp_path, [gives_twice("numbers")]).flow("unordered", "threads")
    assert report["verdict"] == "failed"
    assert report["values"]["rows"] == list(range(ITEMS))
    edge = edge_of(report, "numbers", "left")
    assert edge["detail"] == "left was called for 21 items, and 20 were delivered"


def test_a_drop_that_nobody_counts_is_noticed(tmp_path: Path) -> None:
    counted = Planted(tmp_path / "counted").flow("newest", "threads")
    assert counted["verdict"] == "complete"
    assert edge_of(counted, "numbers", "rows")["dropped"]["dropped"] > 0
    report = Planted(tmp_path, [UNCOUNTED_DROP]).flow("newest", "threads")
    assert report["verdict"] == "failed"
    assert edge_of(report, "numbers", "rows")["detail"].endswith("of numbers was announced and not settled")


@pytest.mark.parametrize("engine", ["threads", "local"])
def test_without_a_defect_the_same_flows_are_complete(engine: str, tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    for flow in FLOWS if engine == "threads" else ("chain",):
        report = planted.flow(flow, engine)
        assert (report["verdict"], report["gaps"]) == ("complete", []), flow
