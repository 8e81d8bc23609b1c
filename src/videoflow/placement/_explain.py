"""Why each demand went where it went: for each host the first test that fails, needed against free."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from videoflow.placement._answer import Answer
from videoflow.placement._board import CUT, FREE, KINDS_OF_SHARING, SHARED, Board, Need, Seat
from videoflow.placement._geometry import most_slices
from videoflow.placement._options import fits_on
from videoflow.placement._problem import Demand, Host, Kind, Problem
from videoflow.placement._replay import replayed
from videoflow.placement._rules import fulfils, uncheckable

GIB = 1 << 30


@dataclass(frozen=True)
class Verdict:
    """The first test that a host fails for a demand.

    Attributes:
        host: Its name.
        test: `excluded`, `sharing`, `rule KEY`, `devices`, `memory`, `cpu`, `host memory`, `idle`, `room`,
            `peer`, `alike KEY`, `apart KEY`, `place`, or `fits`.
        needed: What the demand needs of what is tested.
        free: What the host has of it.
        unit: `devices`, `bytes`, `millicores`, or empty where both are words.
        beside: Whether it is free only as long as the admitted demands are not there.
    """

    host: str
    test: str
    needed: int | str
    free: int | str
    unit: str
    beside: bool = False


@dataclass(frozen=True)
class Row:
    """One demand: where it goes, or a verdict on each host and what would fit."""

    demand: str
    host: str | None
    devices: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    relaxations: tuple[str, ...]
    proof: str


@dataclass(frozen=True)
class Explanation:
    """What an answer says to people, as text and as JSON."""

    label: str
    gap: tuple[str, int, int] | None
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns it in plain values, for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Returns it as lines."""
        gap = "" if self.gap is None else f" ({self.gap[0]} {self.gap[1]}, bound {self.gap[2]})"
        lines = [f"placement: {self.label}{gap}"]
        for row in self.rows:
            if row.host is not None:
                lines.append(f"  {row.demand}: {row.host} ({', '.join(row.devices)})")
                continue
            lines.append(f"  {row.demand}: refused ({row.proof})")
            lines += [f"    {_line(verdict)}" for verdict in row.verdicts]
            lines += [f"    would fit with {eased}" for eased in row.relaxations]
        return "\n".join(lines)


def _line(verdict: Verdict) -> str:
    needed, free = _shown(verdict.needed, verdict.unit), _shown(verdict.free, verdict.unit)
    beside = ", beside what is admitted" if verdict.beside else ""
    return f"{verdict.host}: {verdict.test}: needs {needed}, free {free}{beside}"


def _shown(value: int | str, unit: str) -> str:
    if unit == "bytes" and isinstance(value, int):
        return f"{value / GIB:.2f} GiB"
    return f"{value} {unit}".strip()


def explain(problem: Problem, answer: Answer) -> Explanation:
    """Returns why each demand was admitted or refused; pure."""
    board = Board(problem)
    states = replayed(board, answer)
    refusals = {refusal.demand: refusal for refusal in answer.refusals}
    needs = {need.demand.key: need for need in board.needs}
    rows = []
    for demand in problem.demands:
        placed = answer.assignments.get(demand.key)
        if placed is not None:
            devices = tuple(
                device.card if device.profile is None else f"{device.card} {device.profile}@{device.start}"
                for device in placed.devices
            )
            rows.append(Row(demand.key, placed.host, devices, (), (), ""))
            continue
        refusal = refusals[demand.key]
        eased = tuple(f"{r.field} {r.fits} instead of {r.asked}" for r in refusal.relaxations)
        proof = (
            str(refusal.certificate.proof) if refusal.proven else "not proven, beside the others as they are"
        )
        verdicts = tuple(_verdict(board, needs[demand.key], n, states) for n in range(len(problem.hosts)))
        rows.append(Row(demand.key, None, (), verdicts, eased, proof))
    return Explanation(str(answer.label), answer.gap, tuple(rows))


def _verdict(board: Board, need: Need, number: int, states: Sequence[Seat]) -> Verdict:
    name = board.problem.hosts[number].name
    alone = _first_failing(board, need, number, board.start[number])
    if alone is not None:
        return Verdict(name, *alone)
    beside = _first_failing(board, need, number, states[number])
    if beside is not None:
        return Verdict(name, *beside, beside=True)
    return Verdict(name, "fits", need.demand.count, need.demand.count, "devices")


_Finding = tuple[str, int | str, int | str, str]


