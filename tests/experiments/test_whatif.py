"""`clustergym whatif`: from Slurm's accounting to a report."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from clustergym.experiments.cli import run
from clustergym.tests.support.docs_blocks import commands
from clustergym.tests.support.paths import ROOT

LOG = ROOT / "docs" / "examples" / "slurm-log.txt"
SMALL = """JobID|User|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES
1|ann|2026-03-02T08:00:00|2026-03-02T08:00:10|2026-03-02T08:01:50|00:01:40|00:10:00|COMPLETED|gres/gpu=4
2|bob|2026-03-02T08:00:00|2026-03-02T08:01:50|2026-03-02T08:03:30|00:01:40|00:10:00|FAILED|gres/gpu=4
3|bob|2026-03-02T08:00:00|2026-03-02T08:03:30|2026-03-02T08:03:50|00:00:20|00:10:00|COMPLETED|gres/gpu=1
"""


def seconds(one, other):
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


def figures(out):
    """Runs of `--json` by policy."""
    return {row["policy"]: row["metrics"] for row in json.loads(out)["runs"]}


def test_three_numbers_by_hand(tmp_path, monkeypatch, capsys):
    """4 GPUs. As it was: waits 10, 110, 210 s, mean 110; the last end 230 s after the first submission; 820 GPU-seconds
    of 920: 89.1 %. FIFO starts a and b 10 s earlier each, and c too, at 200: mean wait 100, ended at 220 s.
    """
    (tmp_path / "log.txt").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    words = ["whatif", "log.txt", "--topology", "flat:machines=1,gpus_per_machine=4", "--quiet"]
    assert run([*words, "--policies", "replay fifo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {row["policy"]: row["metrics"] for row in document["runs"]}
    assert document["log"]["waits"]["mean"] == found["replay"]["queueing_delay_mean"] == 110.0
    assert (found["replay"]["makespan"], found["fifo"]["makespan"]) == (230.0, 220.0)
    assert found["replay"]["gpu_utilisation"] == pytest.approx(820 / 920)
    assert found["fifo"]["queueing_delay_mean"] == 100.0
    page = (tmp_path / document["report"]).read_text()
    assert "every job starts when it did" in page and "110" in page


def test_the_command_of_the_page_gives_what_the_page_shows(tmp_path, monkeypatch, capsys):
    """Of the made log: rows with GPUs that ended, and by plain sums the mean wait and the time to the last end."""
    rows = [line.split("|") for line in LOG.read_text().splitlines()[1:]]
    jobs = [row for row in rows if "gres/gpu" in row[9]]
    assert len(jobs) == 400 and LOG.stat().st_size <= 60_000
    waits_s = [seconds(row[3], row[4]) for row in jobs]
    last_s = seconds(min(row[3] for row in jobs), max(row[5] for row in jobs))
    (tmp_path / LOG.name).write_text(LOG.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = ROOT / "docs" / "start" / "your-log.md"
    (words,) = [words for words in commands(page) if words[0] == "whatif"]
    assert run([*words, "--quiet"]) == 0
    printed = capsys.readouterr().out
    for line in page.read_text().partition("```text\n")[2].partition("```")[0].splitlines():
        assert " ".join(line.split()) in " ".join(printed.split()), line
    assert f"mean {sum(waits_s) / 400:,.0f} s" in printed and f"{last_s:,.0f}" in printed
    report = (tmp_path / "whatif-slurm-log" / "report.html").read_text()
    assert [report.count(f"<h3>By {one}</h3>") for one in ("gpus", "user", "hour")] == [1, 1, 1]
    assert run([*words, "--quiet", "--json"]) == 0  # from the runs that are kept
    assert figures(capsys.readouterr().out)["replay"]["queueing_delay_mean"] == pytest.approx(sum(waits_s) / 400)


def test_the_made_log_is_what_its_script_writes():
    import runpy

    made = runpy.run_path(str(LOG.parent / "make_slurm_log.py"))["rows"]()
    assert "\n".join(made) + "\n" == LOG.read_text()


def test_slices_give_intervals_and_say_that_replay_is_no_measure(tmp_path, monkeypatch, capsys):
    """Five days, whose jobs are 400 together; hours are left out where slices are no days."""
    (tmp_path / LOG.name).write_text(LOG.read_text())
    monkeypatch.chdir(tmp_path)
    words = ["whatif", "slices:file=slurm-log.txt,hours=24", "--topology", "flat:machines=8", "--quiet"]
    assert run([*words, "--policies", "replay fifo las"]) == 0
    printed = capsys.readouterr().out
    assert "against fifo" in printed
    assert "which slices of 24 h do not hold: compare other policies with each other" in printed
    assert "report, with waits by gpus/user/hour: whatif-slurm-log/report.html" in printed
    half_days = ["whatif", "slices:file=slurm-log.txt,hours=12", *words[2:], "--logdir", "other"]
    assert run([*half_days, "--policies", "fifo", "--seeds", "0-1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    assert [row["seed"] for row in found] == [0, 1] and found[0]["setting"]["by"] == "gpus/user"


def test_another_setting_needs_another_folder_or_fresh(tmp_path, monkeypatch, capsys):
    """What is refused names an option that `whatif` has; 4 GPUs as in the numbers by hand: FIFO waits 100 s."""
    (tmp_path / "log.txt").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    words = ["whatif", "log.txt", "--policies", "fifo", "--quiet", "--json", "--topology"]
    assert run([*words, "flat:machines=2"]) == 0
    assert run([*words, "flat:machines=1,gpus_per_machine=4"]) == 2
    assert "give another folder, or --fresh to forget it" in capsys.readouterr().err
    assert run([*words, "flat:machines=1,gpus_per_machine=4", "--fresh"]) == 0
    assert figures(capsys.readouterr().out)["fifo"]["queueing_delay_mean"] == 100.0


def test_a_log_of_one_job_is_reported(tmp_path, monkeypatch, capsys):
    """Its run holds GPUs once: one stretch, which the folder gives back for the chart of GPUs in use."""
    (tmp_path / "log.csv").write_text("job_id,arrival_s,gpus,duration_s,start_s\na,0,2,9,3\n")
    monkeypatch.chdir(tmp_path)
    assert run(["whatif", "log.csv", "--topology", "flat:machines=1", "--policies", "replay fifo", "--json"]) == 0
    assert [row["jct_mean"] for row in figures(capsys.readouterr().out).values()] == [12.0, 9.0]
    assert (tmp_path / "whatif-log" / "gpus-in-use.svg").exists()


def test_a_log_without_starts_is_refused_in_a_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "log.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,1,9\n")
    monkeypatch.chdir(tmp_path)
    assert run(["whatif", "log.csv", "--topology", "flat:machines=1"]) == 1
    error = capsys.readouterr().err
    assert "policy replay: workload 'log' does not say of 1 of its 1 jobs when they started" in error
