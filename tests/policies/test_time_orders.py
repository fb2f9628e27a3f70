"""`sjf`, `srtf`, `srsf` and `greedy` in regions, and starts drawn at random: by hand, and what holds for every run."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.playing.evaluation import play as run_of
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies import make
from clustergym.simulator.base.decisions import Preempt, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.semantics import load_semantics
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.env_terms import differences
from clustergym.tests.support.geo_small import A100, V100, random_workload

GEO = "clustergym/Geo-v0"
TIMED = ("sjf", "srtf", "srsf", "greedy")


def workload_of(rows, arrival_s=None, duration_s=None, quota=((999, 99),)):
    geo = geo_small.demands(rows, quota=np.array(quota))
    arrival_s = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s)
    duration_s = np.full(len(rows), 1000.0) if duration_s is None else np.array(duration_s)
    return Workload.from_arrays("by hand", arrival_s, geo.units, duration_s).with_geo(geo)


def play(word, workload, seed=0):
    """All decisions with their times, and the metrics."""
    simulator, policy, log = Simulator(geo_small.small_topology()), make(word), []
    simulator.reset(workload, seed)
    while not simulator.ended:
        while type(decision := simulator.ask(policy)).__name__ != "Advance":
            log.append((float(simulator.state.now_s), decision))
            simulator.apply(decision)
        simulator.advance()
    return log, simulator.metrics()


def told(word, rows, arrival_s=None, duration_s=None):
    """Starts and stops, in order: ("start", job, seconds)."""
    workload = workload_of(rows, arrival_s, duration_s)
    log, _ = play(f"{word}{',' if ':' in word else ':'}scan_s=0,slow=none", workload)
    return [(type(one).__name__.lower(), one.job, time_s) for time_s, one in log if isinstance(one, Start | Preempt)]


def west(units, level=3):
    """All V100 are in the west, 32 of them."""
    return ([(V100, units)], [], level, 0, 0.0)


def test_the_shortest_comes_first_whatever_its_level_and_within_levels_after_the_higher_one():
    rows, times = [west(32, 0), west(32, 6), west(32, 6)], [900.0, 300.0, 100.0]
    for word in TIMED:
        assert [job for what, job, _ in told(word, rows, duration_s=times) if what == "start"] == [2, 1, 0]
        assert told(f"{word}:levels=on", rows, duration_s=times)[0] == ("start", 0, 0.0)


def test_a_job_with_more_time_left_times_gpus_is_stopped_and_no_other():
    """Job 0 has 8 x 990 s left when job 1 (32 x 100 s) comes, which is more; then job 2 of 32 x 300 s waits."""
    rows, times = [west(8), west(32), west(32)], [1000.0, 100.0, 300.0]
    found = told("srtf", rows, [0.0, 10.0, 20.0], times)
    assert found[:3] == [("start", 0, 0.0), ("preempt", 0, 10.0), ("start", 1, 10.0)]
    assert all(what == "start" for what, _, _ in found[3:])
    assert ("preempt", 0, 10.0) not in told("srtf", [west(2), *rows[1:]], [0.0, 10.0, 20.0], times)
    assert all(what == "start" for what, *_ in told("srtf:preempts=off", rows, [0.0, 10.0, 20.0], times))
    assert all(what == "start" for what, *_ in told("sjf", rows, [0.0, 10.0, 20.0], times))


def test_within_levels_no_job_of_a_higher_level_is_stopped_and_any_of_a_lower_one():
    times, at = [1000.0, 100.0], [0.0, 10.0]
    for own, other, word, stops in (
        (0, 6, "srtf:levels=on", False),
        (6, 0, "srtf:levels=on", True),
        (3, 3, "srtf:levels=on", True),
        (3, 3, "srtf:levels=on,preempts=lower", False),
        (6, 3, "srtf:preempts=lower", True),
        (0, 6, "srtf", True),
    ):
        found = told(word, [west(32, own), west(32, other)], at, times)
        assert (("preempt", 0, 10.0) in found) == stops, (own, other, word)


def test_the_one_with_most_left_goes_where_several_would_do():
    """Two of 16 GPUs fill the west; 16 are needed: the longer one goes, though the other has run as long."""
    found = told("srtf", [west(16), west(16), west(16)], [0.0, 0.0, 50.0], [400.0, 4000.0, 100.0])
    assert [one for one in found if one[0] == "preempt"] == [("preempt", 1, 50.0)]


def test_parameters_are_of_the_place_where_they_count():
    with pytest.raises(InputError, match="levels is a parameter in regions; on GPUs expected head, "):
        make("srtf:levels=on").rule_under(load_semantics("events"))
    with pytest.raises(InputError, match="head is a parameter on GPUs; in regions expected levels, "):
        play("srtf:head=strict", workload_of([([(A100, 8)], [], 3, 0, 0.0)]))
    with pytest.raises(InputError, match="preempts"):
        play("srtf:preempts=all", workload_of([([(A100, 8)], [], 3, 0, 0.0)]))
    assert make("srtf").knows_run_times and make("sjf").knows_run_times


def test_parameters_of_regions_are_played_by_words_too():
    """A run of `evaluate` knows the environment, and so where the word is for."""
    setting = Setting.of(GEO, "mast:regions=4,gpus=256", "mast-like:jobs=200,days=0.3,tables=30", "none")
    found = {word: run_of(setting, word, 1) for word in ("greedy", "greedy:preempts=off", "greedy:slow=none")}
    assert found["greedy"].metrics["preemptions"] > 0.0 == found["greedy:preempts=off"].metrics["preemptions"]
    assert found["greedy:preempts=off"].knows_run_times == "yes"
    moved = [found[word].metrics["bytes_moved"] for word in ("greedy:slow=none", "greedy")]
    assert moved[0] < moved[1]
    with pytest.raises(InputError, match="head is a parameter on GPUs"):
        run_of(setting, "srtf:head=strict", 1)


def test_random_starts_fill_what_there_is_and_repeat():
    rows = [([(A100, 16)], [], 3, 0, 0.0) for _ in range(8)]
    word = "random-start:scan_s=0,slow=none"
    (log, metrics), (again, _), (other, _) = (play(word, workload_of(rows), seed) for seed in (0, 0, 1))
    assert log == again != other and metrics["jobs_finished"] == 8.0
    assert sum(time_s == 0.0 for time_s, _ in log) == 5  # 48, 16 and 16 A100


def test_a_random_start_may_stop_a_lower_priority_and_none_that_started_at_the_same_instant():
    low, high = ([(V100, 32)], [], 6, 0, 0.0), ([(V100, 32)], [], 0, 0, 0.0)
    workload = workload_of([low, high, high], [0.0, 50.0, 50.0])
    log, _ = play("random-start:scan_s=0,slow=none", workload)
    assert [type(one).__name__ for _, one in log[:3]] == ["Start", "Preempt", "Start"] and log[1][1] == Preempt(0)
    assert [time_s for time_s, one in log if isinstance(one, Start)][2] >= 1050.0


@pytest.mark.parametrize("word", [*TIMED, "srtf:levels=on", "random-start"])
def test_they_play_in_the_environment_as_outside(word):
    assert differences(GEO, partial(policies.make, word), workload=random_workload(15, jobs=40))[0] == []
