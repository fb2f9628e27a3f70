"""`bring`: tables go to where units are free, by hand on the regions of geo_small."""

from __future__ import annotations

import pytest

from clustergym import policies
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.geo_small import A100, demands, random_workload, small_topology


def finished(word, rows, when, seconds):
    """When each of `rows` (geo_small.demands) ends, and the bytes moved."""
    asked = demands(rows)
    simulator = Simulator(small_topology())
    simulator.reset(Workload.from_arrays("by hand", when, asked.units, seconds).with_geo(asked), 0)
    simulator.run(policies.make(word))
    return simulator.jobs()["finish_s"].tolist(), simulator.metrics()["bytes_moved"]


def test_a_workload_that_waits_gets_its_table_where_units_are_free():
    """East is full until 6000 s. `clicks`, 100 GB, come west over 1 GB/s from 68 s, a pass, to 168; 170 is the next."""
    rows = [([(A100, 32)], [0], 3, 0, 0.0), ([(A100, 16)], [0], 3, 1, 0.0), ([(A100, 16)], [0], 3, 1, 0.0)]
    when, seconds = [0.0, 0.0, 60.0], [6000.0, 6000.0, 5000.0]
    ends, moved = finished("bring:scheduler=mast,slow=none", rows, when, seconds)
    assert ends == [6000.0, 6000.0, 170.0 + 5000.0] and moved == 1e11
    ends, moved = finished("mast:slow=none", rows, when, seconds)
    assert ends[2] == 11_018.0 and moved == 0.0  # 6,000 s, and 18 s to the next pass


def test_what_is_on_the_way_is_waited_for_and_nothing_is_brought_where_no_units_are_free():
    """Three more of 16 A100 read `clicks`: they come west from 68 to 168 s, while the others ask for nothing more.

    At 170 s one starts there, and the next has them brought south, by 270 s; it starts at 272. The third finds no
    free units anywhere, and waits for one of the others.
    """
    rows = [([(A100, 32)], [0], 3, 0, 0.0), *[([(A100, 16)], [0], 3, 1, 0.0)] * 4]
    ends, moved = finished("bring:scheduler=mast,slow=none", rows, [0.0, 0.0, 60.0, 60.0, 60.0], [3000.0] * 5)
    assert moved == 2e11 and sorted(ends)[:2] == [3000.0, 3000.0]
    assert sorted(ends)[2:4] == [3170.0, 3272.0]


def test_units_stay_promised_while_tables_are_on_the_way():
    """`clicks`, 100 GB, come west for one of 16 A100 from 68 to 168 s; of the 16 A100 there none are left at 102.

    So `users`, 200 GB, come south for the next one, until 302 s, and it starts at 306, the next pass.
    """
    rows = [([(A100, 32)], [0], 3, 0, 0.0), *[([(A100, 16)], [table], 3, 1, 0.0) for table in (0, 0, 1)]]
    ends, moved = finished("bring:scheduler=mast,slow=none", rows, [0.0, 0.0, 60.0, 90.0], [6000.0] * 4)
    assert ends == [6000.0, 6000.0, 6170.0, 6306.0] and moved == 3e11


def test_it_plays_to_the_end_over_any_scheduler():
    workload = random_workload(5, jobs=40)
    for word in ("bring", "bring:scheduler=federated,slow=static", "bring:scheduler=random-start"):
        simulator = Simulator(small_topology(), tables_every_s=900.0)
        simulator.reset(workload, 0)
        simulator.run(policies.make(word))
        assert simulator.metrics()["jobs_finished"] == 40


def test_a_scheduler_of_no_regions_is_refused():
    with pytest.raises(InputError, match="expected one for regions"):
        policies.make("bring:scheduler=las")
