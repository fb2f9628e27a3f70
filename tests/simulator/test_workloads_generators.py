"""Generators: seeded, any size, and the statistics that their docstrings state."""

from __future__ import annotations

import inspect
import io
import sys

import numpy as np
import pytest

from clustergym.experiments.inspecting.workload_report import draw, print_report, summary
from clustergym.simulator.base.errors import InputError, MissingExtra
from clustergym.simulator.jobs.workload import COLUMNS
from clustergym.simulator.workloads import GENERATORS, Workload, open_workload

MANY = 200_000
WEEK_S = 7 * 86400.0


# Those of any size; the others have the jobs of one figure or table.
SIZED = [name for name, make in GENERATORS.items() if "jobs" in inspect.signature(make).parameters]


def share(mask: np.ndarray) -> float:
    return float(mask.mean())


@pytest.mark.parametrize("name", GENERATORS)
def test_same_parameters_and_seed_give_the_same_arrays(name):
    word = f"{name}:jobs=300," if name in SIZED else f"{name}:"
    one, two, other = (open_workload(word.rstrip(":,"), seed=seed) for seed in (5, 5, 6))
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(two, column)), column
    assert not np.array_equal(one.duration_s, other.duration_s)
    assert np.array_equal(open_workload(f"{word}seed=5", seed=9).duration_s, one.duration_s)


@pytest.mark.parametrize("name", SIZED)
def test_any_size(name):
    assert len(open_workload(f"{name}:jobs=1")) == 1
    workload = open_workload(f"{name}:jobs=1000000")
    assert len(workload) == 10**6
    assert workload.arrival_s[0] >= 0
    assert np.all(np.diff(workload.arrival_s) >= 0)
    assert np.all(workload.duration_s > 0)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_saved_workload_comes_back(name, tmp_path):
    before = open_workload(f"{name}:jobs=50" if name in SIZED else name)
    before.save(tmp_path / "w.csv")
    after = open_workload(tmp_path / "w.csv")
    for column in COLUMNS:
        assert np.array_equal(getattr(before, column), getattr(after, column)), column


def test_poisson_offers_its_load():
    """GPU-seconds per second over the cluster's GPUs; the gaps are exponential (CV 1)."""
    workload = open_workload(f"poisson:jobs={MANY},load=0.8,cluster_gpus=512,sigma=1")
    offered = np.sum(workload.gpus * workload.duration_s) / workload.arrival_s[-1] / 512
    assert offered == pytest.approx(0.8, rel=0.02)
    gaps = np.diff(workload.arrival_s)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.02)
    assert np.median(workload.duration_s) == pytest.approx(1800, rel=0.02)
    for size in (1, 2, 4, 8, 16):
        assert share(workload.gpus == size) == pytest.approx(0.2, abs=0.005)


def test_poisson_takes_a_rate_shares_and_models():
    workload = open_workload(f"poisson:jobs={MANY},rate=3600,gpus=1/8,gpu_shares=3/1,models=bert")
    assert workload.arrival_s[-1] / MANY == pytest.approx(1, rel=0.02)
    assert share(workload.gpus == 8) == pytest.approx(0.25, abs=0.005)
    assert set(workload.model) == {"bert"}
    assert set(open_workload("poisson:models=").model) == {""}


def test_poisson_load_follows_the_cluster_unless_told():
    small, large = (open_workload("poisson", cluster_gpus=gpus) for gpus in (64, 128))
    assert large.arrival_s[-1] == pytest.approx(small.arrival_s[-1] / 2)
    told = open_workload("poisson:cluster_gpus=64", cluster_gpus=128)
    assert np.array_equal(told.arrival_s, small.arrival_s)


def test_backlog_is_there_at_time_zero():
    workload = open_workload("poisson:jobs=100,backlog=40")
    assert np.all(workload.arrival_s[:40] == 0)
    assert workload.arrival_s[40] > 0


def test_batch_is_poisson_at_time_zero():
    batch, poisson = open_workload("batch:jobs=99", seed=3), open_workload("poisson:jobs=99", seed=3)
    assert np.all(batch.arrival_s == 0)
    for column in ("gpus", "duration_s", "model"):
        assert np.array_equal(getattr(batch, column), getattr(poisson, column))


