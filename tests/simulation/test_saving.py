"""What a search leaves out to save time changes nothing of what it sees."""

import gc

from tests.simulation.graphs import chain
from videoflow.simulation import PlannedFault, Schedule, explore
from videoflow.simulation._run import SimulatedRun


def test_a_run_to_the_first_death_ends_in_the_step_in_which_the_whole_run_has_it() -> None:
    simulation = chain()
    schedule = Schedule(5, (PlannedFault("saver-0", "commit.after", "crash"),))
    whole = SimulatedRun(simulation.subject, schedule, telling=True).go()
    short = SimulatedRun(simulation.subject, schedule, to_first_death=True).go()
    [death] = [event.step for event in whole.story if event.what == "dies"]
    assert short.first_death == whole.first_death == short.step == death < whole.step


def test_a_run_in_which_nobody_dies_has_no_first_death() -> None:
    run = SimulatedRun(chain().subject, Schedule(5), to_first_death=True).go()
    assert run.first_death == 0
    assert all(station.done for station in run.stations)


def test_sources_that_made_all_their_items_need_no_run_of_their_own_to_compare_with() -> None:
    simulation = chain(4)
    assert simulation.reference((("source", 4),)) is simulation.reference(None)
    assert simulation.reference((("source", 3),)) is not simulation.reference(None)


def test_a_search_leaves_the_collector_as_it_found_it() -> None:
    explore(3, seed=2)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
