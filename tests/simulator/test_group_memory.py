"""Memory of a group: spilling, garbage collection, disks and the climb."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clustergym.experiments.reproduce.harmony.harmony_reload import fit_gc_slope, reload_jobs, reload_table
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.groups.group_memory import GC_SLOPE, MemoryTerms, balanced, memory_dtype
from clustergym.simulator.groups.kernels.memory_kernels import find_memory_balance
from clustergym.simulator.workloads.trace_statistics import HARMONY_GB

GB = 1e9
# One machine of 100 GB that reads 1 GB a second; bytes are not expanded.
ROUND_NUMBERS = MemoryTerms(ram_bytes=100 * GB, expansion=1.0, gc_threshold=0.7, gc_slope=1.0, disk_bandwidth=GB)


def one(comp_s=8.0, comm_s=10.0, input_gb=100.0, model_gb=0.0, asked=-1.0, **terms):
    """A job alone on one machine."""
    terms = replace(ROUND_NUMBERS, **terms)
    return balanced([comp_s], [comm_s], [input_gb * GB], [model_gb * GB], 1, [asked], terms)


def random_group(seed, terms=None):
    """Arguments of `balanced`: 1 to 8 jobs on 1 to 16 machines, some with an asked ratio, memory tight or not."""
    rng = np.random.default_rng(seed)
    jobs, machines = int(rng.integers(1, 9)), int(rng.integers(1, 17))
    input_bytes, model_bytes = rng.exponential(1, jobs), rng.exponential(0.3, jobs)
    full = rng.uniform(0.3, 3) * machines * 32 * GB / (input_bytes.sum() + model_bytes.sum())
    comp, comm = rng.uniform(1, 30, jobs) * machines, rng.uniform(1, 30, jobs)
    asked = np.where(rng.random(jobs) < 0.25, rng.choice([0.0, 0.3, 1.0], jobs), -1.0)
    return comp, comm, full * input_bytes, full * model_bytes, machines, asked, terms or MemoryTerms()


def round_of(group, alpha, model_spill):
    """Occupancy, seconds of a round and bytes on disk, written a second time: Eq. (1), collector, disk."""
    comp, comm, inputs, models, machines, _, terms = group
    occupancy = terms.expansion * ((1 - alpha) @ inputs + (1 - model_spill) @ models) / (machines * terms.ram_bytes)
    gc = 1.0
    if occupancy > terms.gc_threshold and terms.gc_slope > 0:
        gc = 1 + terms.gc_slope * (occupancy - terms.gc_threshold) / (1 - occupancy) if occupancy < 1 else 50.0
    gc = min(gc, 50.0)
    disk_s = (terms.pass_fraction * alpha * inputs + 2 * model_spill * models) / (machines * terms.disk_bandwidth)
    comp_s = gc * comp / machines
    parts = comp_s.sum(), comm.sum(), (comp_s + comm).max(), disk_s.sum()
    return occupancy, max(parts), alpha @ inputs + model_spill @ models


def test_the_eight_jobs_of_table_i_on_32_machines():
    """Hand case 7 of the review: 608.5 GB of input over 4 GB/s and 689.7 GB over 1,024 GB.

    .1 x 608.5 / 4 = 15.2 s, at .2 30.4, at .3 45.6, at .34 51.7; raw occupancy 689.7 / 1,024 = .674 and, at .3,
    (.7 x 608.5 + 81.2) / 1,024 = .495.
    """
    jobs = reload_jobs()
    columns = (jobs.comp_machine_s, jobs.comm_s, jobs.input_bytes, jobs.model_bytes)
    raw = MemoryTerms(expansion=1.0)
    by_alpha = {a: balanced(*columns, 32, np.full(8, a), raw) for a in (0.0, 0.1, 0.2, 0.3, 0.34)}
    assert [round(found.disk_s.sum(), 1) for found in by_alpha.values()] == [0.0, 15.2, 30.4, 45.6, 51.7]
    assert (round(by_alpha[0.0].occupancy, 3), round(by_alpha[0.3].occupancy, 3)) == (0.674, 0.495)
    # Eq. (1) is sum of COMM 73.8 s (COMP: 1.05 x 73.8 / 2 = 38.8, the longest job 21.8 + 11.5): the disk is longer
    # from alpha .5 on
    assert by_alpha[0.34].round_s == pytest.approx(81.2 / 1.1)
    assert balanced(*columns, 32, np.full(8, 0.6), raw).round_s == pytest.approx(0.6 * 608.5 / 4)


def test_the_collector_s_curve():
    """At occupancy .7 a factor of 1; at .8, slope 1: 1 + .1/.2 = 1.5; .9: 1 + .2/.1 = 3; full: 50 at most."""
    found = [one(asked=asked).gc for asked in (0.3, 0.2, 0.1, 0.0)]
    assert found == pytest.approx([1.0, 1.5, 3.0, 50.0])
    assert one(asked=0.0, gc_slope=0.0).gc == 1.0


def test_the_climb_ends_where_disk_and_collector_meet():
    """COMP 8, COMM 10: alpha .3 is disk 30; .25 disk 25; .2 gc 1.5: 8 x 1.5 + 10 = 22; .15 gc 2: 26. So .2."""
    found = one()
    assert (found.alpha[0], found.round_s) == (0.2, pytest.approx(22))
    # slope 10: .25 has gc 1 + 10 x .05/.25 = 3: 34 s, .3 30 s
    assert (one(gc_slope=10.0).alpha[0], one(gc_slope=10.0).round_s) == (0.3, 30.0)


def test_nothing_is_spilled_without_pressure():
    """60 GB of 100 are below the threshold; the same where a long COMM hides the disk."""
    assert one(input_gb=60.0).alpha[0] == 0.0
    assert one(input_gb=60.0, comm_s=1000.0).alpha[0] == 0.0


def test_a_collector_that_comm_hides_costs_nothing():
    """Two jobs, COMM 50 each: with COMP 1 each even gc 50 is only 51 a job, 100 a round: all stays in memory."""
    found = balanced([1, 1], [50, 50], [49 * GB, 49 * GB], [0, 0], 1, None, ROUND_NUMBERS)
    assert (list(found.alpha), found.round_s) == ([0.0, 0.0], 100.0)


def test_a_model_is_spilled_when_the_input_is_not_enough():
    """Input 10, model 200 of 100 GB, no collector: half the model goes, read and written: 10 + 2 x 100 = 210 s."""
    found = one(input_gb=10.0, model_gb=200.0, gc_slope=0.0)
    assert (found.alpha[0], found.model_spill[0]) == (1.0, 0.5)
    assert (found.round_s, found.occupancy, found.out_of_memory) == (210.0, 1.0, False)


def test_no_model_is_spilled_while_input_is_in_memory():
    for seed in range(200):
        group = random_group(seed)
        found = balanced(*group)
        if found.model_spill.any():
            assert (found.alpha[group[5] < 0] == 1).all() and (found.alpha[found.model_spill > 0] == 1).all()


def test_asked_ratios_are_kept_and_can_be_too_low():
    """150 GB with .4 asked leave 90 of 100; with .2 asked 120 do not fit, and nothing else may go."""
    assert (one(input_gb=150.0, asked=0.4).alpha[0], one(input_gb=150.0, asked=0.4).out_of_memory) == (0.4, False)
    assert one(input_gb=150.0, asked=0.2).out_of_memory
    for seed in range(100):
        group = random_group(seed)
        asked = group[5]
        assert (balanced(*group).alpha[asked >= 0] == asked[asked >= 0]).all()


def test_a_job_that_asks_is_helped_by_one_that_climbs():
    """80 GB asked to stay and 80 that climb, of 100: the second one keeps at most 20."""
    found = balanced([1, 1], [1, 1], [80 * GB, 80 * GB], [0, 0], 1, [0.0, -1.0], ROUND_NUMBERS)
    assert found.alpha[0] == 0.0 and found.alpha[1] >= 0.75 and not found.out_of_memory


def test_a_group_s_memory_is_of_its_own_members():
    """Two groups in one record; the second one settles, nothing of the first one is written."""
    s = np.zeros(1, memory_dtype(3, groups=2)).view(np.recarray)[0]
    s["first_member"], s["next_member"], s["group_machines"] = [0, 2], [1, -1, -1], [1, 1]
    s["comp_machine_s"], s["comm_s"], s["input_bytes"], s["alpha_asked"] = 8.0, 10.0, 100 * GB, -1.0
    for name in ("ram_bytes", "expansion", "gc_threshold", "gc_slope", "disk_bandwidth", "pass_fraction", "spills"):
        s[name] = getattr(ROUND_NUMBERS, name)
    assert find_memory_balance(s, 1) == 0
    assert list(s["alpha"]) == [0.0, 0.0, 0.2] and list(s["disk_s"]) == [0.0, 0.0, 20.0]
    assert list(s["group_gc"]) == [0.0, pytest.approx(1.5)] and s["group_occupancy"][0] == 0.0
    s["first_member"] = [0, -1]
    assert find_memory_balance(s, 1) == 0 and list(s["group_gc"]) == [0.0, 1.0] and s["group_occupancy"][1] == 0.0


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_bytes_are_conserved(seed):
    """What is kept, from the occupancy, and what is spilled are all bytes; loads are what passes the disk."""
    group = random_group(seed)
    _, _, inputs, models, machines, _, terms = group
    found = balanced(*group)
    assert ((found.alpha >= 0) & (found.alpha <= 1) & (found.model_spill >= 0) & (found.model_spill <= 1)).all()
    kept = found.occupancy * machines * terms.ram_bytes / terms.expansion
    spilled = found.alpha @ inputs + found.model_spill @ models
    assert kept + spilled == pytest.approx(inputs.sum() + models.sum())
    passed = found.alpha * inputs + 2 * found.model_spill * models
    assert found.disk_s * machines * terms.disk_bandwidth == pytest.approx(passed)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_without_spills_all_stays_and_more_than_fits_is_out_of_memory(seed):
    group = random_group(seed, MemoryTerms(spills=False))
    found = balanced(*group)
    zeros = np.zeros(len(found.alpha))
    assert not found.alpha.any() and not found.model_spill.any() and not found.disk_s.any()
    occupancy = round_of(group, zeros, zeros)[0]
    assert found.occupancy == pytest.approx(occupancy) and found.out_of_memory == (occupancy > 1)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_jobs_that_climb_are_never_out_of_memory(seed):
    group = random_group(seed)
    assume((group[5] < 0).all())
    assert not balanced(*group).out_of_memory


def neighbours(group, alpha, model_spill):
    """All ratios that one step of one job leads to: inputs while no model is out, models when all input is."""
    climbs = group[5] < 0
    for job in range(len(alpha)):
        for way in (-0.05, 0.05):
            if climbs[job] and -1e-9 < alpha[job] + way < 1 + 1e-9 and (way > 0 or not model_spill.any()):
                moved = alpha.copy()
                moved[job] = round(alpha[job] + way, 2)
                yield moved, model_spill
            ready = way < 0 or (alpha[climbs] == 1).all()
            if alpha[job] == 1 and ready and -1e-9 < model_spill[job] + way < 1 + 1e-9:
                moved = model_spill.copy()
                moved[job] = round(model_spill[job] + way, 2)
                yield alpha, moved


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**6))
def test_the_climb_ends_where_no_step_helps(seed):
    group = random_group(seed)
    found = balanced(*group)
    occupancy, long_s, spilled = round_of(group, found.alpha, found.model_spill)
    assert found.round_s == pytest.approx(long_s) and found.occupancy == pytest.approx(occupancy)
    for alpha, model_spill in neighbours(group, found.alpha, found.model_spill):
        next_occupancy, next_s, next_spilled = round_of(group, alpha, model_spill)
        if next_occupancy <= max(1.0, occupancy):
            assert next_s > long_s * (1 - 1e-9)
            assert next_s > long_s * (1 + 1e-9) or next_spilled >= spilled or occupancy > 1 - 1e-9


BETTER = {
    "more RAM": lambda terms, by: replace(terms, ram_bytes=terms.ram_bytes * by),
    "faster disks": lambda terms, by: replace(terms, disk_bandwidth=terms.disk_bandwidth * by),
    "less to collect": lambda terms, by: replace(terms, gc_slope=terms.gc_slope / by),
}


@pytest.mark.parametrize("better", BETTER)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), by=st.floats(1, 3))
def test_what_is_better_never_hurts_under_asked_ratios(better, seed, by):
    *group, asked, terms = random_group(seed)
    asked = np.abs(asked)  # those that climb are asked for all
    before, after = (balanced(*group, asked, t) for t in (terms, BETTER[better](terms, by)))
    assert after.round_s <= before.round_s * (1 + 1e-12)


@pytest.mark.parametrize("better", BETTER)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), by=st.floats(1, 3))
def test_what_is_better_hurts_the_climb_by_less_than_a_step(better, seed, by):
    """A climb of steps ends within one step's load of the best real ratios, and those never lose."""
    comp, comm, inputs, models, machines, asked, terms = random_group(seed)
    climbing = np.full(len(asked), -1.0)
    rest = (comp, comm, inputs, models, machines, climbing)
    before, after = (balanced(*rest, t) for t in (terms, BETTER[better](terms, by)))
    step_s = 0.05 * max(inputs.max(), 2 * models.max()) / (machines * terms.disk_bandwidth)
    assert after.round_s <= before.round_s * (1 + 1e-12) + step_s


