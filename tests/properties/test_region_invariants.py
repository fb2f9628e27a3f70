"""What holds after every decision and event in regions, on random workloads, decisions and outages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clustergym.tests.support.drawn import calm
from clustergym.tests.support.geo_player import Anything, check_regions, random_run


@calm(15)
@given(seed=st.integers(0, 10_000))
def test_units_parts_tables_and_links_are_sound_at_any_time(seed):
    """Among the rest: no table is ever without a complete copy, whatever fails while its home moves.

    Jobs that need fresh data, which most seeds have, start at home only; a replica that is to be whole is so, or what
    it lacks is on its way.
    """
    simulator = random_run(seed)
    check_regions(simulator)
    player = Anything(seed, check_regions)
    player.play(simulator)
    assert simulator.done and {"Start", "Move"} <= player.made.keys()


@calm(10)
@given(seed=st.integers(0, 10_000))
def test_refusals_leave_the_record_as_it_was_and_runs_repeat(seed):
    """`Anything` compares the whole record around every decision that is refused."""
    ends = []
    for _ in range(2):
        simulator = random_run(seed, jobs=15)
        Anything(seed).play(simulator)
        ends.append(simulator.records.tobytes())
    assert ends[0] == ends[1]
