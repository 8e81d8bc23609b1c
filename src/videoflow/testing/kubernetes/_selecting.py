"""Label and field selectors."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from videoflow.testing.kubernetes._kinds import Object

Test = Callable[[Mapping[str, str]], bool]
_SET = re.compile(r"\s*(?P<key>[^\s,!=()]+)\s+(?P<operator>in|notin)\s+\((?P<values>[^)]*)\)\s*(?:,|$)")
_PLAIN = re.compile(
    r"\s*(?P<absent>!?)\s*(?P<key>[^\s,!=()]+)\s*(?:(?P<operator>==?|!=)\s*(?P<value>[^\s,]*))?\s*(?:,|$)"
)


class BadSelector(Exception):
    """A selector that cannot be read."""


def labels_match(selector: str, labels: Mapping[str, str]) -> bool:
    """Returns whether labels fulfil a selector.

    Raises:
        BadSelector: It cannot be read.
    """
    return all(test(labels) for test in _tests(selector))


def fields_match(selector: str, found: Object) -> bool:
    """Returns whether an object fulfils a field selector; a field that it lacks is empty.

    Raises:
        BadSelector: It cannot be read.
    """
    for term in filter(None, selector.split(",")):
        unequal = "!=" in term
        path, separator, wanted = term.partition("!=" if unequal else "=")
        if not separator:
            raise BadSelector(term)
        value: Any = found
        for part in path.strip().split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if (("" if value is None else str(value)) == wanted.removeprefix("=").strip()) is unequal:
            return False
    return True


def _tests(selector: str) -> list[Test]:
    tests, rest = [], selector
    while rest.strip():
        if found := _SET.match(rest):
            values = frozenset(value.strip() for value in found["values"].split(","))
            tests.append(_among(found["key"], values, found["operator"] == "in"))
        elif found := _PLAIN.match(rest):
            tests.append(_plain(found["key"], found["absent"], found["operator"] or "", found["value"] or ""))
        else:
            raise BadSelector(selector)
        rest = rest[found.end() :]
    return tests


def _among(key: str, values: frozenset[str], inside: bool) -> Test:
    return lambda labels: (labels.get(key) in values) is inside


def _plain(key: str, absent: str, operator: str, value: str) -> Test:
    if not operator:
        return lambda labels: (key in labels) is not bool(absent)
    return lambda labels: (labels.get(key) == value) is (operator != "!=")