def test_52_9_s_at_alpha_3_is_what_the_collector_is_fitted_on():
    """The best alpha is .3. Group one: 44.7 s (24/1.1 x 2.05, occupancy .63); two: 61.1 s (.716, COMP 40.2 x 1.52)."""
    table = reload_table()
    assert fit_gc_slope() == pytest.approx(GC_SLOPE, abs=0.01)
    assert table.best == (0.3, pytest.approx(52.9, abs=0.02))
    assert table.fixed_slowest_s[3] == pytest.approx(2 * 52.9 - 24 / 1.1 * 2.05, abs=0.03)


def test_climbing_beats_the_best_fixed_alpha():
    """Judged, not fitted: published 44.3 s, which no group of the assumed jobs can beat by more than Eq. (1), 44.7."""
    table = reload_table()
    assert 44.7 < table.dynamic_s < 48 < table.best[1]
    assert len(set(table.dynamic_alpha)) > 1


def test_half_and_twice_the_slope():
    half, twice = (reload_table(MemoryTerms(gc_slope=by * GC_SLOPE)) for by in (0.5, 2.0))
    assert half.best == (0.3, pytest.approx(47.7, abs=0.1)) and twice.best == (0.4, pytest.approx(60.8, abs=0.1))
    assert half.dynamic_s < reload_table().dynamic_s < twice.dynamic_s < 49


