"""Workloads that paper sjf-bsbf's tables are compared on, the load that workloads offer, and how the fits are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustergym.experiments.reproduce.bsbf import bsbf_calibration
from clustergym.experiments.reproduce.case import Outcome
from clustergym.experiments.reproduce.case_runs import offered_load_note
from clustergym.experiments.reproduce.rows import Options
from clustergym.policies import make
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.offered_load import offered_load
from clustergym.simulator.profiles.models import shipped_profiles
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.simulator.workloads.bsbf_jobs import shipped_fits
from clustergym.tests.support.reproducing import play_of

MANY = 100_000
HOUR_S = 3600.0


def means_h(workload: Workload) -> list[float]:
    large = workload.gpus > 4
    return [workload.duration_s[some].mean() / HOUR_S for some in (large, ~large)]


# ---- bsbf-tables


def test_the_shares_of_bsbf_tables_are_those_that_were_given():
    """12.2 % of 240 jobs are 29.28: 29 large ones. Weights 3/1 of 8 and 16 GPUs: three quarters of the large ones."""
    word = "bsbf-tables:large_share=0.122,large_gangs=3/0/1/0/0,small_gangs=1/1/2"
    assert int((open_workload(word, seed=4).gpus > 4).sum()) == 29
    many = open_workload(f"{word},jobs={MANY}", seed=4)
    counts = {size: (many.gpus == size).sum() / MANY for size in (1, 2, 4, 8, 12, 16)}
    expected = {1: 0.2195, 2: 0.2195, 4: 0.439, 8: 0.0915, 12: 0.0, 16: 0.0305}
    assert counts == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("jobs", [240, 480])
def test_run_times_of_bsbf_tables_have_their_classes_means_in_every_sample(jobs):
    """To half an iteration, of at most 1.6 s; with sigma 0 every large job runs 2 h."""
    workload = open_workload(f"bsbf-tables:jobs={jobs},mean_hours=1.74/0.55", seed=7)
    assert means_h(workload) == pytest.approx([1.74, 0.55], abs=1.6 / HOUR_S)
    alike = open_workload(f"bsbf-tables:jobs={jobs},mean_hours=2/0.5,sigma=0", seed=7)
    assert alike.duration_s[alike.gpus > 4] == pytest.approx(2 * HOUR_S, abs=1.6)


def test_run_times_of_bsbf_tables_are_lognormal():
    """The logarithm's standard deviation is sigma, in each class."""
    workload = open_workload(f"bsbf-tables:jobs={MANY},sigma=1.03", seed=1)
    for some in (workload.gpus > 4, workload.gpus <= 4):
        assert np.log(workload.duration_s[some]).std() == pytest.approx(1.03, rel=0.03)


