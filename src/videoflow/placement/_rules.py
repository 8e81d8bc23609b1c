"""Whether a card fulfils a rule, and which rules nobody can check."""

from collections.abc import Callable, Mapping, Sequence

from videoflow.placement._problem import Card, Demand, Host, Operator, Problem, Rule

_NUMERIC: Mapping[Operator, Callable[[int, int], bool]] = {
    Operator.GT: lambda found, asked: found > asked,
    Operator.GE: lambda found, asked: found >= asked,
    Operator.LT: lambda found, asked: found < asked,
    Operator.LE: lambda found, asked: found <= asked,
}


def fulfils(rule: Rule, host: Host, card: Card) -> bool:
    """Returns whether a card of a host fulfils a rule; numbers that cannot be read fulfil nothing."""
    found = card.facts.get(rule.key, host.facts.get(rule.key))
    if rule.operator is Operator.EXISTS:
        return found is not None
    if rule.operator is Operator.DOES_NOT_EXIST:
        return found is None
    if rule.operator is Operator.NOT_IN:
        return found not in rule.values
    if found is None:
        return False
    if rule.operator is Operator.IN:
        return found in rule.values
    try:
        return all(_NUMERIC[rule.operator](int(found), int(asked)) for asked in rule.values)
    except ValueError:
        return False


def agree(demand: Demand, host: Host, cards: Sequence[Card]) -> bool:
    """Returns whether cards of a host, one for each device so far, are alike and apart as a demand asks."""
    for key in (*demand.alike, *demand.apart):
        found = [card.facts.get(key, host.facts.get(key)) for card in cards]
        kinds = len(set(found))
        if None in found or kinds != (1 if key in demand.alike else len(found)):
            return False
    return True


def uncheckable(problem: Problem, demand: Demand) -> Rule | None:
    """Returns the first hard rule of a demand on a fact that nothing in the problem has, or None."""
    known = {key for host in problem.hosts for key in host.facts}
    known |= {key for host in problem.hosts for card in host.cards for key in card.facts}
    return next((rule for rule in demand.rules if rule.hard and rule.key not in known), None)
