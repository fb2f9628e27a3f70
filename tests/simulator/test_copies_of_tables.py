"""Copies of tables: which goes first, caps of regions, and drawn times (regions/wan_flow.py, copy_times.py)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.base.decisions import Drop, Move, Replicate
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.regions.copy_times import BULK, HIGH, HOURS, KINDS, ON_DEMAND, SHARES, time_at
from clustergym.simulator.regions.region_metrics import copy_seconds
from clustergym.simulator.warehouse.warehouse import Jobs
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.geo_player import Anything, check_regions, random_run
from clustergym.tests.support.geo_small import A100

EAST, WEST, SOUTH = range(3)
CLICKS, USERS, ADS, LOGS, VIDEOS = range(5)
LATER = [([(A100, 8)], [CLICKS], 6, 0, 10.0)] * 2
FREE = math.inf
NEAR = 1e-10


def laid(rows=LATER, arrival_s=(0, 0), high=(), egress=(FREE,) * 3, ingress=(FREE,) * 3, seed=0, wan=None, **options):
    """A simulator at its first decision point; jobs of high priority known to the slow path read `high`."""
    geo = geo_small.demands(rows)
    geo = replace(geo, history=known(high))
    workload = Workload.from_arrays("rows", np.array(arrival_s, float), geo.units, np.full(len(rows), 1e6))
    world = geo_small.small_world()
    wan = world.wan_bytes_per_s if wan is None else wan
    ends = {"egress_bytes_per_s": np.array(egress), "ingress_bytes_per_s": np.array(ingress)}
    world = replace(world, wan_bytes_per_s=wan, **ends)
    simulator = Simulator(world.topology(), **options)
    simulator.reset(workload.with_geo(geo), seed)
    return simulator


def known(tables):
    n = len(tables)
    zeros = np.zeros(n, np.int64)
    return Jobs(
        training=np.ones(n, bool),
        gpu_type=zeros,
        gpus=zeros,
        gpu_hours=zeros.astype(float),
        cpu_hours=zeros.astype(float),
        level=zeros,
        app=zeros - 1,
        team=zeros,
        recurring=np.ones(n, bool),
        first=np.arange(n + 1),
        table=np.array(tables, np.int64),
    )


def asked(simulator, *copies):
    for table, region in copies:
        simulator.apply(Replicate(table, region))


def ends(simulator):
    """When which copies are complete, in order: seconds, table, target."""
    view, found = simulator.view, []
    while view.transfers:
        before = {(table, target) for table, _, target, _ in view.transfers}
        simulator.advance()
        gone = before - {(table, target) for table, _, target, _ in view.transfers}
        found += [(round(view.now_s, 6), *one) for one in sorted(gone)]
    return found


def flow(simulator, source, target):
    """Bytes per second over a link now."""
    return float(simulator.state.wan_flow[:, source, target] @ (simulator.state.wan_count[:, source, target] > 0))


def test_two_copies_on_one_link_share_the_cap_of_a_region_in_place_of_the_link():
    simulator = laid(egress=(0.5e9, FREE, FREE))
    asked(simulator, (CLICKS, WEST), (USERS, WEST))  # 100 and 200 GB at 0.25 GB/s each, then at 0.5
    assert ends(simulator) == [(400.0, CLICKS, WEST), (600.0, USERS, WEST)]


def test_what_a_region_may_send_is_shared_by_its_links_and_one_that_is_full_leaves_the_rest_to_the_other():
    simulator = laid(egress=(1e9, FREE, FREE), ingress=(FREE, 0.2e9, FREE))
    asked(simulator, (CLICKS, WEST), (USERS, SOUTH))
    assert flow(simulator, EAST, WEST) == 0.2e9 and flow(simulator, EAST, SOUTH) == pytest.approx(0.8e9)
    # west takes 100 GB in 500 s; south 200 GB in 250 s
    assert ends(simulator) == [(250.0, USERS, SOUTH), (500.0, CLICKS, WEST)]


def test_copies_not_links_are_equal_where_a_cap_of_a_region_is_shared():
    simulator = laid(egress=(0.9e9, FREE, FREE))
    asked(simulator, (CLICKS, WEST), (USERS, WEST), (CLICKS, SOUTH))
    assert flow(simulator, EAST, WEST) == pytest.approx(0.6e9) and flow(simulator, EAST, SOUTH) == pytest.approx(0.3e9)


def test_a_copy_comes_from_the_region_that_may_send_it_fastest():
    simulator = laid(egress=(0.1e9, FREE, FREE))
    asked(simulator, (CLICKS, WEST))
    simulator.advance()
    asked(simulator, (CLICKS, SOUTH))
    assert [(source, target) for _, source, target, _ in simulator.view.transfers] == [(WEST, SOUTH)]


def test_copies_for_high_priority_overtake_those_in_bulk_on_their_link():
    simulator = laid(high=[CLICKS], copy_order="urgent")
    asked(simulator, (USERS, WEST))
    asked(simulator, (CLICKS, WEST))
    assert flow(simulator, EAST, WEST) == 1e9
    assert ends(simulator) == [(100.0, CLICKS, WEST), (300.0, USERS, WEST)]  # of 200 GB none was sent in between
    counts = simulator.state.copy_times.sum(axis=1).tolist()
    assert counts[HIGH] == counts[BULK] == 1 and counts[ON_DEMAND] == 0


def test_equals_share_whatever_they_are_for():
    simulator = laid(high=[CLICKS])
    asked(simulator, (USERS, WEST), (CLICKS, WEST))
    assert ends(simulator) == [(200.0, CLICKS, WEST), (300.0, USERS, WEST)]


def test_a_copy_that_goes_first_does_so_at_the_caps_of_regions_too():
    simulator = laid(high=[CLICKS], copy_order="urgent", egress=(1.5e9, FREE, FREE))
    asked(simulator, (USERS, SOUTH), (CLICKS, WEST))
    assert flow(simulator, EAST, WEST) == 1e9 and flow(simulator, EAST, SOUTH) == 0.5e9
    # 100 GB to west by 100 s, when 150 of 200 GB for south are left: at 1 GB/s until 250 s
    assert ends(simulator) == [(100.0, CLICKS, WEST), (250.0, USERS, SOUTH)]


LACKING = [([(A100, 8)], [CLICKS], 6, 0, 10.0), ([(A100, 8)], [USERS, ADS], 6, 0, 10.0)]  # homes east; east and west


def test_a_workload_that_comes_and_waits_for_data_makes_the_copies_of_its_tables_go_first():
    simulator = laid(LACKING, arrival_s=(0, 100), copy_order="urgent")
    asked(simulator, (CLICKS, WEST), (USERS, WEST))  # in bulk, half the link each
    simulator.advance()
    view = simulator.view
    assert view.now_s == 100.0 and view.regions_of(1) == []
    assert view.transfers == [(CLICKS, EAST, WEST, 50e9), (USERS, EAST, WEST, 150e9)]  # nothing of them is lost
    assert ends(simulator) == [(250.0, USERS, WEST), (300.0, CLICKS, WEST)]
    assert simulator.metrics()["data_wait_mean"] == 150.0 and simulator.metrics()["bytes_moved"] == 300e9
    asked(simulator, (ADS, SOUTH))
    assert simulator.state.copy_times.sum(axis=1).tolist() == [0, 0, 2]  # they are told as what they were asked as


def test_what_a_waiting_workload_reads_is_copied_on_demand():
    simulator = laid(LACKING, copy_order="urgent")
    asked(simulator, (CLICKS, WEST), (USERS, WEST))
    assert ends(simulator) == [(200.0, USERS, WEST), (300.0, CLICKS, WEST)]
    assert simulator.state.copy_times.sum(axis=1).tolist() == [1, 0, 1]


def test_the_times_that_are_drawn_are_the_published_ones():
    assert [time_at(share) / 3600.0 for share in SHARES] == pytest.approx(HOURS)
    drawn = np.quantile([time_at(share) for share in (np.arange(10_000) + 0.5) / 10_000], [0.5, 0.9, 0.99]) / 3600.0
    assert drawn == pytest.approx([2.1, 3.7, 4.9], rel=1e-3)
    assert all(time_at(a) < time_at(b) for a, b in zip(np.linspace(0, 0.99, 99), np.linspace(0.01, 1, 99), strict=True))


def test_a_copy_takes_its_time_whatever_its_size_where_the_link_allows_it_and_asks_no_more():
    simulator = laid(copy_time="published")
    asked(simulator, (CLICKS, WEST), (USERS, WEST), (CLICKS, SOUTH))
    s = simulator.state
    times = {
        (int(s.transfer_table[i]), int(s.transfer_to[i])): s.transfer_bytes[i] / s.transfer_weight[i] for i in range(3)
    }
    assert len(set(times.values())) == 3 and all(360.0 < time_s < 5.5 * 3600.0 for time_s in times.values())
    rates = sum(float(s.transfer_weight[i]) for i in range(2))
    assert flow(simulator, EAST, WEST) == pytest.approx(rates)
    found = {(table, target): time_s for time_s, table, target in ends(simulator)}
    assert found == {key: pytest.approx(time_s, rel=1e-9) for key, time_s in times.items()}


def test_a_link_that_is_too_slow_delays_all_its_copies_alike():
    slow = laid(copy_time="published", egress=(1e6, FREE, FREE))
    free = laid(copy_time="published")
    for simulator in (slow, free):
        asked(simulator, (CLICKS, WEST), (USERS, SOUTH))
    weights = free.state.transfer_weight[:2]
    assert slow.state.transfer_weight[:2].tolist() == weights.tolist()  # what is drawn knows nothing of links
    for target in (WEST, SOUTH):
        assert flow(slow, EAST, target) == pytest.approx(flow(free, EAST, target) * 1e6 / weights.sum())
    asked(slow, (ADS, EAST))
    assert flow(slow, WEST, EAST) == pytest.approx(float(slow.state.transfer_weight[2]))  # other regions do not care


def test_times_are_drawn_by_seed_table_target_and_decision_and_copies_on_demand_get_half():
    def times(seed, *copies, rows=LATER):
        simulator = laid(rows, seed=seed, copy_time="published")
        asked(simulator, *copies)
        s = simulator.state
        return [s.transfer_bytes[i] / s.transfer_weight[i] for i in range(len(copies))]

    both = times(0, (CLICKS, WEST), (USERS, SOUTH))
    assert both == times(0, (CLICKS, WEST), (USERS, SOUTH)) and both[0] == times(0, (CLICKS, WEST))[0]
    assert len({*both, *times(1, (CLICKS, WEST)), *times(0, (CLICKS, SOUTH)), *times(0, (USERS, WEST))}) == 5
    again = laid(copy_time="published")
    asked(again, (CLICKS, WEST))
    again.apply(Drop(CLICKS, WEST))
    asked(again, (CLICKS, WEST))
    assert again.state.transfer_bytes[0] / again.state.transfer_weight[0] not in both
    (bulk,), (demanded,) = times(0, (USERS, WEST)), times(0, (USERS, WEST), rows=LACKING)
    assert demanded == pytest.approx(bulk / 2.0, rel=1e-12)


def test_how_long_copies_took_is_told_by_kind():
    simulator = laid(high=[CLICKS], copy_order="urgent")
    asked(simulator, (USERS, WEST), (CLICKS, WEST))
    assert all(math.isnan(one) for one in copy_seconds(simulator.state, BULK, [0.5, 0.9]))
    ends(simulator)
    for kind, took_s in ((HIGH, 100.0), (BULK, 300.0)):
        (least, median, most) = copy_seconds(simulator.state, kind, [0.0, 0.5, 1.0])
        assert least <= took_s <= most <= least * 1.07 and least < median < most
    assert len(KINDS) == len(simulator.state.copy_times)


def max_min(rate, egress, ingress, weight, most):
    """The reference: shares of links (n, n) by progressive filling in small steps of links, in plain Python."""
    n = len(rate)
    flows, still = np.zeros((n, n)), weight > 0.0
    most = np.where(still, most, 0.0) * np.where(still, weight, 1.0)
    while still.any():
        rise = np.where(still, weight, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = [
                np.where(still, (rate - flows) / rise, np.inf).min(),
                np.where(rise.sum(1) > 0, (egress - flows.sum(1)) / rise.sum(1), np.inf).min(),
                np.where(rise.sum(0) > 0, (ingress - flows.sum(0)) / rise.sum(0), np.inf).min(),
                np.where(still, (most - flows) / rise, np.inf).min(),
            ]
        flows = flows + rise * max(0.0, min(steps))
        full = (flows > rate - NEAR) | (flows > most - NEAR)
        full |= (flows.sum(1) > egress - NEAR)[:, None] | (flows.sum(0) > ingress - NEAR)[None, :]
        still &= ~full
    return flows


def caps(rng, n):
    return np.where(rng.random(n) < 0.7, rng.uniform(0.1, 3.0, n), np.inf)


@calm(40)
@given(seed=st.integers(0, 10_000), published=st.booleans())
def test_flows_are_max_min_lane_after_lane(seed, published):
    rng = np.random.default_rng(seed)
    scale = 1e7 if published else 1e9
    simulator = laid(
        high=[CLICKS, LOGS],
        egress=caps(rng, 3) * scale,
        ingress=caps(rng, 3) * scale,
        wan=rng.uniform(0.1, 2.0, (3, 3)) * scale,
        copy_time="published" if published else "bandwidth",
        copy_order="urgent",
    )
    for table in rng.permutation(5).tolist():
        for region in rng.permutation(3).tolist():
            try:
                simulator.apply(Replicate(table, region))
            except InvalidDecision:  # no room
                continue
    s = simulator.state
    left, egress, ingress = s.wan_rate[:3, :3].copy(), s.egress_rate[:3].copy(), s.ingress_rate[:3].copy()
    for lane in range(2):
        used = s.wan_count[lane, :3, :3] > 0
        weight = np.where(used, s.wan_weight[lane, :3, :3], 0.0)
        flows = np.where(used, s.wan_flow[lane, :3, :3], 0.0)
        expected = max_min(left / scale, egress / scale, ingress / scale, weight / scale, 1.0 if published else np.inf)
        assert flows / scale == pytest.approx(expected, rel=1e-8, abs=1e-8)
        left, egress, ingress = left - flows, egress - flows.sum(1), ingress - flows.sum(0)
    assert s.wan_count[:, :3, :3].sum() > 2


@calm(8)
@given(seed=st.integers(0, 10_000))
def test_links_caps_storage_and_copies_are_sound_at_any_time(seed):
    """`check_regions` adds up what links sent and holds it to rates and caps, and storage to the bytes of copies."""
    rng = np.random.default_rng(seed)
    simulator = random_run(
        seed,
        jobs=15,
        egress_bytes_per_s=caps(rng, 3) * 1e9,
        ingress_bytes_per_s=caps(rng, 3) * 1e9,
        copy_time=("bandwidth", "published")[seed % 2],
        copy_order=("equal", "urgent")[seed // 2 % 2],
    )
    before = {}

    def check(simulator):
        check_regions(simulator)
        view, s = simulator.view, simulator.state
        there = {(table, region) for table in range(5) for region in view.copies(table)}
        came = there - before.get("there", there)
        assert came <= before.get("coming", set())  # no copy is there that was not on its way,
        assert len(came) <= s.copy_times.sum() - before.get("complete", 0)  # and all of whose bytes had come
        before.update(there=there, complete=s.copy_times.sum())
        before["coming"] = {(table, target) for table, _, target, _ in view.transfers}

    Anything(seed, check).play(simulator, instants=120)
    assert before["there"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mast:egress_gbps=0", "egress_gbps=0; expected a number above 0"),
        ("mast:ingress_gbps=-1", "ingress_gbps=-1; expected a number above 0"),
        ("mast:ingress_gbps=fast", "expected a number"),
    ],
)
def test_bad_caps_of_the_preset_are_one_sentence(word, said):
    with pytest.raises(InputError) as error:
        Topology.load(word)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_caps_of_presets_and_files_are_bytes_a_second(tmp_path):
    region_network = Topology.load("mast:egress_gbps=8").region_network
    assert (
        region_network.egress_bytes_per_s.tolist() == [1e9] * 4 and np.isinf(region_network.ingress_bytes_per_s).all()
    )
    path = tmp_path / "two.yaml"
    clusters = "clusters: [{name: a, gpu_type: A100, gpu_machines: 1}]"
    path.write_text(
        f"wan_gbps: 8\nregions:\n- {{name: east, storage_tb: 1, egress_gbps: 4, {clusters}}}\n"
        f"- {{name: west, storage_tb: 1, ingress_gbps: 2, {clusters}}}\n",
        encoding="utf-8",
    )
    region_network = Topology.load(str(path)).region_network
    assert region_network.egress_bytes_per_s.tolist() == [
        0.5e9,
        FREE,
    ] and region_network.ingress_bytes_per_s.tolist() == [FREE, 0.25e9]
    path.write_text(path.read_text().replace("egress_gbps: 4", "egress_gbps: 0"), encoding="utf-8")
    with pytest.raises(InputError, match="egress_gbps"):
        Topology.load(str(path))


@pytest.mark.parametrize(("name", "value"), [("copy_time", "slow"), ("copy_order", "first"), ("copy_time", 3)])
def test_bad_options_are_one_sentence(name, value):
    with pytest.raises(InputError) as error:
        Simulator("mast", **{name: value})
    assert name in str(error.value) and "\n" not in str(error.value)


def test_a_move_of_a_home_is_a_copy_too():
    simulator = laid(copy_time="published", egress=(1e9, FREE, FREE))
    simulator.apply(Move(CLICKS, WEST))
    (end_s, *_), *others = ends(simulator)
    assert not others and end_s > 360.0 and simulator.view.home(CLICKS) == WEST
