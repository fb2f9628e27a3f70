"""The reference simulator against three public simulators' results, and against tiny cases worked by hand."""

from __future__ import annotations

import csv
import random

import pytest

from clustergym.tests.support.paths import TRACES
from clustergym.tests.support.reference import simulate

# By path: with --import-mode=importlib the folder of the tests is not importable.

EIGHT_BY_EIGHT = [8] * 8

# order, head, placer: (mean JCT s, makespan s, preemptions) of common_160.csv and common_480.csv on 64 GPUs.
# From runs of three public simulators, which agree to every printed digit; gang, no overheads.
PUBLISHED = {
    ("fifo", "strict", "count"): ((2907.456, 37420, 0), (3765.606, 132207, 0)),
    ("fifo", "skip", "count"): ((2706.194, 37420, 0), (3476.775, 132207, 0)),
    ("sjf", "strict", "count"): ((2775.081, 37420, 0), (3449.754, 132207, 0)),
    ("sjf", "skip", "count"): ((2706.194, 37420, 0), (3378.223, 132207, 0)),
    ("srtf", "skip", "count"): ((2733.144, 40395, 62), (3328.529, 143831, 85)),
    ("srsf", "skip", "count"): ((2664.794, 39999, 12), (3314.623, 135225, 36)),
    ("las", "skip", "count"): ((2701.444, 37420, 18), (3380.635, 132271, 82)),
    ("fifo", "strict", "consolidated"): ((3054.981, 37420, 0), (5100.354, 136452, 0)),
    ("sjf", "strict", "consolidated"): ((2860.062, 37420, 0), (3749.644, 137194, 0)),
}


def oracle_jobs(name: str) -> list[tuple[float, int, float]]:
    path = TRACES / "oracle" / name
    if not path.exists():
        pytest.skip(f"the trace {name} is not there (looked in ../shared/traces/oracle)")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [(float(row["submit_time"]), int(row["num_gpu"]), float(row["duration"])) for row in rows]


@pytest.mark.parametrize("trace", ["common_160.csv", "common_480.csv"])
@pytest.mark.parametrize(("order", "head", "placer"), PUBLISHED)
def test_equals_three_public_simulators_to_every_digit(order, head, placer, trace):
    jct_mean, makespan, preemptions = PUBLISHED[order, head, placer][trace == "common_480.csv"]
    result = simulate(oracle_jobs(trace), EIGHT_BY_EIGHT, order=order, head=head, placer=placer)
    assert f"{result['jct_mean']:.3f}" == f"{jct_mean:.3f}"
    assert (result["makespan"], result["preemptions"]) == (makespan, preemptions)


@pytest.mark.parametrize(
    ("trace", "theirs"),
    [("common_160.csv", "2785.450 / 41077 / 73"), ("common_480.csv", "3414.458 / 151248 / 92")],
)
def test_srtf_with_consolidation_and_restore_cost_runs_for_orientation(trace, theirs):
    """The other simulator does not state its preemption rules: numbers are shown (pytest -s) only."""
    result = simulate(
        oracle_jobs(trace), EIGHT_BY_EIGHT, order="srtf", placer="consolidated", preemption_cost=(40.0, 60.0)
    )
    ours = f"{result['jct_mean']:.3f} / {result['makespan']:.0f} / {result['preemptions']}"
    print(f"{trace}: theirs {theirs}, ours {ours}")
    # Whatever the rules, no job ends before it could have, and a stopped one pays.
    assert all(end >= job[0] + job[2] for end, job in zip(result["finish_s"], oracle_jobs(trace), strict=True))
    assert result["preemptions"] > 0


@pytest.mark.parametrize(("head", "finish_s"), [("strict", [10, 15, 14]), ("skip", [10, 15, 6])])
def test_strict_lets_the_blocked_head_block_all_and_skip_does_not(head, finish_s):
    """4 GPUs. 0 holds 3 until 10; 1 (2 GPUs) must wait for it; 2 (1 GPU, 4 s) fits at 2 or waits too."""
    result = simulate([(0, 3, 10), (1, 2, 5), (2, 1, 4)], [4], order="fifo", head=head)
    assert result["finish_s"] == finish_s


@pytest.mark.parametrize("placer", ["count", "consolidated"])
@pytest.mark.parametrize(("head", "finish_s"), [("strict", [10, 13, 21, 25]), ("skip", [10, 13, 24, 16])])
def test_strict_lets_no_job_start_behind_the_blocked_head_but_stops_none_for_it(head, finish_s, placer):
    """4 GPUs, srtf. At 1 the order is 0 (9 s left, 2 GPUs), 2 (11 s, 3 GPUs, does not fit), 1 (12 s left, 1 GPU).

    1 runs on either way: stopping it would not let 2 start. At 4 comes 3 (12 s, 1 GPU), behind 2. skip: 3 runs 4-16, so
    2 waits until 1 ends, 13-24. strict: 3 waits; 2 runs from 10, when 0 ends, to 21, and 3 from 13, when 1 ends, to 25.
    """
    result = simulate([(0, 2, 10), (0, 1, 13), (1, 3, 11), (4, 1, 12)], [4], order="srtf", head=head, placer=placer)
    assert result["finish_s"] == finish_s and result["preemptions"] == 0


def test_a_preempted_job_restores_before_it_goes_on_and_pays_anew_if_preempted_meanwhile():
    """1 GPU, srtf, 2 s to restore. 0 runs 0-4 (6 left), 1 runs 4-7, 0 restores from 7, but 2 takes over 8-9
    (still 6 left), 0 restores 9-11 and runs 11-17. Mean JCT (17 + 3 + 1) / 3.
    """
    result = simulate([(0, 1, 10), (4, 1, 3), (8, 1, 1)], [1], order="srtf", preemption_cost=2.0)
    assert result == {"finish_s": [17, 7, 9], "preemptions": 2, "makespan": 17, "jct_mean": 7}


