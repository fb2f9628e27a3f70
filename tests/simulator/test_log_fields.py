"""Cells of schedulers' logs: durations, times in zones, states, GPUs among resources, lists of hosts."""

from __future__ import annotations

import math
import warnings
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.jobs.left_out import LeftOut
from clustergym.simulator.jobs.trace_columns import Table, dates_to_s
from clustergym.simulator.workloads.readers import log_fields

PACIFIC = "America/Los_Angeles"


def table(*cells: str) -> Table:
    return Table(
        "log", {"c": list(cells)}, np.arange(len(cells)) + 2, "line", left_out=LeftOut("log", len(cells), "drop")
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93784),  # 86,400 + 7,200 + 180 + 4
        ("1-02:03", 93780),
        ("1-02", 93600),
        ("02:03:04", 7384),
        ("100:00:00", 360000),
        ("17:02", 1022),
        ("00:43.900", 43.9),
        ("30", 30),
        ("3.250", 3.25),
        ("UNLIMITED", math.inf),
        *((unknown, math.nan) for unknown in ("Partition_Limit", "INVALID", "Unknown", "None", "")),
    ],
)
def test_a_duration_in_each_of_the_forms_of_slurm(text, seconds):
    assert log_fields.durations_s(table(text), "c").tolist() == pytest.approx([seconds], nan_ok=True)


@pytest.mark.parametrize("text", ["x", "-5", "1:2:3:4", "1-", "00:99", "1-2-3", "1_0", "٣"])
def test_what_is_no_duration_is_a_bad_row_that_names_the_cell(text):
    strict = Table("log", {"c": [text]}, np.array([2]), "line")
    with pytest.raises(InputError, match=r"log, line 2, column 'c': .*; expected a duration such as 1-02:03:04"):
        log_fields.durations_s(strict, "c")


@pytest.mark.parametrize(
    ("text", "zone", "seconds"),
    [
        ("2024-03-01T10:00:00", "UTC", 1709287200),
        ("2024-03-01 10:00:00.250000", "UTC", 1709287200.25),
        ("2024-03-01T10:00:00", PACIFIC, 1709287200 + 8 * 3600),  # PST
        ("2024-07-01T10:00:00", PACIFIC, 1719828000 + 7 * 3600),  # PDT
        ("2023-03-01 00:18:22+08:00", PACIFIC, 1677601102),  # 16:18:22 UTC of the day before
        ("2024-03-01T10:00:00Z", PACIFIC, 1709287200),
        ("2024-03-01T10:00:00-0730", "UTC", 1709287200 + 7.5 * 3600),
        ("1709287200", PACIFIC, 1709287200),
        ("1709287200.5", "UTC", 1709287200.5),
        *((unknown, "UTC", math.nan) for unknown in ("Unknown", "None", "")),
    ],
)
def test_a_time_in_a_zone_with_an_offset_or_since_1970(text, zone, seconds):
    assert log_fields.times_s(table(text), "c", zone).tolist() == pytest.approx([seconds], nan_ok=True, abs=0)


@pytest.mark.parametrize("text", ["2024-13-01 10:00:00", "2024-03-01", "1709287200000", "10:00", "2024-03-01 25:00:00"])
def test_what_is_no_time_is_a_bad_row(text):
    strict = Table("log", {"c": [text]}, np.array([2]), "line")
    with pytest.raises(InputError, match=r"log, line 2, column 'c': .*; expected a date YYYY-MM-DD HH:MM:SS"):
        log_fields.times_s(strict, "c")


def test_hours_that_clocks_repeat_or_leave_out_are_read_as_before_the_change_and_counted():
    """5 November 2017, 2:00 PDT = 9:00 UTC: 1:30 is 8:30 and 9:30 UTC; 12 March: 2:30 is none, -8 h: 10:30 UTC."""
    found = table("2017-11-05 01:30:00", "2017-11-05 00:30:00", "2017-03-12 02:30:00", "2017-11-05 02:30:00")
    with pytest.warns(
        UserWarning, match=f"'c': 2 times lie in an hour that the clocks of {PACIFIC} repeat or leave out"
    ):
        seconds = log_fields.times_s(found, "c", PACIFIC)
    utc = ["2017-11-05 08:30:00", "2017-11-05 07:30:00", "2017-03-12 10:30:00", "2017-11-05 10:30:00"]
    assert seconds.tolist() == dates_to_s(utc).tolist()