def test_jobs_of_bsbf_tables_run_whole_iterations_of_the_largest_batch_or_half_of_it():
    workload = open_workload("bsbf-tables:gpu=t4", seed=3)
    assert np.array_equal(workload.iterations, workload.iterations.round())
    for i in range(len(workload)):
        profile = shipped_profiles().of(workload.model[i])
        largest = profile.fit("t4").largest_batch
        assert workload.batch_size[i] / workload.gpus[i] in (largest, largest // 2)
        step_s = profile.step_s("t4", int(workload.gpus[i]), int(workload.batch_size[i]), 4)
        assert workload.duration_s[i] == pytest.approx(workload.iterations[i] * step_s)


def test_bsbf_tables_takes_arrivals_from_philly_sample():
    ours, theirs = (open_workload(f"{name}:jobs=240", seed=5) for name in ("bsbf-tables", "philly-sample"))
    assert np.array_equal(ours.arrival_s, theirs.arrival_s)
    by_submission = open_workload("bsbf-tables:jobs=240,models=submission", seed=5)
    assert np.array_equal(by_submission.model, theirs.model)
    assert np.array_equal(by_submission.gpus, ours.gpus)
    assert by_submission.duration_s == pytest.approx(ours.duration_s, rel=0.05)


def test_the_gpu_hours_of_a_job_of_bsbf_tables_say_its_model():
    """Pollux' classes: under 1, 10 and 100 GPU-hours, and above; run times here differ by a rounded iteration."""
    workload = open_workload("bsbf-tables:jobs=480", seed=3)
    hours = workload.gpus * workload.duration_s / 3600.0
    classes = ({"cifar10", "ncf"}, {"deepspeech2", "bert"}, {"yolov3"}, {"imagenet"})
    for low, high, models in zip((0.0, 1.0, 10.0, 100.0), (1.0, 10.0, 100.0, np.inf), classes, strict=True):
        inside = (hours > low * 1.01) & (hours < high * 0.99)
        assert set(workload.model[inside].tolist()) <= models
    assert len(set(workload.model.tolist())) >= 5


@pytest.mark.parametrize("name", ["bsbf-tables", "bsbf-table2"])
def test_there_are_five_fits_and_they_differ(name):
    drawn = [open_workload(f"{name}:fit={fit}", seed=1) for fit in range(1, 6)]
    assert len(shipped_fits()[name]) == 5
    assert len({workload.duration_s.sum() for workload in drawn}) == 5
    assert np.array_equal(open_workload(name, seed=1).duration_s, drawn[0].duration_s)


# ---- bsbf-table2


def test_bsbf_table2_has_the_published_counts():
    for seed in range(5):
        workload = open_workload("bsbf-table2", seed=seed)
        sizes = workload.gpus.tolist()
        assert sum(size <= 8 for size in sizes) == 20
        assert sum(size in (12, 16) for size in sizes) == 10
        assert np.all((workload.iterations >= 100) & (workload.iterations <= 5000))
        assert workload.arrival_s.max() <= workload.window_s


def test_samples_of_bsbf_table2_have_gangs_and_models_as_often_as_their_weights_say():
    """10 large jobs with weights 3/1: 7.5 and 2.5, the first takes the remainder; 20 small: 5 each; 30: 5 a model."""
    for seed in range(3):
        workload = open_workload("bsbf-table2:large_gangs=3/1,small_gangs=1/1/1/1", seed=seed)
        sizes = workload.gpus.tolist()
        assert {size: sizes.count(size) for size in set(sizes)} == {1: 5, 2: 5, 4: 5, 8: 5, 12: 8, 16: 2}
        models = workload.model.tolist()
        assert {models.count(name) for name in models} == {5}


def test_parameters_of_bsbf_table2_are_those_that_were_given():
    """One batch divisor of 2, gangs of 12 and 1 alone, and run times of 120 and 300 s where 100 to 5,000 allow it."""
    word = "bsbf-table2:large_gangs=1/0,small_gangs=1/0/0/0,mean_s=120/300,sigma=0,batches=2,span_s=50"
    workload = open_workload(word, seed=2)
    assert set(workload.gpus.tolist()) == {1, 12}
    assert workload.window_s == 50.0
    halves = [shipped_profiles().of(name).fit("2080ti").largest_batch // 2 for name in workload.model]
    assert (workload.batch_size / workload.gpus).tolist() == halves
    free = (workload.iterations > 100) & (workload.iterations < 5000)
    assert np.all(np.abs(workload.duration_s - np.where(workload.gpus > 8, 120, 300))[free] < 1.0)


# ---- philly-sample


def test_philly_sample_takes_the_gangs_of_the_trace():
    """1 GPU 76,627 of the 82,244 jobs with at most 64: 93.2 %; 8 GPUs 2.0 %; cut at 8, none has more."""
    workload = open_workload(f"philly-sample:jobs={MANY},gangs=philly", seed=1)
    for size, share in {1: 0.9317, 2: 0.0221, 4: 0.0227, 8: 0.02, 16: 0.0024, 32: 0.0008}.items():
        assert (workload.gpus == size).mean() == pytest.approx(share, abs=0.002)
    assert open_workload("philly-sample:jobs=5000,gangs=philly", cluster_gpus=8).gpus.max() == 8
    few = open_workload("philly-sample:jobs=1000,gangs=philly,large_share=0.01")
    assert (few.gpus > 4).sum() == 10


def test_philly_sample_scales_run_times_to_the_means_of_their_classes():
    """Every job of a class by the same factor, so that ratios stay, but for whole iterations."""
    plain = open_workload("philly-sample:large_share=0.122", seed=2)
    scaled = open_workload("philly-sample:large_share=0.122,mean_hours=1.74/0.55", seed=2)
    assert means_h(scaled) == pytest.approx([1.74, 0.55], rel=1e-3)
    for column in ("arrival_s", "gpus", "model", "batch_size"):
        assert np.array_equal(getattr(plain, column), getattr(scaled, column))
    large = plain.gpus > 4
    factors = (scaled.duration_s / plain.duration_s)[large]
    assert factors == pytest.approx(np.full(large.sum(), np.median(factors)), rel=0.05)


# ---- load


def test_the_offered_load_by_hand():
    """4 GPUs x 10 s, 2 x 30 s, 1 x 20 s: 120 GPU-s. Window of 60 s on 4 GPUs: 0.5. Without it, the first job starts
    the clock: 80 GPU-s from 0 to 40 s on 4 GPUs: 0.5; and 2 GPUs would be kept busy.
    """
    rows = [0.0, 20.0, 40.0], [4, 2, 1], [10.0, 30.0, 20.0]
    workload = Workload.from_arrays("hand", *rows)
    assert workload.offered_load(4) == pytest.approx(0.5)
    assert workload.offered_load(1) == pytest.approx(2.0)
    object.__setattr__(workload, "window_s", 60.0)
    assert workload.offered_load(4) == pytest.approx(0.5)
    assert workload.offered_load(4, workload.duration_s * 2) == pytest.approx(1.0)
    at_once = Workload.from_arrays("batch", [0, 0], [1, 1], [10, 10])
    assert at_once.offered_load(4) == np.inf


def test_a_generator_that_says_its_window_offers_all_its_work_within_it():
    """8 hours, whenever the last job comes; the load on a cluster is the same number."""
    workload = open_workload("bsbf-tables:hours=8", seed=3)
    work_s = float((workload.gpus * workload.duration_s).sum())
    assert workload.offered_load(64) == pytest.approx(work_s / (64 * 8 * HOUR_S))
    assert offered_load(workload, Topology.load("bsbf-simulation")) == pytest.approx(workload.offered_load(64))
    assert workload.take([0, 1]).window_s == workload.oversize(64).window_s == 8 * HOUR_S


def test_the_note_of_a_reproduction_tells_mean_and_range_for_each_cluster():
    """Loads of 1 and 3 GPUs: 0.5 in the mean, on 4 GPUs, from 0.25 to 0.75."""
    one, three = (Workload.from_arrays("w", [0, 10], [1, gpus], [1, 10]) for gpus in (1, 3))
    assert offered_load_note({"all": [one, three]}, 4).endswith("all 0.5 of 4 GPUs (0.25 to 0.75 over 2 workloads)")
    assert offered_load_note({"one": [one]}, [1, 2]).endswith("one 1 of 1 GPUs, 0.5 of 2 GPUs")
    batch = Workload.from_arrays("b", [0, 0], [1, 1], [1, 1])
    assert offered_load_note({"batch": [batch]}, 4).endswith("batch all jobs at once")


# ---- bad input


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("bsbf-tables:fit=6", r"fit=6; expected 1 \(the best\) to 5"),
        ("bsbf-tables:fit=0", "fit=0"),
        ("bsbf-tables:gpu=v100", "unknown gpu of workload bsbf-tables: 'v100'"),
        ("bsbf-tables:large_share=12", "large_share=12; expected a share"),
        ("bsbf-tables:large_gangs=1/2", "large_gangs=1/2; expected 5 weights >= 0, of 8/12/16/24/32 GPUs"),
        ("bsbf-tables:small_gangs=0/0/0", "small_gangs=0/0/0; expected 3 weights"),
        ("bsbf-tables:mean_hours=1.74", "mean_hours=1.74; expected LARGE/SMALL"),
        ("bsbf-tables:sigma=9", "sigma=9; expected 0 to 3"),
        ("bsbf-tables:hours=25", "hours=25; expected 1/6 to 24"),
        ("bsbf-table2:fit=9", "workload bsbf-table2: fit=9"),
        ("bsbf-table2:span_s=0", "span_s=0"),
        ("bsbf-table2:batches=0", "batches=0; expected whole numbers from 1 to 64"),
        ("bsbf-table2:mean_s=1/0", "mean_s=1/0; expected LARGE/SMALL"),
        ("philly-sample:gangs=helios", "unknown value of workload philly-sample: gangs 'helios'"),
        ("philly-sample:mean_hours=1/2/3", "mean_hours=1/2/3; expected LARGE/SMALL"),
    ],
)
def test_bad_parameters_are_one_sentence(word, said):
    with pytest.raises(InputError, match=said) as caught:
        open_workload(word)
    assert "\n" not in str(caught.value)


