"""Checks of the arguments and the inputs of nodes, with the words that a user needs."""

from videoflow.errors import ArgumentInvalid, NotYet


def require(holds: bool, owner: str, name: str, value: object, wanted: str) -> None:
    """Refuses an argument.

    Args:
        holds: Whether the argument is right.
        owner: Class of the node.
        name: Name of the argument.
        value: What was given.
        wanted: What it should be, in words.

    Raises:
        ArgumentInvalid: It is not.
    """
    if not holds:
        raise ArgumentInvalid(
            f"{owner}: {name} cannot be {value!r}", cause=f"wanted {wanted}", remedy=f"change {name}="
        )


def refuse_later(used: bool, owner: str, name: str, value: object, meanwhile: str) -> None:
    """Refuses an argument that is named and not built yet.

    Args:
        used: Whether it was used.
        owner: Class of the node.
        name: Name of the argument.
        value: What was given.
        meanwhile: What to do instead.

    Raises:
        NotYet: It was used.
    """
    if used:
        raise NotYet(
            f"{owner}: {name}={value!r} is not built yet", effect="nothing was started", remedy=meanwhile
        )


def require_input(value: object, wanted: type, owner: str, remedy: str) -> None:
    """Refuses an input of another type than the one that a node reads, as a flow wired otherwise brings it.

    Args:
        value: The input.
        wanted: Its type.
        owner: Class of the node.
        remedy: What to wire instead.

    Raises:
        TypeError: It is of another type.
    """
    if not isinstance(value, wanted):
        raise TypeError(f"{owner} reads {wanted.__name__}, not {type(value).__name__}: {remedy}")
