"""`everywhere`: a scheduler with every table in every region, free: by hand, and what holds for every run."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies import make
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_small import A100, random_workload

SMALL = {"topology": "mast:regions=4,gpus=256", "workload": "mast-like:jobs=30,days=0.3,tables=12"}
CLICKS, LOGS = 0, 3  # tables of the east and of the west


def workload_of(rows, **changes):
    asked = geo_small.demands(rows, quota=np.array([[999, 99]]), **changes)
    times = np.zeros(len(rows)), np.full(len(rows), 1000.0)
    return Workload.from_arrays("by hand", times[0], asked.units, times[1]).with_geo(asked)


def finished(word, workload, **options):
    simulator, policy = Simulator(geo_small.small_topology(), **options), make(word)
    simulator.reset(policy.workload_for(workload))
    metrics = simulator.run(policy.decider(simulator))
    return simulator.jobs()["first_start_s"], metrics


def test_a_workload_starts_at_once_where_others_wait_for_its_table():
    """It needs 32 A100 in one part, which the east alone has, and 0.4 TB from the west, that take 400 s."""
    workload = workload_of([([(A100, 32)], [LOGS], 3, 0, 0.0)])
    starts, _ = finished("mast:slow=none,scan_s=0", workload)
    assert starts[0] == 400.0
    starts, metrics = finished("everywhere", workload)
    assert starts[0] == 0.0
    assert metrics["bytes_moved"] == 0.0 and metrics["data_wait_rate"] == 0.0


def test_copies_are_as_fresh_as_the_home_and_take_no_storage():
    """Fresh logs are in the west alone; all tables together are more than west and south store each."""
    rows = [([(A100, 32)], [CLICKS, LOGS], 0, 0, 0.0)]
    workload = workload_of(rows, fresh=np.ones(1, bool))
    tables = workload.geo.tables
    assert (geo_small.small_world().storage_bytes < tables.size_bytes.sum()).sum() == 2
    assert finished("everywhere:scheduler=srtf", workload)[0][0] == 0.0
    spread = make("everywhere").workload_for(workload).geo
    assert spread.tables.copies.all() and not spread.fresh.any()
    assert np.array_equal(spread.tables.home, tables.home)


@pytest.mark.parametrize("scheduler", ["mast", "greedy", "federated"])
def test_where_nothing_is_read_it_is_the_scheduler(scheduler):
    workload = random_workload(3, jobs=40)
    reads = np.zeros(len(workload) + 1, np.int64)
    bare = workload.with_geo(replace(workload.geo, first=reads, table=reads[:0]))
    starts, metrics = finished(f"everywhere:scheduler={scheduler}", bare)
    others, expected = finished(f"{scheduler}:slow=none", bare)
    assert np.array_equal(starts, others) and metrics["jct_mean"] == expected["jct_mean"]


def test_it_is_played_beside_others_and_no_copy_is_made():
    setting = Setting.of("clustergym/Geo-v0", SMALL["topology"], SMALL["workload"], "none")
    bound, mast = (play(setting, word, 1) for word in ("everywhere:scheduler=mast", "mast"))
    assert bound.jobs == mast.jobs and bound.metrics["bytes_moved"] == 0.0 < mast.metrics["bytes_moved"]
    assert bound.metrics["home_start_rate"] < 1.0


def test_it_is_a_reference_of_rewards_and_no_player_of_an_environment():
    env = gymnasium.make("clustergym/Geo-v0", reference="everywhere", **SMALL).unwrapped
    env.reset(seed=1)
    with pytest.raises(InputError, match="a bound, for which every table lies in every region"):
        env.act_of(make("everywhere"))
    total, ended, mast = 0.0, False, make("mast")
    while not ended:
        _, reward, terminated, truncated, info = env.step(env.act_of(mast))
        total, ended = total + reward, terminated or truncated
    jobs = open_workload(SMALL["workload"], seed=1)
    setting = Setting.of("clustergym/Geo-v0", SMALL["topology"], jobs, "none")
    bound = play(setting, "everywhere", 1).metrics["jct_mean"]
    assert (total < 0.0) == (info["metrics"]["jct_mean"] > bound)


def test_what_it_cannot_play_is_one_sentence():
    with pytest.raises(InputError, match="policy everywhere: scheduler=las: expected one for regions"):
        make("everywhere:scheduler=las")
    with pytest.raises(InputError, match="has no tables that could lie everywhere"):
        make("everywhere").workload_for(open_workload("poisson:jobs=3"))
