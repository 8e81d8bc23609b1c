"""What the hosts are like when an answer has been carried out."""

from videoflow.placement._answer import Answer, Assignment
from videoflow.placement._board import Board, Need, Seat
from videoflow.placement._options import units


def replayed(board: Board, answer: Answer) -> tuple[Seat, ...]:
    """Returns the states after everything that an answer admits has been placed."""
    states = list(board.start)
    numbers = {host.name: number for number, host in enumerate(board.problem.hosts)}
    for need in board.needs:
        placed = answer.assignments.get(need.demand.key)
        if placed is not None:
            number = numbers[placed.host]
            states[number] = _placed(board, need, placed, number, states[number])
    return tuple(states)


def _placed(board: Board, need: Need, placed: Assignment, number: int, seat: Seat) -> Seat:
    cards = list(seat.cards)
    offsets = {card.key: offset for offset, card in enumerate(board.problem.hosts[number].cards)}
    for device in placed.devices:
        offset = offsets[device.card]
        wanted = (device.profile or "", device.start or 0)
        ways = units(board, need, board.first[number] + offset, cards[offset])
        cards[offset] = next(unit.state for unit in ways if (unit.profile, unit.start) == wanted)
    demand = need.demand
    return Seat(
        tuple(cards), seat.millicores + demand.millicores, seat.memory_bytes + demand.host_memory_bytes
    )
