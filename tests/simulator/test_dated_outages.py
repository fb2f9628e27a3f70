"""Outages with dates: time 0 of a log is shown as a date, and from it dates become seconds."""

from __future__ import annotations

import json

import pytest

from clustergym.experiments.cli import run
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import open_workload
from clustergym.simulator.workloads.dated_outages import from_dates

LOG = """JobID|Submit|Start|End|State|AllocTRES
1|2024-03-01T09:30:00|2024-03-01T09:30:00|2024-03-01T11:30:00|COMPLETED|gres/gpu=8
2|2024-03-02T09:30:00|2024-03-02T09:30:00|2024-03-02T10:30:00|COMPLETED|gres/gpu=8
"""
DRAINS = """start,end,what,name,notice_s
2024-03-01T10:00:00+01:00,2024-03-01 10:30:00,machine,0,
2024-03-01T08:45:00Z,2024-03-01T08:50:00Z,rack,0,600
2024-02-01 00:00:00,2024-03-01 08:30:00,machine,0,
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "log.txt").write_text(LOG)
    (tmp_path / "drains.csv").write_text(DRAINS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_list_with_dates_stops_the_jobs_of_a_log(files, capsys):
    """The log begins at 9:30 in Berlin, 8:30 UTC. Machine 0 is down from 9:00 to 10:30 UTC: from second 1,800 on, for
    5,400 s. Job 1 has run for half an hour of its two, lost with checkpoints once a day: it ends after 14,400 s.
    """
    log = ("log.txt", "--format", "sacct:zone=Europe/Berlin")
    assert run(["workload", "inspect", *log, "--json"]) == 0
    origin = json.loads(capsys.readouterr().out)["time_0"]
    assert origin == "2024-03-01T08:30:00Z"
    assert run(["workload", "inspect", *log]) == 0
    assert f"time 0 is {origin}" in capsys.readouterr().out
    assert run(["outages", "convert", "drains.csv", "--origin", origin, "--to", "outages.csv"]) == 0
    said = capsys.readouterr()
    assert "outages.csv: 2 outages; to use it: --set outages=outages.csv" in said.out
    assert f"1 of 3 outages are left out, as they end before time 0, {origin}" in said.err
    assert (files / "outages.csv").read_text().splitlines() == [
        "start_s,duration_s,what,name,notice_s",
        "1800.0,5400.0,machine,0,",
        "900.0,300.0,rack,0,600",
    ]
    (files / "drains.csv").write_text(DRAINS.splitlines()[0] + "\n" + DRAINS.splitlines()[1] + "\n")
    assert run(["outages", "convert", "drains.csv", "--origin", origin, "--to", "outages.csv"]) == 0
    capsys.readouterr()
    words = ["--workload", "log.txt", "--format", log[2], "--topology", "flat:machines=1", "--network", "none"]
    more = ["--set", "outages=outages.csv", "checkpoint_s=86400", "--policies", "fifo", "--seeds", "0", "--json", "-q"]
    assert run(["evaluate", "Delay", *words, *more]) == 0
    assert json.loads(capsys.readouterr().out)[0]["metrics"]["jct_mean"] == (14400 + 3600) / 2


def test_a_slice_of_a_log_begins_at_its_own_date(files):
    """The second day of the log begins 24 h after time 0."""
    (files / "log.txt").write_text(f"{LOG}{LOG.splitlines()[-1].replace('2|', '3|', 1).replace('03-02', '03-03')}\n")
    log = open_workload("slices:file=log.txt,hours=24", seed=1)
    whole = open_workload("log.txt")
    assert log.origin_s == whole.origin_s + 86400.0
    assert open_workload("resampled:file=log.txt,block_h=24", seed=0).origin_s is None
    assert open_workload("poisson:jobs=2").origin_s is None


def test_what_is_on_at_time_0_begins_there(files):
    (files / "drains.csv").write_text("start,end,what,name\n2024-03-01 00:00:00,2024-03-01 12:00:00,machine,0\n")
    assert from_dates("drains.csv", "2024-03-01 09:30:00").splitlines()[1] == "0.0,9000.0,machine,0"


@pytest.mark.parametrize(
    ("row", "origin", "said"),
    [
        ("2024-03-01 00:00:00,2024-03-01 12:00:00", "March", "origin 'March': expected a date YYYY-MM-DDTHH:MM:SS"),
        ("2024-03-01 00:00:00,2024-03-01 12:00:00", "", "origin '': expected a date"),
        ("2024-03-01 00:00:00,Unknown", "2024-03-01 09:30:00", "line 2, column 'end': 'Unknown'.*expected a date"),
        ("yesterday,2024-03-01 00:00:00", "2024-03-01 09:30:00", "line 2, column 'start': 'yesterday'.*a date"),
        ("2024-03-02 00:00:00,2024-03-01 12:00:00", "2024-03-01 09:30:00", "column 'end'.*expected a date after start"),
    ],
)
def test_what_is_no_date_is_refused(files, row, origin, said):
    (files / "drains.csv").write_text(f"start,end,what,name\n{row},machine,0\n")
    with pytest.raises(InputError, match=said):
        from_dates("drains.csv", origin)


def test_a_list_with_dates_names_what_is_down(files, capsys):
    words = ["outages", "convert", "drains.csv", "--origin", "2024-03-01 09:30:00", "--to", "o.csv", "--servers", "3"]
    assert run(words) == 2
    assert "--servers goes without --origin" in " ".join(capsys.readouterr().err.split())