@pytest.mark.parametrize(("quantum_s", "finish_s", "preemptions"), [(1.0, [13, 6], 1), (0.0, [12.5, 13], 2)])
def test_las_demotes_at_the_quantum_and_completion_wins_over_demotion(quantum_s, finish_s, preemptions):
    """1 GPU, one threshold at 2.5 GPU-s. Job 0 from 0 (10 s), job 1 from 1 (3 s).

    Quantum 1: 0 is demoted at 3 and 1 takes over; 1's demotion (5.5, so 6) meets its end at 6; 0 runs 6-13.
    Quantum 0: 0 is demoted at 2.5; 1 at 5, to the end of the level although it runs, so 0 takes over till
    12.5 and 1's last half second follows.
    """
    result = simulate([(0, 1, 10), (1, 1, 3)], [1], order="las", thresholds=(2.5,), quantum_s=quantum_s)
    assert (result["finish_s"], result["preemptions"]) == (finish_s, preemptions)


def test_las_demotion_that_is_due_comes_even_if_the_job_is_preempted_before_the_quantum():
    """1 GPU, thresholds 1 and 2.5 GPU-s, quantum 1. 0 reaches 2.5 at 2.5, is due at 3; 1 preempts it at 2.75.

    1 is demoted to level 1 at 4; 0 is in level 2 since 3, so 1 runs on to 4.25; 0 then runs its 7.25 s. (Were
    0 still in level 1, it would stand before 1 at 4.)
    """
    result = simulate([(0, 1, 10), (2.75, 1, 1.5)], [1], order="las", thresholds=(1, 2.5))
    assert (result["finish_s"], result["preemptions"]) == ([11.5, 4.25], 1)


@pytest.mark.parametrize(("placer", "finish_s"), [("count", [10, 10, 6]), ("consolidated", [10, 10, 15])])
def test_consolidated_waits_rather_than_spills(placer, finish_s):
    """2 machines of 4, each with 3 GPUs taken: 2 free GPUs by count, but no machine has them before 10."""
    result = simulate([(0, 3, 10), (0, 3, 10), (1, 2, 5)], [4, 4], placer=placer)
    assert result["finish_s"] == finish_s


def test_consolidated_is_best_fit_and_large_gangs_take_whole_machines():
    """Machines of 4. 0 (3 GPUs) and 1 (1 GPU) fill the first, so 2 (6 GPUs) has the other two; 3 (2 GPUs)
    uses the rest of the last one; 4 (5 GPUs) needs two wholly free machines: those of 2 and 3 at 20.
    """
    jobs = [(0, 3, 30), (0, 1, 30), (0, 6, 10), (1, 2, 19), (1, 5, 7)]
    assert simulate(jobs, [4, 4, 4], placer="consolidated")["finish_s"] == [30, 30, 10, 20, 27]


def test_consolidated_preempts_only_jobs_that_the_new_one_needs():
    """2 machines of 2, srtf. 0 and 2 share the first, 1 has the second. 3 (2 GPUs, 5 s) at 10: releasing
    2, the worst, does not help, releasing 1 does; 2 gets its GPU back. 1 restores at 15 and has 50 s left.
    """
    jobs = [(0, 1, 40), (0, 2, 60), (0, 1, 80), (10, 2, 5)]
    result = simulate(jobs, [2, 2], order="srtf", placer="consolidated", preemption_cost=1.0)
    assert (result["finish_s"], result["preemptions"]) == ([40, 66, 80, 15], 1)


def test_stopped_and_started_on_the_same_gpus_at_one_instant_is_no_preemption():
    """2 machines of 4, srtf. From 4 on only 2 runs, on the second GPU of the second machine (0 filled the
    first one, 1 had the GPU before). 3 (5 GPUs) needs both wholly free, takes five GPUs; 2 gets its own.
    """
    jobs = [(0, 4, 3), (0, 1, 4), (0, 1, 50), (10, 5, 5)]
    result = simulate(jobs, [4, 4], order="srtf", placer="consolidated", preemption_cost=5.0)
    assert (result["finish_s"], result["preemptions"]) == ([3, 4, 50, 15], 0)


def test_rounds_start_jobs_at_their_multiples_only():
    """1 GPU, rounds of 10 s. 0 ends at 12, in between; 1 starts at 20; 2 comes at 30 and starts at once."""
    assert simulate([(0, 1, 12), (3, 1, 5), (30, 1, 1)], [1], round_s=10.0)["finish_s"] == [12, 25, 31]


@pytest.mark.parametrize(
    ("order", "head"),
    [("fifo", "strict"), ("sjf", "strict"), *[(order, "skip") for order in ("fifo", "sjf", "srtf", "srsf", "las")]],
)
def test_on_a_single_machine_consolidated_equals_count(order, head):
    """The jobs that fit after releasing later ones are those that fit greedily. Whole seconds, so no rounding."""
    for seed in range(30):
        rng = random.Random(seed)
        arrivals = sorted(rng.randrange(60) for _ in range(25))
        jobs = [(float(at), rng.choice((1, 2, 3, 4, 8)), float(rng.randint(1, 20))) for at in arrivals]
        options = {"order": order, "head": head, "thresholds": (8, 40), "round_s": rng.choice((0.0, 3.0))}
        count, consolidated = (
            simulate(jobs, [9], placer=placer, **options)["finish_s"] for placer in ("count", "consolidated")
        )
        assert count == consolidated


def test_jobs_that_can_never_start_are_an_error():
    """5 GPUs on 4."""
    with pytest.raises(ValueError, match="job 1 never starts"):
        simulate([(0, 1, 1), (0, 5, 1)], [4])