# ---- calibration


def test_the_loss_is_the_mean_log_error():
    """Twice the published number in every second cell: ln 2 / 2."""
    ours = np.array([4.0, 3.0, 10.0, 7.0])
    loss = bsbf_calibration.loss(Outcome({}, {"numbers": ours}), {"a": 2.0, "b": 3.0, "c": 5.0, "d": 7.0})
    assert loss == pytest.approx(np.log(2.0) / 2.0)


@pytest.mark.parametrize("target", [bsbf_calibration.TABLES, bsbf_calibration.TABLE_2])
def test_candidates_are_the_same_every_time_and_have_the_work_that_the_paper_implies(target):
    """550 to 900 GPU-hours with 240 jobs, to the rounding of weights; 15,000 to 36,000 GPU-s on the testbed."""
    candidates, again = (target.drawn(target.candidates) for _ in range(2))
    assert candidates == again
    assert target.candidates * 0.9 < len(candidates) <= target.candidates
    low, high = (550.0, 900.0) if target.jobs != (30,) else (15_000.0 / HOUR_S, 36_000.0 / HOUR_S)
    drawn = [open_workload(f"{target.case(one).setting.workload},jobs=6000", seed=1) for one in candidates[:20]]
    count = target.jobs[0]
    hours = [(one.gpus * one.duration_s).sum() / HOUR_S / 6000 * count for one in drawn]
    assert all(0.8 * low < value < 1.3 * high for value in hours)


