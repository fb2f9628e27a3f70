"""What runs over regions cost: hand-worked cases, integrals in closed form and the csv."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.policies import make
from clustergym.simulator.base.decisions import Advance, Drop, Replicate, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.costs.electricity import Electricity, sums_of
from clustergym.simulator.costs.meters import integral_until
from clustergym.simulator.costs.tariff import MONTH_S, POWER_W, Tariff
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_player import Anything, find_units
from clustergym.tests.support.geo_small import A100, CPU, REGIONS
from clustergym.tests.support.paths import ROOT

EAST, WEST, SOUTH = range(3)
CLICKS, USERS = 0, 1
ONE = [([(A100, 8)], [CLICKS], 6, 0, 10.0)]
LATER = [*ONE, ([(CPU, 1)], [], 6, 0, 0.0)]
PRICES = str(ROOT / "tests" / "data" / "prices.csv")
METRICS = {"energy_kwh", "energy_cost", "carbon_kg", "egress_cost", "storage_cost", "cost_total"}


def written(folder, price, carbon=None, name="prices.csv"):
    """The csv of a table of price, float (regions, hours), and carbon; where none is given, ten times the price."""
    carbon = 10.0 * np.abs(price) if carbon is None else carbon
    rows = [
        f"{REGIONS[region]},{hour},{price[region, hour].item()},{carbon[region, hour].item()}"
        for region, hour in np.ndindex(*np.shape(price))
    ]
    path = folder / name
    path.write_text("\n".join(["region,hour,price_per_mwh,carbon_g_per_kwh", *rows]) + "\n")
    return path


def laid(tariff, rows=ONE, arrival_s=None, duration_s=7190.0, **options):
    geo = geo_small.demands(rows)
    arrival = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s, float)
    workload = Workload.from_arrays("rows", arrival, geo.units, np.full(len(rows), duration_s)).with_geo(geo)
    simulator = Simulator(geo_small.small_topology(), tariff=tariff, **options)
    simulator.reset(workload)
    return simulator


def start(simulator, job, region):
    simulator.apply(Start(job, find_units(simulator.view, job, region)))


FREE_W = {  # all units of a region free, by hand: units x watts
    EAST: 48 * POWER_W["A100"][0] + 16 * POWER_W["CPU"][0],
    WEST: 32 * POWER_W["V100"][0] + 16 * POWER_W["A100"][0] + 8 * POWER_W["CPU"][0],
    SOUTH: 16 * POWER_W["A100"][0],
}


def test_a_job_of_two_hours_costs_what_its_hours_cost(tmp_path):
    """Eight A100 for 10 s of containers and 7,190 s of work: two hours at 100 and -20 $/MWh in the east."""
    price = np.array([[100.0, -20.0], [10.0, 10.0], [0.0, 40.0]])
    simulator = laid(Tariff(str(written(tmp_path, price))))
    start(simulator, 0, EAST)
    simulator.advance()
    found = simulator.metrics()
    more_w = 8 * (POWER_W["A100"][1] - POWER_W["A100"][0])
    watts = np.array([FREE_W[EAST] + more_w, FREE_W[WEST], FREE_W[SOUTH]])
    assert simulator.view.now_s == 7200.0
    assert found["energy_kwh"] == pytest.approx(watts.sum() * 2 / 1e3, rel=1e-14)
    assert found["energy_cost"] == pytest.approx((watts @ price).sum() / 1e6, rel=1e-14)
    assert found["carbon_kg"] == pytest.approx((watts @ np.abs(price)).sum() * 10 / 1e6, rel=1e-14)
    stored = (geo_small.SIZE_BYTES.sum() * 7200.0) / 1e12 / MONTH_S * 23.0
    assert found["storage_cost"] == pytest.approx(stored, rel=1e-14) and found["egress_cost"] == 0.0
    assert found["cost_total"] == found["energy_cost"] + found["storage_cost"]


def test_watts_that_are_given_stand_for_those_that_are_known(tmp_path):
    price = np.full((3, 1), 50.0)
    path = str(written(tmp_path, price))
    simulator = laid(Tariff(path, watts="A100:0/1000,V100:0/5,CPU:0/5", storage_per_tb_month=0.0))
    start(simulator, 0, EAST)
    simulator.advance()
    found = simulator.metrics()
    assert found["energy_kwh"] == pytest.approx(16.0) and found["cost_total"] == pytest.approx(0.016 * 50.0)
    assert found["carbon_kg"] == pytest.approx(16.0 * 0.5)


def test_traffic_and_storage_of_copies_that_are_complete_broken_off_and_on_the_way():
    """Links of 1e9 bytes a second; 0.1 TB takes 100 s."""
    simulator = laid(
        Tariff(PRICES, egress_per_gb=1.0, storage_per_tb_month=MONTH_S / 100.0), LATER, [0, 50], duration_s=140.0
    )
    start(simulator, 0, EAST)
    simulator.apply(Replicate(CLICKS, WEST))  # 0.1 TB, complete at 100 s
    simulator.apply(Replicate(USERS, SOUTH))  # 0.2 TB, of which 50 GB are there when it is dropped
    simulator.advance()
    assert simulator.view.now_s == 50.0
    whole = geo_small.SIZE_BYTES.sum() / 1e12
    found = simulator.metrics()
    assert found["egress_cost"] == pytest.approx(100.0) and found["storage_cost"] == pytest.approx(0.5 * (whole + 0.3))
    simulator.apply(Drop(USERS, SOUTH))
    assert simulator.metrics()["egress_cost"] == pytest.approx(100.0)
    simulator.advance()  # the other is complete
    assert simulator.view.now_s == 100.0
    assert simulator.metrics()["egress_cost"] == pytest.approx(150.0)
    simulator.apply(Drop(CLICKS, WEST))
    start(simulator, 1, EAST)
    simulator.advance()
    found = simulator.metrics()
    assert simulator.done and simulator.view.now_s == 240.0 and found["egress_cost"] == pytest.approx(150.0)
    assert found["storage_cost"] == pytest.approx(2.4 * whole + 0.5 * 0.3 + 0.5 * 0.1)


def test_metrics_of_costs_are_there_with_prices_alone():
    simulator = laid(None)
    start(simulator, 0, EAST)
    simulator.advance()
    assert not METRICS & simulator.metrics().keys()
    assert laid(Tariff(PRICES)).metrics().keys() >= METRICS


def test_to_ask_what_a_run_costs_changes_nothing():
    found = []
    for asks in (False, True):
        simulator = laid(Tariff(PRICES), geo_small_rows(), 60.0 * np.arange(6), duration_s=9000.0)
        policy = make("mast")
        decider = policy.decider(simulator)
        while not simulator.ended:
            for decision in simulator.asked(decider):
                if asks:
                    simulator.metrics()
                simulator.apply(decision)
            simulator.advance()
        found.append(simulator.metrics())
    assert found[0] == found[1]


def geo_small_rows():
    return [*LATER, *ONE * 4]


class ByTheSecond:
    """Sums a run up from what is seen at its decision points, with the price of each piece of an hour by itself."""

    def __init__(self, simulator, table):
        self.simulator, self.table = simulator, table
        self.kwh = self.cost = self.kg = 0.0
        self.since_s = simulator.view.now_s
        self.look()

    def look(self):
        view, topology = self.simulator.view, self.simulator.topology
        held = [topology.gpu_cluster[view.gpus_of(job)] for job in view.running.tolist()]
        taken = np.bincount(np.concatenate([np.zeros(0, np.int64), *held]), minlength=topology.num_clusters)
        free = np.bincount(topology.gpu_cluster) - taken  # those of failed machines draw power too
        power = np.array([POWER_W[kind] for kind in topology.cluster_gpu_type])
        watts = free * power[:, 0] + taken * power[:, 1]
        self.watts = np.bincount(topology.cluster_region, watts, topology.num_regions)

    def book(self):
        from_s, to_s = self.since_s, self.simulator.view.now_s
        bounds = [from_s, *(3600.0 * hour for hour in range(int(from_s // 3600) + 1, math.ceil(to_s / 3600))), to_s]
        for begin, end in pairwise(bounds):
            hour = int(begin // 3600) % self.table.hours
            share = self.watts * (end - begin) / 3600.0
            self.kwh += share.sum() / 1e3
            self.cost += share @ self.table.price_per_mwh[:, hour] / 1e6
            self.kg += share @ self.table.carbon_g_per_kwh[:, hour] / 1e6
        self.since_s = to_s
        self.look()


class WithoutTheFirst(Anything):
    """Anything but the first job, which waits at all times: so every event is a decision point."""

    def decide(self, view):
        """The next job that fits."""
        for job in view.queue.tolist():
            for region in view.regions_of(job) if job > 0 else ():
                units = find_units(view, job, region)
                if units is not None:
                    return Start(job, units)
        return Advance()

    def play_on(self, simulator):
        """At this instant."""
        for _ in range(int(self.rng.integers(0, 4))):
            decision = self._pick(simulator.view)
            if getattr(decision, "job", 1) != 0:
                self._try(simulator, decision)
        for decision in simulator.asked(self):
            self._try(simulator, decision)


@pytest.mark.parametrize("seed", range(6))
def test_a_run_costs_what_its_pieces_cost(tmp_path, seed):
    """With a job that waits at all times every event is a decision point: between them nothing changes."""
    price = np.random.default_rng(seed).uniform(-20.0, 90.0, (3, 7))
    failures = Failures(region_mtbf_s=40_000.0, region_mttr_s=3_000.0)
    tariff = Tariff(str(written(tmp_path, price)), egress_per_gb=0.5)
    simulator = Simulator(geo_small.small_topology(), tariff=tariff, failures=failures, horizon_s=100_000.0)
    simulator.reset(geo_small.random_workload(seed, span_s=80_000.0, mean_s=9_000.0), seed)
    player = WithoutTheFirst(seed)
    pieces = ByTheSecond(simulator, tariff.electricity(simulator.topology))
    while not simulator.ended:
        player.play_on(simulator)
        pieces.look()
        assert 0 in simulator.view.queue
        simulator.advance()
        pieces.book()
    found = simulator.metrics()
    assert simulator.view.now_s > 60_000.0 and simulator.state.region_failures.sum() > 0
    assert found["energy_kwh"] == pytest.approx(pieces.kwh, rel=1e-12)
    assert found["energy_cost"] == pytest.approx(pieces.cost, rel=1e-12)
    assert found["carbon_kg"] == pytest.approx(pieces.kg, rel=1e-12)
    assert found["egress_cost"] >= found["bytes_moved"] / 1e9 * 0.5 > 0.0


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=5),
    st.lists(st.floats(0, 100_000), min_size=2, max_size=2),
)
def test_an_integral_is_the_sum_of_its_hours(values, bounds):
    begin, end = sorted(bounds)
    sums, hours = sums_of(np.array([values])), len(values)
    cuts = [begin, *(3600.0 * hour for hour in range(int(begin // 3600) + 1, math.ceil(end / 3600))), end]
    pieces = [(after - before) / 3600.0 * values[int(before // 3600) % hours] for before, after in pairwise(cuts)]
    found = integral_of(sums, hours, end) - integral_of(sums, hours, begin)
    assert found == pytest.approx(math.fsum(pieces), rel=1e-9, abs=1e-7)


def integral_of(sums, hours, time_s):
    kernel = getattr(integral_until, "py_func", integral_until)
    return kernel(sums, hours, 0, time_s)


# The table.


BAD = {
    "a gap": (lambda lines: lines[:2] + lines[3:], "line 3, column 'hour': '2'; expected hour 1 of region 'east' too"),
    "an end too early": (lambda lines: lines[:-1], "column 'hour': '1'; expected hour 2 of region 'south' too"),
    "an hour twice": (lambda lines: [*lines, lines[1]], "column 'hour': '0'; expected each hour of a region once"),
    "a missing region": (lambda lines: lines[:4], "no row of region 'west'; expected rows of east, west, south"),
    "a price in words": (
        lambda lines: [lines[0], "east,0,cheap,1", *lines[2:]],
        "line 2, column 'price_per_mwh': 'cheap'; expected",
    ),
    "carbon below 0": (
        lambda lines: [lines[0], "east,0,1,-1", *lines[2:]],
        "line 2, column 'carbon_g_per_kwh': '-1'; expected",
    ),
    "a missing column": (lambda lines: ["region,hour,price_per_mwh", "east,0,1"], "column 'carbon_g_per_kwh'"),
    "nothing": (lambda lines: [lines[0]], "a header but no rows"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_csv_is_told_with_file_line_and_value(tmp_path, what):
    change, told = BAD[what]
    path = written(tmp_path, np.full((3, 3), 5.0))
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    with pytest.raises(InputError) as error:
        laid(Tariff(str(path)))
    assert str(path) in str(error.value) and told in str(error.value), str(error.value)


def test_regions_of_others_are_passed_over(tmp_path):
    path = written(tmp_path, np.full((3, 3), 5.0))
    path.write_text(path.read_text() + "moon,0,1,1\n")
    table = Electricity.load(str(path), REGIONS[::-1])
    assert table.price_per_mwh.shape == (3, 3)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"watts": "A100:-5/400"}, "'-5' in 'A100:-5/400': expected watts"),
        ({"watts": "A100"}, "'A100' is not TYPE:FREE/HELD"),
        ({"egress_per_gb": -1.0}, r"egress_per_gb = -1.0: expected \$"),
        ({"storage_per_tb_month": math.nan}, "storage_per_tb_month = nan"),
        ({"prices": "nowhere.csv"}, "nowhere.csv: there is no such file"),
    ],
)
def test_what_does_not_fit_is_refused(options, told):
    with pytest.raises(InputError, match=told):
        laid(Tariff(**{"prices": PRICES, **options}))


def test_a_type_of_which_nothing_is_said_and_a_workload_without_regions_are_refused():
    with pytest.raises(InputError, match="nothing is said of L4; expected watts=L4:FREE/HELD"):
        Tariff(PRICES).watts_of("L4")
    with pytest.raises(InputError, match="asks nothing of regions: there are no prices of them"):
        Simulator("flat:machines=1", tariff=Tariff(PRICES)).reset(open_workload("batch:jobs=2"))
