"""Names for what cannot be typed further: annotations looked at as data, and values of the user.

Used in the code that reads signatures, records arguments and calls user code. It refuses nothing; what a
value may be is said by the codecs and by `wire`.
"""

from typing import Any, TypeAlias, get_origin

Annotation: TypeAlias = Any
"""A type as it stands in an annotation."""

Value: TypeAlias = Any
"""A value of the user's, of any type that an edge or an argument carries."""

Json: TypeAlias = Any
"""JSON data: None, bool, int, float, str, list, dict with text keys."""


def origin_of(annotation: Annotation) -> Annotation:
    """Returns `get_origin` of an annotation, or None."""
    return get_origin(annotation)