def test_dally_like_has_the_published_mix():
    workload = open_workload(f"dally-like:jobs={MANY},arrivals=poisson,jobs_per_day=100")
    for size, part in {1: 0.54, 2: 0.026, 4: 0.104, 8: 0.218, 16: 0.084, 32: 0.022}.items():
        assert share(workload.gpus == size) == pytest.approx(part, abs=0.005)
    assert np.quantile(workload.duration_s, [0.5, 0.9]) == pytest.approx([55_975, 203_004], rel=0.05)
    assert workload.duration_s.mean() == pytest.approx(93_988, rel=0.05)
    for model, part in {
        "MobileNetV3": 0.25,
        "BERT": 0.25,
        "ResNet50": 0.25,
        "AlexNet": 0.106,
        "VGG": 0.068,
    }.items():
        assert share(workload.model == model) == pytest.approx(part, abs=0.01)
    assert share(workload.model[workload.gpus > 8] == "MobileNetV3") == pytest.approx(39 / 56, abs=0.02)
    assert workload.arrival_s[-1] / MANY == pytest.approx(864, rel=0.02)
    assert np.all(open_workload("dally-like").arrival_s == 0)


def test_dally_like_divides_by_the_gang_and_takes_some_models():
    """The same draws: gang-scaled durations are a gang-th, iterations stay; the rest of the models keep their ratio."""
    plain, scaled = open_workload("dally-like:jobs=500"), open_workload("dally-like:jobs=500,scale=gang")
    assert np.array_equal(scaled.duration_s, plain.duration_s / plain.gpus)
    assert np.array_equal(scaled.iterations, plain.iterations)
    some = open_workload(f"dally-like:jobs={MANY},models=BERT/ResNet18")
    assert set(some.model) == {"BERT", "ResNet18"}
    assert share(some.model[some.gpus == 1] == "BERT") == pytest.approx(94 / 129, abs=0.02)
    only = open_workload("dally-like:jobs=5000,models=ResNet18")  # which no gang of 8 or more has in the set
    assert set(only.model) == {"ResNet18"}
    assert np.array_equal(only.gpus[:500], open_workload("dally-like:jobs=5000").gpus[:500])


def test_philly_like_has_the_measured_statistics():
    workload = open_workload(f"philly-like:jobs={MANY}")
    for size, part in {1: 0.9317, 2: 0.0221, 4: 0.0227, 8: 0.02}.items():
        assert share(workload.gpus == size) == pytest.approx(part, abs=0.002)
    assert np.quantile(workload.duration_s, [0.5, 0.9]) == pytest.approx([1144, 11265], rel=0.12)
    assert workload.duration_s.mean() == pytest.approx(13_136, rel=0.1)
    gpu_s = workload.gpus * workload.duration_s
    assert gpu_s[workload.gpus == 8].sum() / gpu_s.sum() == pytest.approx(0.484, abs=0.06)
    assert gpu_s[workload.gpus == 1].sum() / gpu_s.sum() == pytest.approx(0.181, abs=0.03)
    gaps = np.diff(workload.arrival_s)
    assert gaps.mean() == pytest.approx(114.4, rel=0.1)
    assert np.median(gaps) == pytest.approx(8, rel=0.2)
    assert 8 < gaps.std() / gaps.mean() < 25  # 15.1 measured; a sample of such a tail scatters
    hours = np.array(summary(workload)["hours"])
    assert hours[7] == pytest.approx(2.089, rel=0.2)
    assert hours[14] == pytest.approx(0.638, rel=0.25)
    assert share(workload.tenant == "6214e9") == pytest.approx(41226 / 82247, abs=0.01)


