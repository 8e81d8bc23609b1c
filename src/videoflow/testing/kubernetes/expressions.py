"""Selectors of devices, checked and evaluated as an API server and a scheduler do.

Used by tests of claims: `Expressions().matches` is what `Scheduler` takes. CEL itself is cel-expr-python;
quantities and versions are here. It refuses an expression whose types do not fit, as the server does when a
claim is created.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

from cel_expr_python import cel

from videoflow.testing.kubernetes._kinds import Json
from videoflow.testing.kubernetes._quantities import read_quantity

__all__ = ["ExpressionInvalid", "Expressions", "read_quantity"]

_Type = cel.Type
_SEMVER: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_DOMAINS: Final = re.compile(r'device\.(attributes|capacity)\[(?:"([^"]+)"|\'([^\']+)\')\]')


class ExpressionInvalid(ValueError):
    """An expression that no server accepts, or that ends in an error on a device."""


class Expressions:
    """Selectors of one kind of server.

    Args:
        consumable: Whether the server has consumable capacity on, so that a selector may ask whether a
            device can be given out several times.
    """

    def __init__(self, *, consumable: bool = True) -> None:
        self._consumable = consumable
        quantity, version = _Type.AbstractType("kubernetes.Quantity"), _Type.AbstractType("kubernetes.Semver")
        # The library has no values of abstract types: types are checked with them, and values are carried as
        # maps and lists, which no selector can tell from them any more.
        self._strict = self._environment(quantity, version)
        carried = _Type.Map(_Type.STRING, _Type.STRING), _Type.List(_Type.INT)
        self._loose = self._environment(*carried)
        self._compiled = lru_cache(maxsize=1024)(self._compile)

    def check(self, expression: str) -> None:
        """Raises ExpressionInvalid where the server would refuse it: syntax, names, types, no truth value."""
        self._compiled(expression)

    def matches(self, expression: str, device: Mapping[str, Json]) -> bool:
        """Returns whether a device of a resource slice, with its `driver`, fulfils an expression.

        Raises ExpressionInvalid also where it ends in an error, since a scheduler then gives the claim up.
        """
        compiled, domains = self._compiled(expression)
        found = compiled.eval(data=self._values(device, domains))
        if found.type() != _Type.BOOL:
            raise ExpressionInvalid(f"{expression} on {device.get('name')}: {found.value()}")
        return bool(found.value())

    def _compile(self, expression: str) -> tuple[Json, frozenset[tuple[str, str]]]:
        try:
            checked = self._strict.compile(expression)
            compiled = self._loose.compile(expression)
        except RuntimeError as error:
            raise ExpressionInvalid(f"{expression}: {error}") from error
        if checked.return_type() != _Type.BOOL:
            raise ExpressionInvalid(f"{expression} is no condition")
        found = _DOMAINS.findall(expression)
        return compiled, frozenset((kind, one or other) for kind, one, other in found)

    def _values(self, device: Mapping[str, Json], domains: frozenset[tuple[str, str]]) -> dict[str, Json]:
        # A domain that a device knows nothing of is an empty map, and not an error.
        attributes: dict[str, dict[str, Json]] = {name: {} for kind, name in domains if kind == "attributes"}
        capacity: dict[str, dict[str, Json]] = {name: {} for kind, name in domains if kind == "capacity"}
        for qualified, value in (device.get("attributes") or {}).items():
            domain, name = _split(qualified, device["driver"])
            attributes.setdefault(domain, {})[name] = _attribute(value)
        for qualified, value in (device.get("capacity") or {}).items():
            domain, name = _split(qualified, device["driver"])
            capacity.setdefault(domain, {})[name] = {"quantity": str(value["value"])}
        values = {
            "device.driver": device["driver"],
            "device.attributes": attributes,
            "device.capacity": capacity,
        }
        if self._consumable:
            values["device.allowMultipleAllocations"] = bool(device.get("allowMultipleAllocations"))
        return values

    def _environment(self, quantity: Json, version: Json) -> Json:
        text, number, truth = _Type.STRING, _Type.INT, _Type.BOOL
        variables = {
            "device.driver": text,
            "device.attributes": _Type.Map(text, _Type.Map(text, _Type.DYN)),
            "device.capacity": _Type.Map(text, _Type.Map(text, quantity)),
        }
        if self._consumable:
            variables["device.allowMultipleAllocations"] = truth

        def function(name: str, *overloads: tuple[Json, list[Json], bool, Json]) -> Json:
            made = [
                cel.Overload(f"{name}_{n}", result, parameters, member, impl)
                for n, (result, parameters, member, impl) in enumerate(overloads)
            ]
            return cel.FunctionDecl(name, made)

        def compared(name: str, result: Json, judge: Json) -> Json:
            return function(
                name,
                (result, [quantity, quantity], True, lambda a, b: judge(_order(_amount(a), _amount(b)))),
                (result, [version, version], True, lambda a, b: judge(_order(list(a), list(b)))),
            )

        functions = [
            function("quantity", (quantity, [text], False, _quantity)),
            function("isQuantity", (truth, [text], False, _is_quantity)),
            function("semver", (version, [text], False, _semver)),
            function("isSemver", (truth, [text], False, lambda said: bool(_SEMVER.fullmatch(said)))),
            compared("compareTo", number, int),
            compared("isGreaterThan", truth, lambda order: order > 0),
            compared("isLessThan", truth, lambda order: order < 0),
        ]
        return cel.NewEnv(variables=variables, functions=functions)


def _split(qualified: str, driver: str) -> tuple[str, str]:
    domain, _, name = qualified.rpartition("/")
    return domain or driver, name


def _attribute(value: Mapping[str, Json]) -> Json:
    ((kind, found),) = value.items()
    return [int(part) for part in found.split(".")] if kind == "version" else found


def _order(one: Json, other: Json) -> int:
    return int(one > other) - int(one < other)


def _amount(carried: Json) -> Decimal:
    return read_quantity(_plain(carried["quantity"]))


def _plain(value: Json) -> str:
    return str(value.value() if hasattr(value, "value") else value)


def _quantity(text: str) -> dict[str, str]:
    read_quantity(text)
    return {"quantity": text}


def _is_quantity(text: str) -> bool:
    try:
        read_quantity(text)
    except ValueError:
        return False
    return True


def _semver(text: str) -> list[int]:
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ExpressionInvalid(f"{text!r} is no version")
    return [int(part) for part in found.groups()]