def test_a_repeated_hour_is_the_second_one_where_another_time_came_before():
    """It began at 1:50 PDT = 8:50 UTC and ended at 1:10: that is PST, 9:10 UTC, 20 min later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin_s = log_fields.times_s(table("2017-11-05 01:50:00"), "c", PACIFIC)
        end_s = log_fields.times_s(table("2017-11-05 01:10:00"), "c", PACIFIC, after_s=begin_s)
    assert (end_s - begin_s).tolist() == [1200.0]


@pytest.mark.parametrize(
    "zone", [PACIFIC, "Europe/Berlin", "America/Sao_Paulo", "Asia/Shanghai", "Australia/Lord_Howe"]
)
def test_every_half_hour_of_two_years_is_what_zoneinfo_says(zone):
    """Before and after each change, at midnight too (Sao Paulo), half an hour (Lord Howe)."""
    times = np.arange("2016-01-01T00:00:30", "2018-01-01", np.timedelta64(30, "m"), dtype="datetime64[s]").astype(str)
    clock, place = log_fields.Clock(zone), ZoneInfo(zone)
    for text in times.tolist():
        both = tuple(datetime.fromisoformat(text).replace(tzinfo=place, fold=fold).timestamp() for fold in (0, 1))
        assert clock.read(text) == both


def test_times_in_utc_are_the_bits_of_dates():
    texts = ["2017-10-01 00:00:00", "1969-12-31 23:59:59.999999", "2023-05-06 07:08:09.123457"]
    assert log_fields.times_s(table(*texts), "c").tolist() == dates_to_s(texts).tolist()


def test_an_unknown_zone_is_refused():
    with pytest.raises(InputError, match="zone 'Mars/Olympus' is not known; expected one such as America/Los_Angeles"):
        log_fields.times_s(table(""), "c", "Mars/Olympus")


def test_states_in_which_a_job_has_ended():
    states = ["COMPLETED", "CANCELLED by 1000", "CANCELLED+", "NODE_FAIL", "requeued", "RUNNING", "PENDING", ""]
    assert log_fields.have_ended(table(*states), "c").tolist() == [True] * 5 + [False] * 3


@pytest.mark.parametrize(
    ("text", "count", "types"),
    [
        ("billing=8,cpu=8,gres/gpu:a100=8,gres/gpu=8,mem=4G,node=2", 8, "a100"),  # once with, once without
        ("cpu=8,gres/gpu=3,gres/gpu:a100=1,gres/gpu:a40=2", 3, "a100|a40"),
        ("gres/gpu=8,gres/gpu:a100=4", 8, "a100"),  # the other type is not tracked
        ("gres/gpu:a100=4,gres/gpu:v100=4", 8, "a100|v100"),
        ("gpu:a100:4(IDX:0-3)", 4, "a100"),
        ("gpu:a100:2(IDX:0,2),gpu:v100:1(IDX:3)", 3, "a100|v100"),
        ("gpu:4", 4, ""),
        ("gres:gpu:1", 1, ""),
        ("gpu", 1, ""),
        ("gpu:2080ti:2", 2, "2080ti"),
        ("gres/gpu:a100_1g.5gb=2", 2, "a100_1g.5gb"),
        ("cpu=8,mem=4G,gres/gpumem=1G,gres/gpuutil=50,gres/shard=2", 0, ""),
        ("", 0, ""),
        ("(null)", 0, ""),
    ],
)
def test_gpus_with_and_without_types_are_counted_once(text, count, types):
    assert log_fields.gpus_of(text) == (count, types)


def test_a_number_of_gpus_that_is_none_is_a_bad_row():
    found = table("gres/gpu=x", "gres/gpu=2")
    assert log_fields.gpus(found, "c")[0][1] == 2
    assert found.left_out is not None
    assert found.left_out.gone.tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gn[01-03,07]", "gn01 gn02 gn03 gn07"),
        ("cpn-k07-05-[01-02],login", "cpn-k07-05-01 cpn-k07-05-02 login"),
        ("a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4"),
        ("n[9-11]", "n9 n10 n11"),
        ("node7", "node7"),
        ("None assigned", ""),
        ("", ""),
        ("gn[3-1]", None),
        ("gn[x]", None),
        ("gn[01-02", None),
        ("gn[01],gn02]", None),
        ("gn[0-99999999]", None),
        ("a[0-999]b[0-999]", None),
    ],
)
def test_lists_of_hosts_are_written_out(text, hosts):
    assert log_fields.hosts_of(text) == hosts