def test_a_candidate_never_sees_a_policy_that_shares_or_a_seed_of_the_tables(tmp_path):
    target = bsbf_calibration.TABLES
    case = target.case(target.drawn(1)[0])
    assert not set(dict(case.given)["seeds"]) & set(bsbf_calibration.OTHER_SEEDS)
    published = target.published(play_of("bsbf-calibration", Options(tmp_path)))
    assert len(published) == 18 and list(published.values())[:3] == [2.34, 3.92, 2.13]
    for reading in bsbf_calibration.READINGS:
        for word in dict(target.case(target.drawn(1)[0], reading=reading).given)["policies"]:
            make(word)  # the word is valid


def test_a_candidate_is_means_over_its_workloads():
    """Of two seeds: makespan and completion time of FIFO, SJF and Tiresias, and the load of both."""

    def played(*seeds: int) -> Outcome:
        target = replace(bsbf_calibration.TABLE_2, jobs=(6,))
        return target.case({"fit": 1}, seeds).outcome()

    one, other, both = played(1), played(2), played(1, 2)
    assert both["numbers"] == pytest.approx((one["numbers"] + other["numbers"]) / 2)
    assert both["loads"] == pytest.approx((one["loads"] + other["loads"]) / 2)
    loads = [open_workload(f"bsbf-table2:fit=1,jobs=6,seed={seed}").offered_load(16) for seed in (1, 2)]
    assert both["loads"].tolist() == pytest.approx([np.mean(loads)])
    assert both["numbers"].shape == (6,)
