"""Splits the part of a command line that belongs to the flow: which words are the values of which option.

Used by `run-local` and `explain`. It refuses an option that nobody knows with the nearest name, one without
its value, and words that belong to no option; what a value means is for the factory's annotations to say.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from videoflow.cli._nearest import nearest
from videoflow.errors import ArgumentInvalid


class Takes(Enum):
    """How many words an option takes: none (`--x`, `--no-x`), one, or all up to the next option."""

    NONE = 0
    ONE = 1
    MANY = 2


def split_words(
    words: Iterable[str], options: Mapping[str, Takes], others: Iterable[str] = ()
) -> dict[str, list[str]]:
    """Returns option → its values, in the order of the command line.

    Args:
        words: What is left of the command line when the command's own options are taken out.
        options: `--like-this` → how many words it takes.
        others: The command's own options, to be named to who misspelt one.

    Raises:
        ArgumentInvalid: An unknown option, a missing value, or a word too many.
    """
    negated = {f"--no-{option[2:]}": option for option, takes in options.items() if takes is Takes.NONE}
    found: dict[str, list[str]] = {}
    rest = list(words)[::-1]
    while rest:
        word = rest.pop()
        if not word.startswith("--") or word == "--":
            raise _misplaced(word)
        option, equals, value = word.partition("=")
        if option in negated and not equals:
            found.setdefault(negated[option], []).append("false")
        elif option in options:
            values = [value] if equals else _values(option, options[option], rest)
            found.setdefault(option, []).extend(values)
        else:
            raise _unknown(option, [*options, *negated], others)
    return found


def _values(option: str, takes: Takes, rest: list[str]) -> list[str]:
    """Takes the words of one option from the end of `rest`, which is the command line reversed."""
    if takes is Takes.NONE:
        return ["true"]
    values: list[str] = []
    while rest and not rest[-1].startswith("--"):
        values.append(rest.pop())
        if takes is Takes.ONE:
            break
    if not values:
        raise ArgumentInvalid(
            f"{option} needs a value",
            effect="nothing was started",
            remedy=f"write {option} VALUE, or {option}=VALUE for a value that begins with --",
        )
    return values


def _misplaced(word: str) -> ArgumentInvalid:
    return ArgumentInvalid(
        f"{word!r} belongs to no option",
        effect="nothing was started",
        remedy="write --option VALUE; put a value with spaces in quotes",
    )


def _unknown(option: str, own: list[str], others: Iterable[str]) -> ArgumentInvalid:
    return ArgumentInvalid(
        f"there is no option {option}",
        cause=f"this flow has {', '.join(own)}" if own else "this flow has no options of its own",
        effect="nothing was started",
        remedy=nearest(option, [*own, *others]) or "see all of them with --help after the flow file",
    )
