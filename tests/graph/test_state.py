"""`ctx.state`: an overlay per attempt, copies when read, only assignment persists."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from videoflow import wire
from videoflow.errors import ValueRefused
from videoflow.graph import DELETED, State

KEYS = st.sampled_from("abc")
VALUES = st.integers(-9, 9) | st.lists(st.integers(-9, 9), max_size=2)


class StateMachine(RuleBasedStateMachine):
    """The state against two plain dicts: what is committed, and what the attempt sees."""

    def __init__(self) -> None:
        super().__init__()
        self.committed: dict[str, Any] = {"a": 1}
        self.state = State(self.committed, wire.freeze)
        self.model: dict[str, Any] = {"a": 1}
        self.seen: dict[str, Any] = {"a": 1}

    @rule(key=KEYS, value=VALUES)
    def assign(self, key: str, value: Any) -> None:
        self.state[key] = value
        self.seen[key] = value

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.seen:
            del self.state[key]
            del self.seen[key]
        else:
            with pytest.raises(KeyError):
                del self.state[key]

    @rule()
    def fail(self) -> None:
        self.state.rollback()
        self.seen = dict(self.model)

    @rule()
    def keep(self) -> None:
        changes = self.state.keep()
        for key, value in changes.items():
            if value is DELETED:
                del self.model[key]
            else:
                self.model[key] = value
        assert self.model == self.seen

    @rule()
    def begin(self) -> None:
        self.state.begin()
        self.seen = dict(self.model)

    @invariant()
    def both_agree(self) -> None:
        assert dict(self.state) == self.seen
        assert len(self.state) == len(self.seen)
        assert self.committed == self.model
        assert {key for key in "abc" if key in self.state} == set(self.seen)


TestStateMachine = StateMachine.TestCase


def test_what_is_read_is_a_copy_and_changing_it_changes_nothing() -> None:
    state = State({"tracks": {"7": [1, 2]}}, wire.freeze)
    state["tracks"]["7"].append(3)
    state["tracks"]["8"] = []
    assert state["tracks"] == {"7": [1, 2]}
    assert state.keep() == {}


def test_what_is_assigned_is_taken_as_it_is_now() -> None:
    state = State({}, wire.freeze)
    rows = [1]
    state["rows"] = rows
    rows.append(2)
    assert state["rows"] == [1]


def test_arrays_are_read_only() -> None:
    state = State({}, wire.freeze)
    state["mean"] = np.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        state["mean"][0] = 1


def test_keys_are_text_and_values_are_those_of_edges() -> None:
    state = State({}, wire.freeze)
    odd: Any = 3
    with pytest.raises(TypeError, match="text, not int"):
        state[odd] = 1
    with pytest.raises(UnicodeEncodeError):
        state["\ud800"] = 1
    with pytest.raises(ValueRefused):
        state["a"] = object()
    assert state.keep() == {}


def test_an_update_in_place_needs_its_assignment() -> None:
    state = State({"n": 1}, wire.freeze)
    state["n"] += 1
    assert state.keep() == {"n": 2}
    assert state.keep() == {}