def test_52_9_s_cannot_be_where_memory_is_spread_evenly():
    """With all eight jobs' bytes over 32 machines occupancy is .674: no collector; and so with expansion 1.3."""
    jobs = reload_jobs()
    found = balanced(
        jobs.comp_machine_s, jobs.comm_s, jobs.input_bytes, jobs.model_bytes, 32, np.full(8, 0.3), MemoryTerms()
    )
    assert found.occupancy == pytest.approx(0.674, abs=5e-4) and found.gc == 1.0
    with pytest.raises(InputError, match="cannot be met"):
        fit_gc_slope(terms=MemoryTerms(expansion=1.3))


def test_the_eight_jobs_are_in_two_groups_of_four():
    names = list(HARMONY_GB)
    groups = [{names[job] for job in group} for group in reload_jobs().groups]
    assert [len(group) for group in groups] == [4, 4]
    assert {"nmf-netflix64x", "lda-pubmed"} < groups[0] and {"nmf-netflix128x", "lda-nytimes"} < groups[1]
    assert all(sum(name.endswith("synthetic155") for name in group) == 1 for group in groups)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([], [], [], [], 4), "a group of 0 jobs on 4 machines"),
        (([1], [1], [1], [1], 0), "a group of 1 jobs on 0 machines"),
        (([1], [1, 2], [1], [1], 4), "comm_s has 2 values; one for each of 1 jobs"),
        (([1], [1], [-1], [1], 4), "input_bytes has -1"),
        (([1], [1], [1], [1], 4, [1.5]), "a share of 1.5 is asked for"),
    ],
)
def test_bad_groups(arguments, says):
    with pytest.raises(InputError, match=says):
        balanced(*arguments)


@pytest.mark.parametrize(
    "field", [{"ram_bytes": 0}, {"expansion": -1}, {"gc_slope": -1}, {"gc_threshold": 1.2}, {"disk_bandwidth": 0}]
)
def test_bad_terms(field):
    with pytest.raises(InputError, match=f"{next(iter(field))} is"):
        MemoryTerms(**field)


FINGERPRINT = """
import json, sys
from clustergym.tests.simulator.test_group_memory import random_group, balanced
found = [balanced(*random_group(seed)) for seed in range(60)]
print(json.dumps([[list(f.alpha), list(f.model_spill), list(f.disk_s), f.occupancy, f.gc, f.round_s] for f in found]))
"""


def test_the_same_without_compiling():
    run = subprocess.run(
        [sys.executable, "-P", "-c", FINGERPRINT],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [balanced(*random_group(seed)) for seed in range(60)]
    ours = [[list(f.alpha), list(f.model_spill), list(f.disk_s), f.occupancy, f.gc, f.round_s] for f in found]
    assert json.loads(run.stdout) == json.loads(json.dumps(ours))
