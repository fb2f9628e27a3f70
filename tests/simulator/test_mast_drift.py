"""`mast-like` with demand that changes: families that are replaced, peaks by time zones, and storage that is tight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import open_workload
from clustergym.simulator.workloads.mast_drift import in_zones, known_s
from clustergym.tests.support import geo_small

DAY_S = 86_400.0
DRIFTING = "mast-like:days=3,jobs=700,tables=100,gpus=512,drift=0.3,seed=2"


def rows_of(workload, day):
    return np.flatnonzero(workload.arrival_s // DAY_S == day)


def tables_of(workload, day):
    geo = workload.geo
    return np.unique(geo.table[np.isin(geo.owner, rows_of(workload, day))])


def test_a_share_of_the_families_is_replaced_each_day_and_the_others_come_alike():
    workload = open_workload(DRIFTING)
    assert len(workload) == 700
    names = [workload.job_id[rows_of(workload, day)] for day in range(3)]
    recurring = [{name.split(".")[0] for name in of_day if name[0] == "r"} for of_day in names]
    for before, after in ((0, 1), (1, 2)):
        stay = len(recurring[before] & recurring[after]) / len(recurring[after])
        assert 0.6 < stay < 0.8
    for key in recurring[0] & recurring[2]:
        rows = [row for row, name in enumerate(workload.job_id) if name.split(".")[0] == key]
        assert len(rows) == 3 and len(set(workload.gpus[rows])) == len(set(workload.duration_s[rows])) == 1


def test_new_tables_come_into_use_and_old_ones_go_out_of_it():
    drifting, steady = open_workload(DRIFTING), open_workload(DRIFTING.replace("drift=0.3", "drift=0"))
    new, same = (len(np.setdiff1d(tables_of(one, 2), tables_of(one, 0))) for one in (drifting, steady))
    gone = len(np.setdiff1d(tables_of(drifting, 0), tables_of(drifting, 2)))
    assert min(new, gone) > 2 * max(same, 1)


def test_the_slow_path_counts_on_the_last_24_hours_alone():
    workload = open_workload(DRIFTING)
    geo, names = workload.geo, [name.split(".")[0] for name in workload.job_id]
    known = np.flatnonzero(geo.history.training)
    assert (geo.known_s[known, 0] < geo.known_s[known, 1]).all()
    assert np.isinf(geo.known_s[len(known) :]).all()  # analytics
    assert not geo.known(0.0).training.all() and geo.known(-1e9).training.sum() == 0
    for now_s in (0.0, DAY_S, 1.5 * DAY_S):
        last_day = (workload.arrival_s > now_s - DAY_S) & (workload.arrival_s <= now_s)
        lately = {names[row] for row in np.flatnonzero(geo.recurring & last_day)}
        counted = int(geo.known(now_s).training.sum())
        assert counted >= len(lately)
        if now_s >= DAY_S:  # what came on the day before the first is in no row
            assert counted <= 1.1 * len(lately)
    seen = Simulator("mast:gpus=512", tables_every_s=DAY_S)
    seen.reset(workload)
    assert len(seen.view.warehouse().jobs) == len(geo.known(float(seen.state.now_s))) < len(geo.history)


def test_what_is_known_when_by_hand():
    """Two come daily, one of them from the second day on; the third came on the day before the first alone."""
    name = np.array(["a.-1", "c.-1", "a.0", "b.1", "a.1"], object)
    row, times = known_s(name, np.array([-500.0, -100.0, 10.0, 90_000.0, 86_500.0]))
    assert row.tolist() == [0, 1, 3]
    assert times.tolist() == [[-500.0, 86_500.0 + DAY_S], [-100.0, -100.0 + DAY_S], [90_000.0, 90_000.0 + DAY_S]]


def test_what_is_known_goes_through_files(tmp_path):
    workload = open_workload("mast-like:days=2,jobs=80,tables=20,drift=0.5")
    workload.save(tmp_path / "days.csv")
    again = open_workload(str(tmp_path / "days.csv")).geo
    assert np.array_equal(again.known_s, workload.geo.known_s) and len(again.known_s) > 0
    history = (tmp_path / "days.history.csv").read_text().splitlines()
    (tmp_path / "days.history.csv").write_text("\n".join([history[0], history[1].rpartition(",")[0] + ",never"]) + "\n")
    with pytest.raises(InputError, match="'until_s'"):
        open_workload(str(tmp_path / "days.csv"))


def test_what_is_known_has_a_row_for_each_job():
    asked = geo_small.demands([([(0, 8)], [0], 3, 0, 0.0)])
    with pytest.raises(InputError, match=r"known_s has shape \(1, 2\)"):
        replace(asked, known_s=np.zeros((1, 2)))


@given(
    arrivals=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30),
    ahead=st.sampled_from([0.0, 3.0, 12.0, 18.0]),
    days=st.sampled_from([0.3, 1.0, 2.0, 2.5]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_time_zones_keep_the_order_and_the_span(arrivals, ahead, days):
    span_s = days * DAY_S
    at = np.sort(np.array(arrivals) * span_s)
    found = in_zones(at, np.full(len(at), ahead), span_s)
    assert (np.diff(found) >= -1e-6).all() and found.min() >= -1e-6 and found.max() <= span_s + 1e-6
    if ahead == 0.0:
        assert found == pytest.approx(at, abs=1e-3)
    if days == 2.0:  # the same hour of the other day
        apart_s = np.abs(in_zones((at + DAY_S) % span_s, np.full(len(at), ahead), span_s) - found) % DAY_S
        assert np.minimum(apart_s, DAY_S - apart_s) == pytest.approx(0.0, abs=1.0)


def test_each_region_peaks_at_15_h_of_its_own_clock():
    """Clocks of the second of four regions are 6 h ahead: it peaks at 9 h of the first one's."""
    word = "mast-like:jobs=20000,tables=400,gpus=4096,seed=1"
    plain, moved = open_workload(word), open_workload(f"{word},zones=on")
    assert np.array_equal(np.sort(plain.duration_s), np.sort(moved.duration_s))
    home = moved.geo.tables.home[moved.geo.table[moved.geo.first[:-1]]]
    peaks = {}
    for region in range(4):
        angle = 2.0 * np.pi / DAY_S * moved.arrival_s[home == region]
        if len(angle) > 1500:
            peaks[region] = np.angle(np.exp(1j * angle).sum()) * 12.0 / np.pi % 24.0
    assert len(peaks) > 1
    for region, peak_h in peaks.items():
        apart_h = abs(peak_h - (15.0 - 6.0 * region) % 24.0)
        assert min(apart_h, 24.0 - apart_h) < 2.0


@pytest.mark.parametrize("ratio", [1.25, 2.0, 20.0])
def test_tables_fill_so_much_of_the_storage_as_homes_allow(ratio):
    topology = Topology.load("mast:regions=4,gpus=256")
    room = topology.region_network.storage_bytes
    for seed in range(5):
        workload = open_workload(f"mast-like:jobs=100,tables=200,storage_ratio={ratio}", seed=seed)
        tables = workload.geo.tables
        stored = np.bincount(tables.home, tables.size_bytes, 4)
        assert (stored * min(ratio, 1.2) <= room * (1 + 1e-9)).all()
        has = room.sum() / stored.sum()
        assert has >= ratio * (1 - 1e-9)
        is_bound = (stored * min(ratio, 1.2) >= room * (1 - 1e-6)).any()
        assert is_bound or has == pytest.approx(ratio, rel=1e-6)
        if ratio == 20.0:
            assert has == pytest.approx(ratio, rel=1e-6)
        plain = open_workload("mast-like:jobs=100,tables=200", seed=seed)
        assert np.array_equal(plain.arrival_s, workload.arrival_s)
        assert np.array_equal(plain.geo.tables.home, tables.home)
