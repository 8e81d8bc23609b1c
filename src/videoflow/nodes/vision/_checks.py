"""Checks of node arguments, with the words that a user needs. Used by the vision nodes in `__init__`."""

from videoflow.errors import ArgumentInvalid


def require_share(owner: str, name: str, value: float) -> None:
    """Refuses a number that is not in 0..1, both included.

    Args:
        owner: Class of the node.
        name: Name of the argument.
        value: What was given.

    Raises:
        ArgumentInvalid: It is outside.
    """
    if not 0.0 <= value <= 1.0:
        raise ArgumentInvalid(
            f"{owner}: {name} cannot be {value}", cause="wanted 0 to 1", remedy=f"change {name}="
        )


def require_least(owner: str, name: str, value: float, least: float) -> None:
    """Refuses a number below `least`.

    Args:
        owner: Class of the node.
        name: Name of the argument.
        value: What was given.
        least: The smallest number that is taken.

    Raises:
        ArgumentInvalid: It is below.
    """
    if not value >= least:
        raise ArgumentInvalid(
            f"{owner}: {name} cannot be {value}", cause=f"wanted {least} or more", remedy=f"change {name}="
        )
