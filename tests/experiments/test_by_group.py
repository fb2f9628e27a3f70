"""Metrics by groups of jobs (`--set by=user`): which groups there are, their numbers by hand, and where they are shown.

LOG on 8 GPUs in order of arrival, days of 24 h: a runs at once, b waits 50 s for it, c arrives on the next day at 1 h.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.playing.by_group import MOST, groups_of
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.evaluation_setting import GROUPS, Setting
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload

HEAD = "job_id,arrival_s,gpus,duration_s,user,tenant,model,level,deadline_s\n"
LOG = f"{HEAD}a,0,8,100,ann,x,VGG,0,90\nb,50,8,60,bob,y,VGG,2,200\nc,90000,4,30,ann,,BERT,2,\n"
WORDS = ("--topology", "flat:machines=1", "--network", "none", "--policies", "fifo:head=strict")
EXPECTED = {  # group -> jobs, mean JCT, mean queueing delay
    "user": {"ann": (2, 65.0, 0.0), "bob": (1, 110.0, 50.0)},
    "tenant": {"x": (1, 100.0, 0.0), "y": (1, 110.0, 50.0), "unknown": (1, 30.0, 0.0)},
    "model": {"VGG": (2, 105.0, 25.0), "BERT": (1, 30.0, 0.0)},
    "gpus": {"4": (1, 30.0, 0.0), "8": (2, 105.0, 25.0)},
    "level": {"0": (1, 100.0, 0.0), "2": (2, 70.0, 25.0)},
    "hour": {"0": (2, 105.0, 25.0), "1": (1, 30.0, 0.0)},
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path / "log.csv"


def setting(workload: object, by: str, **options) -> Setting:
    return Setting.of("Delay", "flat:machines=1", str(workload), "none", by=by, **options)


def groups(metrics: dict[str, float], by: str) -> dict[str, tuple[float, float, float]]:
    names = [name.partition("=")[2][:-1] for name in metrics if name.startswith(f"jct_mean[{by}=")]
    shown = ("jobs_finished", "jct_mean", "queueing_delay_mean")
    return {name: tuple(metrics[f"{metric}[{by}={name}]"] for metric in shown) for name in names}


@pytest.mark.parametrize("by", EXPECTED)
def test_groups_by_hand(log, by):
    """a 100 s; b 110 s, of which 50 without GPUs; c 30 s, at 90,000 s = 25 h."""
    assert groups(play(setting(log, by), "fifo:head=strict", 0).metrics, by) == EXPECTED[by]


def test_every_group_of_cluster_jobs_is_tried_by_hand():
    assert set(GROUPS) == {*EXPECTED, "region", "copy"}


def test_waits_slowdown_and_late_jobs_of_a_group(log):
    """Of level 2 b took 110 s for 60 and c 30 for 30, waits are 50 and 0 s (P95 47.5); a ends at 100, due at 90."""
    metrics = play(setting(log, "level"), "fifo:head=strict", 0).metrics
    assert metrics["slowdown_mean[level=2]"] == pytest.approx((110 / 60 + 1) / 2)
    assert metrics["queueing_delay_p95[level=2]"] == pytest.approx(47.5)
    assert [metrics[f"slo_violation_rate[level={level}]"] for level in (0, 2)] == [1.0, 0.0]
    log.write_text(LOG.replace(",90\n", ",\n").replace(",200\n", ",\n"))
    assert "slo_violation_rate[level=0]" not in play(setting(log, "level"), "fifo", 0).metrics
    assert "data_wait_rate[level=0]" not in metrics


def test_the_smaller_groups_are_the_others():
    """Of MOST + 2 users with 3, 2, 1, 1, ... jobs the last two join; `others` who is a user of that name joins them."""
    users = ["u0"] * 3 + ["others"] * 2 + [f"u{number}" for number in range(1, MOST + 1)]
    jobs = Workload.from_arrays("made", np.arange(len(users)) * 10.0, [1] * len(users), [5.0] * len(users), user=users)
    found = {group: int(members.sum()) for group, members in groups_of(jobs, "user", jobs).items()}
    assert list(found)[:3] == ["u0", "others", "u1"] and len(found) == MOST
    assert found["u0"] == 3 and found["others"] == 2 + 2 and found[f"u{MOST - 2}"] == 1


def test_slices_have_the_groups_of_their_log(tmp_path, capsys, monkeypatch):
    """MOST users with two jobs each in hour 0, and `few` with one there and one in hour 1, who is no large group."""
    monkeypatch.setenv("COLUMNS", "200")
    rows = [f"{user}-{n},{60 * user},1,10,u{user}" for user in range(MOST) for n in (0, 1)]
    path = tmp_path / "log.csv"
    rows = [*rows, "f,3599,1,10,few", "g,3600,1,10,few", "h,7199,1,10,u0"]
    path.write_text("job_id,arrival_s,gpus,duration_s,user\n" + "\n".join(rows) + "\n")
    word = f"slices:file={path},hours=1"
    metrics = play(setting(word, "user"), "fifo", 1).metrics
    assert groups(metrics, "user") == {"u0": (1, 10.0, 0.0), "others": (1, 10.0, 0.0)}
    assert run(["evaluate", "Delay", "--workload", word, *WORDS, "--set", "by=user", "--seeds", "1"]) == 0
    said = capsys.readouterr().out
    assert f"others: all but the {MOST} groups with most jobs" in said


def test_hours_of_slices_are_those_of_the_log_if_slices_are_days(log):
    """Slices begin at midnight of the arrival clock, so c is of hour 1 in slice 1 too; hours of 6 h would be mixed."""
    log.write_text(LOG + "d,170000,1,1,ann,,,0,\n")
    found = play(setting(f"slices:file={log},hours=24", "hour"), "fifo", 1).metrics
    assert groups(found, "hour") == {"1": (1, 30.0, 0.0), "23": (1, 1.0, 0.0)}
    with pytest.raises(InputError, match="slices of 6 h begin at any hour of a day; expected slices of 24 h, or days"):
        play(setting(f"slices:file={log},hours=6", "hour"), "fifo", 0)


def test_groups_of_a_window_are_of_the_jobs_in_it(log):
    """From 10 s on b and c arrive."""
    metrics = play(setting(log, "user", window="10/inf"), "fifo:head=strict", 0).metrics
    assert groups(metrics, "user") == {"ann": (1, 30.0, 0.0), "bob": (1, 110.0, 50.0)}


def test_capped_jobs_are_of_the_gang_that_they_get(log):
    """a asks 16 GPUs and gets the 8 that there are."""
    log.write_text(LOG.replace("a,0,8", "a,0,16"))
    with pytest.warns(UserWarning, match="capped 1 of 3 jobs"):
        metrics = play(setting(log, "gpus", oversize="cap"), "fifo:head=strict", 0).metrics
    assert groups(metrics, "gpus") == EXPECTED["gpus"]


def test_jobs_that_have_not_arrived_are_in_no_group(log):
    """At 120 s a has finished and b runs; c is not there yet."""
    metrics = play(setting(log, "user", horizon_s=120.0), "fifo:head=strict", 0).metrics
    assert groups(metrics, "user")["ann"] == (1, 100.0, 0.0) and metrics["jobs_finished[user=bob]"] == 0.0


@pytest.mark.parametrize("by", ["user", "tenant", "model", "level", "region", "copy"])
def test_a_column_that_is_empty_in_all_jobs_is_said(tmp_path, by):
    (tmp_path / "log.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,1,5\n")
    what = "regions" if by in ("region", "copy") else by
    with pytest.raises(InputError, match=f"by = {by}: the jobs of workload 'log' have no {what}"):
        play(setting(tmp_path / "log.csv", by), "fifo", 0)


def test_job_groups_and_shared_gpus_have_groups_too():
    """Six parameter-server jobs of 16 machines each; jobs that share GPUs by their gang."""
    jobs = play(Setting.of("Grouping", "flat:machines=32", "harmony-like:jobs=6", by="gpus"), "harmony", 0).metrics
    assert jobs["jobs_finished[gpus=16]"] == 6.0 and jobs["jct_mean[gpus=16]"] == jobs["jct_mean"]
    shared = play(Setting.of("Sharing", None, "philly-sample:jobs=20", by="gpus"), "fifo", 0).metrics
    assert sum(value for name, value in shared.items() if name.startswith("jobs_finished[")) == 20.0


def test_groups_are_in_tables_pages_and_files(log, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "out"
    words = ["evaluate", "Delay", "--workload", str(log), *WORDS, "--set", "by=user", "--seeds", "0"]
    assert run([*words, "--logdir", str(out)]) == 0
    said = capsys.readouterr().out
    assert "slowdown" in said and "ann" in said and "bob" in said and "means over the seeds that have some" in said
    assert [line.split()[-1] for line in said.splitlines() if " ann " in line] == ["2"]  # a count has no decimals
    row = pq.read_table(out / "results.parquet").to_pylist()[0]
    assert row["jct_mean[user=bob]"] == 110.0 and row["by"] == "user"
    assert run(["compare", str(out), "--out", str(out / "page.html")]) == 0
    assert "bob" in capsys.readouterr().out
    page = (out / "page.html").read_text()
    assert "<h3>By user</h3>" in page and "<td>bob</td><td>110.0</td><td>50.0</td>" in page
    assert run(["compare", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["settings"][0]["policies"][0]
    assert found["metrics"]["jct_mean[user=bob]"]["mean"] == 110.0


def test_several_groupings_are_tables_of_their_own(log, capsys):
    """As each alone."""
    both = play(setting(log, "user/gpus"), "fifo", 0).metrics
    alone = [play(setting(log, by), "fifo", 0).metrics for by in ("user", "gpus")]
    assert both == pytest.approx(alone[0] | alone[1], nan_ok=True)
    assert len(both) > max(map(len, alone))