def _first_failing(board: Board, need: Need, number: int, seat: Seat) -> _Finding | None:
    """Returns the first test that fails: its name, needed, free, unit."""
    host = board.problem.hosts[number]
    tests: tuple[Callable[[], _Finding | None], ...] = (
        lambda: _of_host(board, need.demand, host, seat),
        lambda: _of_rules(board.problem, need.demand, host),
        lambda: _of_memory(board, need, number),
        lambda: _of_room(board, need, number, seat),
        lambda: _of_place(board, need, number, seat),
    )
    return next((found for test in tests if (found := test()) is not None), None)


def _of_host(board: Board, demand: Demand, host: Host, seat: Seat) -> _Finding | None:
    if host.excluded:
        return "excluded", "a host that may be used", host.excluded, ""
    if demand.kind not in KINDS_OF_SHARING[host.sharing]:
        return "sharing", str(demand.kind), host.sharing, ""
    cpu = (host.free_millicores or 0) - seat.millicores
    if demand.millicores > cpu:
        return "cpu", demand.millicores, cpu, "millicores"
    memory = (host.free_memory_bytes or 0) - seat.memory_bytes
    if demand.host_memory_bytes > memory:
        return "host memory", demand.host_memory_bytes, memory, "bytes"
    if _least_cards(demand) > len(host.cards):
        return "devices", demand.count, len(host.cards), "devices"
    return None


def _least_cards(demand: Demand) -> int:
    return 1 if demand.kind is Kind.SLICE else demand.count


def _of_rules(problem: Problem, demand: Demand, host: Host) -> _Finding | None:
    rule = uncheckable(problem, demand)
    if rule is not None:
        return f"rule {rule.key}", "a fact that can be checked", "nobody knows it", ""
    left = list(host.cards)
    for rule in demand.rules:
        if rule.hard:
            left = [card for card in left if fulfils(rule, host, card)]
            if len(left) < _least_cards(demand):
                return f"rule {rule.key}", _least_cards(demand), len(left), "devices"
    return None


def _of_memory(board: Board, need: Need, number: int) -> _Finding | None:
    demand, sizes = need.demand, list[int]()
    for spot in board.spots:
        if spot.host != number:
            continue
        if demand.kind is not Kind.SLICE:
            sizes.append(spot.card.memory_bytes or 0)
            continue
        model = spot.card.model if spot.card.managed else None
        made = () if model is None else model.profiles
        found = [idle.usable_bytes for idle in spot.idle if _named(demand, idle.profile)]
        sizes += found + [profile.usable_bytes for profile in made if _named(demand, profile.name)]
    least = sorted(sizes, reverse=True)[: _least_cards(demand)]
    if demand.memory_bytes and (not least or least[-1] < demand.memory_bytes):
        return "memory", demand.memory_bytes, least[-1] if least else 0, "bytes"
    return None


def _named(demand: Demand, profile: str) -> bool:
    return not demand.profiles or profile in demand.profiles


def _of_room(board: Board, need: Need, number: int, seat: Seat) -> _Finding | None:
    demand, first = need.demand, board.first[number]
    here = [(board.spots[first + offset], state) for offset, state in enumerate(seat.cards)]
    if demand.kind is Kind.WHOLE:
        idle = sum(spot.whole and state.mode == FREE for spot, state in here)
        return ("idle", demand.count, idle, "devices") if idle < demand.count else None
    if demand.kind is Kind.SHARE:
        usable = [(spot, state) for spot, state in here if spot.share and state.mode in (FREE, SHARED)]
        if len(usable) < demand.count:
            return "idle", demand.count, len(usable), "devices"
        free = sorted((spot.capacity_bytes - state.used_bytes for spot, state in usable), reverse=True)
        least = free[demand.count - 1]
        return ("room", demand.peak_bytes, least, "bytes") if least < demand.peak_bytes else None
    most = 0
    for spot, state in here:
        if not spot.cut or state.mode not in (FREE, CUT):
            continue
        kept = sum(
            not (state.destroyed >> bit & 1 or idle.mask & state.occupied)
            and idle.usable_bytes >= demand.memory_bytes
            and _named(demand, idle.profile)
            for bit, idle in enumerate(spot.idle)
        )
        made = 0
        if spot.card.managed and spot.card.model is not None and not demand.profiles:
            made = most_slices(spot.card.model, demand.memory_bytes, state.occupied)
        most += max(kept, made)
    return ("room", demand.count, most, "devices") if not demand.profiles and most < demand.count else None


def _of_place(board: Board, need: Need, number: int, seat: Seat) -> _Finding | None:
    demand = need.demand
    if fits_on(board, need, number, seat):
        return None
    if demand.peer:
        return "peer", demand.count, 1, "devices"
    if sets := [f"{word} {key}" for word in ("alike", "apart") for key in getattr(demand, word)]:
        return ", ".join(sets), demand.count, "fewer than that", "devices"
    return "place", demand.count, 0, "devices"
