"""Quantities as Kubernetes spells them."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

_SUFFIXES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{name: Decimal(1000) ** power for power, name in enumerate("kMGTPE", 1)},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", 1)},
}
_QUANTITY: Final = re.compile(r"([+-]?[0-9]*\.?[0-9]+)(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)")


@lru_cache(maxsize=1024)
def read_quantity(text: str) -> Decimal:
    """Returns a quantity; raises ValueError where it is none.

    >>> read_quantity("40Gi") == 40 * 2**30, read_quantity("1500m") == Decimal("1.5")
    (True, True)
    """
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    number, suffix = found.groups()
    return Decimal(number) * _SUFFIXES[suffix] if suffix in _SUFFIXES else Decimal(number + suffix)
