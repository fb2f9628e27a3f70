"""Pictures of an evaluation: they show what was recorded, and are written for any cluster and run."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from clustergym.experiments import plots
from clustergym.experiments.evaluate import Setting, evaluate
from clustergym.experiments.tensorboard_log import folder_names

ENVIRONMENT = "clustergym/Delay-v0"


def runs_on(topology: str, workload: str = "poisson:jobs=30,backlog=10", words=("fifo", "srtf"), **more):
    return evaluate(Setting(ENVIRONMENT, topology, workload, "none", **more), words, [0, 1], record="first")


@pytest.mark.parametrize(
    ("topology", "more"),
    [
        ("flat:machines=4", {}),
        ("flat:machines=1,gpus_per_machine=16", {}),
        ("flat:machines=40,gpus_per_machine=4", {}),
        ("flat:machines=8", {"horizon_s": 1.0}),
        ("flat:machines=8", {"mtbf_s": 20_000.0}),
    ],
)
def test_every_picture_is_written(tmp_path, topology, more):
    paths = plots.write_all(runs_on(topology, **more), tmp_path)
    assert [path.name for path in paths] == ["jct-cdf.png", "over-time.png", "gantt-fifo.png", "gantt-srtf.png"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_the_distribution_ends_at_all_jobs_and_at_the_longest():
    runs = runs_on("flat:machines=4")
    axis = plots.jct_cdf(runs).axes[0]
    lines = {line.get_label(): line for line in axis.lines}
    assert set(lines) == {"fifo", "srtf"}
    x, y = lines["fifo"].get_data()
    assert (x[-1], y[-1]) == (max(run.jct_s.max() for run in runs if run.policy == "fifo"), 100.0)


def test_a_gantt_row_a_gpu_up_to_64_then_a_row_a_machine():
    small = plots.gantt("fifo", runs_on("flat:machines=8")[0].timeline)
    large = plots.gantt("fifo", runs_on("flat:machines=16")[0].timeline)
    assert small.axes[0].get_ylim() == (63.5, -0.5)
    assert large.axes[0].get_ylim() == (15.5, -0.5)
    share = large.axes[0].images[0].get_array()
    assert 0.0 <= share.min() <= share.max() <= 100.0 + 1e-9


def test_neighbours_in_time_have_different_colours():
    line = runs_on("flat:machines=2", workload="batch:jobs=60")[0].timeline
    colour = plots._job_colours(line)
    before: dict[int, int] = {}
    for job, gpus in zip(line.job.tolist(), line.gpus, strict=True):
        if len(gpus) <= 2:
            assert all(colour[before[gpu]] != colour[job] for gpu in gpus if before.get(gpu, job) != job)
        before.update(dict.fromkeys(gpus, job))


def test_bin_means_of_a_step_function():
    """1 for 10 s, then 3: the mean over 0-20 s is 2."""
    means = plots.bin_means(np.array([0.0, 10.0]), np.array([1, 3]), np.array([0.0, 5.0, 15.0, 20.0]))
    assert means.tolist() == [1.0, 2.0, 3.0]


def test_policies_that_look_alike_get_folders_of_their_own():
    names = folder_names(["las:thresholds=1/2", "las:thresholds=1,2", "a" * 300, "a" * 301])
    assert len(set(names.values())) == 4
    assert all("/" not in name and ":" not in name and len(name) <= 160 for name in names.values())