def test_helios_like_has_the_measured_statistics():
    workload = open_workload(f"helios-like:jobs={MANY}")
    assert workload.gpus.mean() == pytest.approx(6.733, rel=0.03)
    assert 3600 * MANY / workload.arrival_s[-1] == pytest.approx(28.82, rel=0.05)
    assert np.quantile(workload.duration_s, [0.5, 0.9]) == pytest.approx([93, 2528], rel=0.05)
    assert workload.duration_s.mean() == pytest.approx(5651, rel=0.1)
    counts = np.bincount((workload.arrival_s // 600).astype(int))
    assert counts.var() / counts.mean() == pytest.approx(15.42, rel=0.2)
    assert np.median(counts) == pytest.approx(3, abs=1)
    hours = summary(workload)["hours"]
    assert hours[6] == pytest.approx(0.187, abs=0.06)
    assert hours[16] == pytest.approx(1.734, rel=0.12)
    weekday = np.bincount((workload.arrival_s % WEEK_S // 86400).astype(int)) / MANY * 7
    assert weekday[5:] == pytest.approx([0.68, 0.771], rel=0.12)


def test_philly_sample_is_what_pollux_samples():
    """Published workloads, 960 jobs: by hour 18 18 10 19 23 36 19 16 of 160; models as below; none after 8 h."""
    workload = open_workload(f"philly-sample:jobs={MANY},gpu=t4")
    by_hour = np.histogram(workload.arrival_s, 8, (0, 28800))[0] / MANY * 160
    assert by_hour == pytest.approx([18.2, 17.2, 11.5, 19.1, 26.4, 33.7, 17.9, 16.1], abs=0.4)
    assert workload.arrival_s[-1] < 28800
    for model, part in {"cifar10": 0.391, "ncf": 0.391, "bert": 0.076, "yolov3": 0.046, "imagenet": 0.019}.items():
        assert share(workload.model == model) == pytest.approx(part, abs=0.005)
    imagenet = workload.model == "imagenet"
    assert set(workload.gpus[imagenet]) == {12, 16, 24, 32, 48, 64}
    assert share(workload.gpus[imagenet] == 16) == pytest.approx(1 / 6, abs=0.03)
    assert set(workload.gpus[workload.model == "ncf"]) == {1}


def test_philly_sample_iterations_are_the_profiles():
    """Steps and seconds of each job by its model, GPUs and batch; the same jobs run other times on other GPUs."""
    from clustergym.simulator.profiles.models import profile_of

    workload = open_workload("philly-sample:jobs=200,gpu=a100", seed=2)
    for i in range(200):
        profile = profile_of(workload.model[i])
        gpus, batch = int(workload.gpus[i]), int(workload.batch_size[i])
        assert workload.iterations[i] == pytest.approx(profile.efficiency.steps_of(batch))
        assert workload.iteration_s[i] == pytest.approx(profile.step_s("a100", gpus, batch))
    other = open_workload("philly-sample:jobs=200,gpu=t4", seed=2)
    assert np.array_equal(other.arrival_s, workload.arrival_s) and np.array_equal(other.model, workload.model)


@pytest.mark.parametrize("gpu", ["t4", "2080ti", "a100"])
def test_configurations_scale_with_50_to_80_percent(gpu):
    """By brute force over all validated batches; ncf, and what never scales so, has one GPU."""
    from clustergym.simulator.profiles.models import profile_of, shipped_profiles
    from clustergym.simulator.workloads.sharing_jobs import GANGS, configurations

    for model in shipped_profiles().names:
        profile, found = profile_of(model), []
        steps = profile.efficiency.steps

        def best(gang, profile=profile, steps=steps):
            fitting = [batch for batch in steps if batch >= gang]
            return min((steps[batch] * profile.step_s(gpu, gang, batch), batch) for batch in fitting)

        for gang in GANGS[1:]:
            if 0.5 <= best(1)[0] / (gang * best(gang)[0]) <= 0.8 and model != "ncf":
                found.append((gang, best(gang)[1]))
        assert list(configurations(model, gpu)) == (found or [(1, best(1)[1])])


def test_philly_sample_limits_large_jobs():
    """At most the share that is asked for, the others as they were, and small jobs on 4 GPUs or fewer."""
    free, limited = (open_workload(f"philly-sample:jobs=1000{more}", seed=4) for more in ("", ",large_share=0.123"))
    assert share(free.gpus > 4) > 0.3
    assert (limited.gpus > 4).sum() == 123
    changed = free.gpus != limited.gpus
    assert np.all(free.gpus[changed] > 4) and np.all(limited.gpus[changed] <= 4)
    assert np.array_equal(free.model, limited.model) and np.array_equal(free.arrival_s, limited.arrival_s)
    assert share(limited.gpus[limited.model == "imagenet"] > 4) == 1  # the fewest GPU-hours go first
    assert share(limited.gpus[limited.model == "cifar10"] > 4) == 0


def test_philly_sample_fits_the_cluster_and_the_window():
    small = open_workload("philly-sample:jobs=2000", cluster_gpus=16)
    assert small.gpus.max() == 16
    night = open_workload("philly-sample:jobs=2000,hours=4,start=22")
    assert 3.5 * 3600 < night.arrival_s[-1] < 4 * 3600
    assert open_workload("philly-sample:jobs=2000,hours=24").arrival_s[-1] > 23 * 3600


def test_bsbf_physical_has_the_published_counts():
    """Paper sjf-bsbf, Sec. VI-A: 30 jobs, 20 of at most 8 GPUs, 10 of 12 or 16, 100 to 5,000 iterations."""
    for seed in range(20):
        workload = open_workload("bsbf-physical", seed=seed)
        assert ((workload.gpus <= 8).sum(), np.isin(workload.gpus, (12, 16)).sum()) == (20, 10)
        assert workload.iterations.min() >= 100 and workload.iterations.max() <= 5000
        assert workload.arrival_s[-1] <= 1000
    many = open_workload(f"bsbf-physical:jobs={MANY}")
    assert np.median(many.iterations) == pytest.approx(196, rel=0.02)  # 2 / (1/100 + 1/5000)
    assert share(many.model == "bert") == pytest.approx(1 / 6, abs=0.005)
    assert np.all(many.batch_size % many.gpus == 0)
    bert = many.batch_size[many.model == "bert"] // many.gpus[many.model == "bert"]
    assert set(bert) == {3, 6, 12}


def alone_s(workload, i, servers_of=1):
    """Seconds per iteration of job i by the phases of its model."""
    from clustergym.simulator.profiles.cassini_models import phases_of

    name, strategy, hidden = (*workload.model[i].split("/"), "", "")[:3]
    gpus = int(workload.gpus[i])
    phases = phases_of(name, gpus, int(workload.batch_size[i]) // gpus, strategy or None, int(hidden or 0) or None)
    return phases.iteration_s - (phases.up_s if gpus <= servers_of else 0.0)


def test_cassini_poisson_is_what_the_paper_gives():
    """Sec. 5.1 and Table 3: models equally likely, 1 to 12 workers, 200 to 1,000 iterations, batches in their range."""
    from clustergym.simulator.profiles.cassini_models import cassini_models

    workload = open_workload("cassini-poisson:jobs=20000", seed=3)
    names = np.array([word.partition("/")[0] for word in workload.model])
    for name, model in cassini_models().items():
        assert share(names == name) == pytest.approx(1 / 13, abs=0.006)
        batch = (workload.batch_size // workload.gpus)[names == name]
        assert model.batch[0] <= batch.min() and batch.max() <= model.batch[1]
    assert np.bincount(workload.gpus)[1:] / 20000 == pytest.approx([1 / 12] * 12, abs=0.006)
    assert (workload.iterations.min(), workload.iterations.max()) == (200, 1000)
    assert set(workload.model[names == "GPT3"]) == {"GPT3/data"}
    for i in range(100):
        assert workload.iteration_s[i] == pytest.approx(alone_s(workload, i))


@pytest.mark.parametrize("word", ["load=0.8", "load=1.0", "load=0.8,parallel=model", "load=0.9,cluster_gpus=8"])
def test_cassini_poisson_offers_its_load(word):
    """GPU-seconds of all jobs alone, over GPUs x the time in which they arrive."""
    workload = open_workload(f"cassini-poisson:jobs=20000,{word}", seed=5)
    gpus = 8 if "cluster_gpus=8" in word else 24
    offered = (workload.gpus * workload.duration_s).sum() / (gpus * workload.arrival_s[-1])
    assert offered == pytest.approx(float(word[5:8]), rel=0.05)
    assert workload.gpus.max() == min(gpus, 12)


def test_cassini_poisson_of_one_period():
    """Every iteration takes 0.8 s alone, or evenly 20 % less to 20 % more; whatever else is drawn stays the same."""
    own, one, spread = (
        open_workload(f"cassini-poisson:jobs=2000,models=VGG16/BERT,workers=4/8{more}", seed=3)
        for more in ("", ",iteration_s=0.8", ",iteration_s=0.8,spread=0.2")
    )
    assert set(one.model) == {"VGG16", "BERT"} and (one.gpus.min(), one.gpus.max()) == (4, 8)
    assert (one.iteration_s == 0.8).all() and np.array_equal(one.duration_s, 0.8 * one.iterations)
    assert 0.64 <= spread.iteration_s.min() < 0.65 and 0.95 < spread.iteration_s.max() <= 0.96
    assert spread.iteration_s.mean() == pytest.approx(0.8, rel=0.01)
    for column in ("model", "gpus", "batch_size", "iterations"):
        assert np.array_equal(getattr(one, column), getattr(own, column))
    for each in (own, one, spread):
        assert (each.gpus * each.duration_s).sum() / (24 * each.arrival_s[-1]) == pytest.approx(0.8, rel=0.1)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("workers=0/3", "workers=0/3; expected LOW/HIGH"),
        ("workers=5", "workers=5; expected LOW/HIGH"),
        ("workers=9/10,cluster_gpus=8", "expected LOW/HIGH, 1/1 to 1/8"),
        ("spread=0.1", "expected 0, or below 1 beside iteration_s"),
        ("iteration_s=0.8,spread=1", "expected 0, or below 1 beside iteration_s"),
        ("iteration_s=0", "iteration_s=0; expected a number above 0"),
        ("models=VGG-16", "did you mean 'VGG16'"),
    ],
)
def test_mistakes_of_cassini_poisson_are_one_sentence(word, expected):
    with pytest.raises(InputError, match=expected):
        open_workload(f"cassini-poisson:{word}")


def test_cassini_poisson_by_hours():
    """As many as the load asks for: five standard deviations of a Poisson number."""
    from clustergym.simulator.workloads.cassini_jobs import mean_gpu_s

    workload = open_workload("cassini-poisson:hours=24", seed=1)
    assert workload.arrival_s[0] == 0 and 80000 < workload.arrival_s[-1] < 86400
    expected = 0.8 * 24 * 86400 / mean_gpu_s("data")
    assert abs(len(workload) - expected) < 5 * np.sqrt(expected)


def test_cassini_model_parallel_jobs_are_split():
    """GPTs in pipelines, tensor halves, or hybrids of a multiple of 4 workers; GPT2 of two hidden sizes."""
    workload = open_workload("cassini-poisson:jobs=3000,parallel=model", seed=2)
    kinds = set(workload.model)
    assert {"GPT2/pipeline", "GPT2/pipeline/1184", "GPT1/tensor", "GPT3/hybrid", "DLRM"} <= kinds
    assert not any(word.endswith("/data") for word in kinds)
    hybrid = np.array(["hybrid" in word for word in workload.model])
    assert set(workload.gpus[hybrid]) == {4, 8, 12}
    for i in range(60):
        assert workload.iteration_s[i] == pytest.approx(alone_s(workload, i))


@pytest.mark.parametrize(
    ("word", "newcomers", "gpus"),
    [
        ("cassini-dynamic", ["DLRM", "ResNet50"], 24),
        ("cassini-dynamic:cluster_gpus=8", ["DLRM", "ResNet50"], 8),
        ("cassini-dynamic-mp", ["GPT1", "GPT2", "GPT3", "DLRM"], 24),
    ],
)
def test_cassini_newcomers_find_exactly_the_gpus_that_are_left(word, newcomers, gpus):
    for seed in range(10):
        workload = open_workload(word, seed=seed)
        new = workload.arrival_s > 0
        assert [name.partition("/")[0] for name in workload.model[new]] == newcomers
        assert workload.gpus.sum() == gpus
        assert workload.gpus[new].sum() <= gpus / 2
        assert set(workload.arrival_s[new]) == {5.0}


def test_cassini_multigpu_is_figure_16():
    """Three GPUs each for XLM, ResNet50 and DLRM, which finds four; two GPUs of one server need no network."""
    workload = open_workload("cassini-multigpu", seed=4)
    assert workload.model[:2].tolist() == ["XLM", "ResNet50"] and workload.model[-1] == "DLRM"
    assert workload.gpus.tolist() == [3, 3, 2, 3] and workload.arrival_s.tolist() == [0.0, 0.0, 0.0, 5.0]
    for i in range(len(workload)):
        assert workload.iteration_s[i] == pytest.approx(alone_s(workload, i, servers_of=2))


def test_cassini_snapshots_are_table_2():
    workload = open_workload("cassini-snapshot:id=2")
    assert workload.model.tolist() == ["VGG19", "VGG16", "ResNet50"]
    assert (workload.batch_size / workload.gpus).tolist() == [1400, 1700, 1600]
    assert workload.gpus.tolist() == [4, 4, 4] and not workload.arrival_s.any()
    assert open_workload("cassini-snapshot:id=5,workers=8").gpus.tolist() == [8, 8, 8]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("poison", "did you mean 'poisson'"),
        ("posson:gpus=1/2", "did you mean 'poisson'"),
        ("poisson:job=3", "did you mean 'jobs'"),
        ("poisson:jobs=0", "jobs=0; expected 1 to"),
        ("poisson:jobs=1000000000", "expected 1 to"),
        ("poisson:jobs=many", "whole number"),
        ("poisson:load=-1", "load=-1"),
        ("poisson:load=inf", "load=inf"),
        ("poisson:load=nan", "expected a number"),
        ("poisson:rate=0", "rate=0"),
        ("poisson:backlog=129", "backlog=129"),
        ("poisson:gpus=", "gpus="),
        ("poisson:gpus=0/1", "at least 1"),
        ("poisson:gpu_shares=1/2", "5 weights"),
        ("poisson:gpus=1/2,gpu_shares=0/0", "weights"),
        ("poisson:sigma=99", "sigma=99"),
        ("poisson:median_s=0", "median_s=0"),
        ("poisson:jobs", "not key=value"),
        ("dally-like:arrivals=never", "never"),
        ("dally-like:models=VGG19", "unknown model of workload dally-like: 'VGG19'; did you mean 'VGG'"),
        ("dally-like:scale=gangs", "did you mean 'gang'"),
        ("helios-like:mean_gpus=900", "mean_gpus=900"),
        ("philly-sample:gpu=v100", "unknown gpu of workload philly-sample: 'v100'"),
        ("philly-sample:hours=25", "hours=25; expected 1/6 to 24"),
        ("philly-sample:start=24", "start=24; expected an hour of the day"),
        ("philly-sample:large_share=12", "large_share=12; expected a share"),
        ("philly-sample:jobs=0", "jobs=0"),
        ("bsbf-physical:gpu=k80", "unknown gpu of workload bsbf-physical"),
        ("bsbf-physical:span_s=0", "span_s=0"),
        ("cassini-poisson:load=0", "load=0"),
        ("cassini-poisson:hours=-1", "hours=-1"),
        ("cassini-poisson:hours=1e9", "expected at most 1000000"),
        ("cassini-poisson:parallel=pipeline", "unknown value of workload cassini-poisson: parallel"),
        ("cassini-dynamic:cluster_gpus=7", "cluster_gpus=7; expected 8 to"),
        ("cassini-dynamic-mp:arrive_s=0", "arrive_s=0"),
        ("cassini-snapshot:id=6", "id=6; expected 1 to 5"),
        ("cassini-snapshot:workers=1", "workers=1; expected 2 to 12"),
        ("cassini-snapshots", "did you mean 'cassini-snapshot'"),
        ("", "empty"),
    ],
)
def test_bad_parameters_are_one_sentence(word, said):
    with pytest.raises(InputError, match=said) as caught:
        open_workload(word)
    assert "\n" not in str(caught.value)


def test_summary_counts_by_hand():
    """Jobs of 1, 1, 8 GPUs for 10, 30, 5 s at 0, 3600, 7200 s: 80 GPU-seconds, half of them on 8 GPUs."""
    facts = summary(Workload.from_arrays("w", [0, 3600, 7200], [1, 1, 8], [10, 30, 5], model=["a", "a", ""]))
    assert facts["jobs"] == 3
    assert facts["gpu_hours"] == pytest.approx(80 / 3600)
    assert facts["busy_gpus"] == pytest.approx(80 / 7205)
    assert [(row["gpus"], row["jobs"], row["gpu_time_share"]) for row in facts["gpus"]] == [
        (1, 2, 0.5),
        (8, 1, 0.5),
    ]
    assert facts["gap_s"]["mean"] == 3600
    assert facts["models"] == {"a": pytest.approx(2 / 3), "unknown": pytest.approx(1 / 3)}
    assert facts["hours"][:4] == [8.0, 8.0, 8.0, 0.0]


@pytest.mark.parametrize(
    "word", ["poisson", "batch", "philly-like:jobs=3000", "helios-like:jobs=20000", "poisson:jobs=1"]
)
def test_reports_and_pictures_of_every_shape(word, tmp_path):
    from rich.console import Console

    workload = open_workload(word)
    out = io.StringIO()
    print_report(workload, Console(file=out, width=100))
    assert "GPU demand" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 100
    draw(workload, tmp_path / "w.png")
    assert (tmp_path / "w.png").stat().st_size > 10_000


def test_a_picture_that_cannot_be_written_is_one_sentence(tmp_path):
    for path in (tmp_path / "w.nothing", tmp_path / "none" / "w.png"):
        with pytest.raises(InputError, match="cannot be written"):
            draw(open_workload("poisson:jobs=5"), path)


def test_without_matplotlib_the_message_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"clustergym\[report\]"):
        draw(open_workload("poisson:jobs=5"), tmp_path / "w.png")
