"""The soak tells growth of memory and latency, and nothing where there is none; at night it runs, shortly."""

import pytest

from benchmarks.holding import SUPERVISOR, Held, slope
from benchmarks.soak import Look, Soaked, document, soak
from videoflow.graph.report import EdgeReport, RunReport, Verdict

MEGABYTE = 1 << 20


def seen(*, leak: int = 0, slower: float = 0.0) -> Soaked:
    """Twelve looks, one a second; what leaks and slows down does so after the third, where it is warm."""
    looks = [
        Look(
            seconds=number,
            rate=100.0,
            p50_us=50.0 + slower * max(0, number - 3),
            p99_us=90.0,
            held=Held(100 * number, {SUPERVISOR: MEGABYTE + leak * max(0, number - 3)}, MEGABYTE, 2, 90, 99),
        )
        for number in range(1, 13)
    ]
    edge = EdgeReport(parent="images", child="inverted", announced=1200, delivered=1200)
    return Soaked(
        looks,
        RunReport(
            run_id="1", flow_id="soak", engine="local", verdict=Verdict.STOPPED, exit_status=0, edges=[edge]
        ),
    )


def growth_of(text: str, what: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {what} |")]
    return line


def test_a_leak_and_a_run_that_slows_down_stand_in_the_result() -> None:
    assert "1200 announced on 1 edges, closed: True" in document(seen(), {}, "")
    flat, grown = document(seen(), {}, ""), document(seen(leak=1000, slower=5.0), {}, "")
    assert "| 0 bytes a second | +0.00% |" in growth_of(flat, "private memory, all processes")
    assert "| 1e+03 bytes a second |" in growth_of(grown, "private memory, all processes")
    assert "| 0 us a second |" in growth_of(flat, "latency p50")
    assert "| 5 us a second |" in growth_of(grown, "latency p50")


def test_what_warms_up_is_not_taken_for_growth() -> None:
    assert [look.seconds for look in seen().settled] == list(range(3, 13))


def test_a_slope_needs_two_places() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="two different places"):
        slope([(1, 2), (1, 3)])


@pytest.mark.nightly
def test_a_soak_runs_until_it_is_stopped_and_its_ledger_closes() -> None:
    told: list[Look] = []
    soaked = soak(2.0, 0.5, told.append)
    assert told == soaked.looks
    assert len(soaked.looks) >= 2
    assert all(look.p99_us >= look.p50_us > 0 for look in soaked.looks)
    assert "closed: True" in document(soaked, {}, "")
