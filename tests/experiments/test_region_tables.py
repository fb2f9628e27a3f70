"""What evaluations over regions print, of all jobs and of each level, tenant or region; and pictures with `--set`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.describing import describe_topology
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.metric_registry import columns
from clustergym.simulator.regions.copy_times import KINDS

WORDS = (
    "--topology",
    "mast:regions=2,gpus=48",
    "--workload",
    "mast-like:regions=2,gpus=48,jobs=12,longest_h=1,tables=4",
)
GEO = ("evaluate", "Geo", "--policies", "random", "--seeds", "0", *WORDS)


def setting_of(by):
    return Setting.of("Geo", WORDS[1], WORDS[3], by=by)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Tables that need not fold their headers."""
    monkeypatch.setenv("COLUMNS", "200")


def test_late_starts_allocation_waits_and_copies_are_shown_over_regions_alone(capsys):
    assert run(list(GEO)) == 0
    told = capsys.readouterr().out
    for header in ("late", "starts", "allocated", "data", "waits", "copied", "[TB]"):
        assert header in told
    own = ["slo_violation_rate", "allocation_rate", "data_wait_rate", "bytes_moved"]
    shown = [metric.name for metric in columns(["jct_mean", "makespan", "home_start_rate", *own])]
    assert [metric.name for metric in columns(["jct_mean", *own])] == ["jct_mean"] and shown == ["jct_mean", *own]


@pytest.mark.parametrize("by", ["level", "tenant", "region"])
def test_metrics_of_groups_add_up_to_those_of_all(by):
    metrics = play(setting_of(by), "random", 0).metrics
    groups = [name.partition("[")[2] for name in metrics if name.startswith("jct_mean[")]
    assert groups and all(group.startswith(f"{by}=") and group.endswith("]") for group in groups)
    counts = np.array([metrics[f"jobs_finished[{group}"] for group in groups])
    means = np.array([metrics[f"jct_mean[{group}"] for group in groups])
    assert counts.sum() == metrics["jobs_finished"] == 12.0
    assert (counts * means).sum() / 12.0 == pytest.approx(metrics["jct_mean"], rel=1e-12)
    assert "jct_mean" in play(setting_of(None), "random", 0).metrics


def test_groups_have_a_table_and_are_in_the_json(capsys):
    assert run([*GEO, "--set", "by=region"]) == 0
    told = capsys.readouterr().out
    assert "region0" in told and "finished" in told
    assert run([*GEO, "--set", "by=region", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["metrics"]["jobs_finished[region=region0]"] > 0 and row["setting"]["by"] == "region"


def test_how_long_copies_took_is_told_by_kind(capsys):
    """The counts are of complete copies, whose times are those that `copy_seconds` tells."""
    setting = Setting.of("Geo", WORDS[1], WORDS[3], by="copy")
    metrics = play(setting, "mast", 0).metrics
    kinds = [name[len("copies[copy=") : -1] for name in metrics if name.startswith("copies[")]
    assert kinds and set(kinds) <= set(KINDS)
    for kind in kinds:
        assert metrics[f"copies[copy={kind}]"] >= 1.0
        times = [metrics[f"copy_seconds_p{share}[copy={kind}]"] for share in (50, 90, 99)]
        assert times == sorted(times) and times[0] >= 1.0
    assert run(["evaluate", "Geo", "--policies", "mast", "--seeds", "0", *WORDS, "--set", "by=copy"]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in (kinds[0], "complete", "P50", "P99")) and "JCT mean" in told


def test_what_is_no_group_is_refused():
    with pytest.raises(InputError, match="by 'team'"):
        setting_of("team")
    with pytest.raises(InputError, match="have no level but 0"):
        play(Setting.of("Delay", "flat:machines=1", "poisson:jobs=2", by="level"), "fifo", 0)


def test_machines_without_gpus_are_no_gpus():
    assert describe_topology("mast:regions=2,gpus=48").startswith("mast:regions=2,gpus=48 (48 GPUs, ")
    assert "48 CPU machines" in describe_topology("mast:regions=2,gpus=48")


def test_a_picture_is_of_the_setting_that_set_gives(capsys, tmp_path):
    told = ("render", "Geo", "--policy", "random", *WORDS, "--out", str(tmp_path / "run.svg"), "--json")
    assert run([*told, "--set", "horizon_s=600"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["makespan"] <= 600.0
    assert run([*told, "--set", "by=level"]) == 2
    assert "are of metrics, not of pictures" in capsys.readouterr().err
