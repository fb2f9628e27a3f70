"""`cheapest` and `greenest`: where and when workloads run, by hand, and what that saves."""

from __future__ import annotations

import csv

import gymnasium
import numpy as np
import pytest

from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies import make
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.costs.tariff import Tariff
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_small import A100, CPU, REGIONS, V100

EAST, WEST, SOUTH = range(3)
PASS_S = 34.0
EITHER = (A100, V100)
ANYWHERE = ([(A100, 8)], [], 6, 0, 0.0)  # reads nothing: any region with A100, no limit to its wait


def priced(folder, price, carbon=None, watts=""):
    """A tariff of these hours, (regions, hours)."""
    carbon = np.ones_like(price) if carbon is None else carbon
    path = folder / "prices.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "hour", "price_per_mwh", "carbon_g_per_kwh"])
        for region, hour in np.ndindex(*price.shape):
            writer.writerow([REGIONS[region], hour, price[region, hour], carbon[region, hour]])
    return Tariff(str(path), watts)


def run(tariff, rows, word="cheapest", arrival_s=None, duration_s=600.0, speeds="none"):
    """A simulator at the end of a run."""
    geo = geo_small.demands(rows, quota=np.full((2, 2), 10**9))
    arrival = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s, float)
    workload = Workload.from_arrays("rows", arrival, geo.units, np.full(len(rows), duration_s)).with_geo(geo)
    simulator = Simulator(geo_small.small_topology(), tariff=tariff, speeds=speeds)
    simulator.reset(workload)
    simulator.run(make(f"{word}:slow=none" if ":" not in word else f"{word},slow=none").decider(simulator))
    assert simulator.done
    return simulator


def begun(*args, **options):
    """Of each workload when it started, and in which region it ran; the arguments are those of `run`."""
    simulator = run(*args, **options)
    first = simulator.jobs()["first_start_s"].tolist()
    return [(time_s, int(region)) for time_s, region in zip(first, simulator.state.last_region, strict=False)]


def prices(**changes):
    """50 everywhere in 48 hours but for what is given as `east_3=10.0`."""
    found = np.full((3, 48), 50.0)
    for place, value in changes.items():
        region, _, hour = place.partition("_")
        found[REGIONS.index(region), int(hour)] = value
    return found


def test_a_workload_waits_for_the_cheapest_hour_of_any_region(tmp_path):
    ((start_s, region),) = begun(priced(tmp_path, prices(south_5=10.0, west_9=20.0)), [ANYWHERE])
    assert region == SOUTH and 5 * 3600.0 <= start_s <= 5 * 3600.0 + PASS_S


def test_nobody_waits_for_an_hour_that_costs_as_much_or_lies_beyond_the_forecast(tmp_path):
    tariff = priced(tmp_path, prices(south_5=50.0, west_25=10.0))
    assert begun(tariff, [ANYWHERE])[0][0] == 0.0
    tariff = priced(tmp_path, prices(south_5=10.0))
    assert begun(tariff, [ANYWHERE], "cheapest:forecast_h=5")[0][0] == 0.0  # a pass after the hour begins is later
    assert begun(tariff, [ANYWHERE], "cheapest:forecast_h=0")[0][0] == 0.0
    assert begun(tariff, [ANYWHERE], "cheapest:forecast_h=6")[0][1] == SOUTH


def test_a_level_that_limits_the_wait_limits_the_hold(tmp_path):
    """Level 2 may wait for 1,200 s: for an hour that begins 1,000 s after it arrives, not 1,180 s: a pass is later."""
    tariff = priced(tmp_path, prices(south_1=10.0))
    limited = ([(A100, 8)], [], 2, 0, 0.0)
    (held,), (not_held,) = (begun(tariff, [limited], arrival_s=[at]) for at in (2600.0, 2420.0))
    assert held[1] == SOUTH and 3600.0 <= held[0] <= 3600.0 + PASS_S
    assert not_held[0] <= 2420.0 + PASS_S


def test_carbon_counts_for_greenest_alone(tmp_path):
    """East is cheapest and west has the least carbon in the only hour there is."""
    price = np.array([[10.0], [50.0], [50.0]])
    tariff = priced(tmp_path, price, np.array([[500.0], [20.0], [500.0]]))
    assert begun(tariff, [ANYWHERE])[0] == (0.0, EAST)
    assert begun(tariff, [ANYWHERE], "greenest")[0] == (0.0, WEST)


def test_who_finds_no_room_in_the_cheapest_region_goes_to_the_next(tmp_path):
    """South has 16 A100: two of four workloads; west is next."""
    price = np.array([[50.0], [20.0], [10.0]])
    found = begun(priced(tmp_path, price), [ANYWHERE] * 4)
    assert [region for _, region in found] == [SOUTH, SOUTH, WEST, WEST] and {start for start, _ in found} == {0.0}


def test_without_prices_they_are_mast():
    assert begun(None, [ANYWHERE] * 3, "cheapest") == begun(None, [ANYWHERE] * 3, "mast")


def speeds_of(folder, **by_type):
    """A csv of how fast every model is on a type."""
    path = folder / "speeds.csv"
    path.write_text("model,type,speed\n" + "".join(f"*,{kind},{speed}\n" for kind, speed in by_type.items()))
    return str(path)


def hourly(east, west, south, hours=48):
    """The same in every hour."""
    return np.repeat([[float(east)], [float(west)], [float(south)]], hours, axis=1)


def test_watts_and_speed_count_beside_the_price(tmp_path):
    """V100, twice as fast as A100, are in the west alone.

    At 400 W a second of A100's work draws 200 there: 60 x 200 is below 50 x 400, though its price is the highest. At
    1,200 W it draws 600: 40 x 600 is above 50 x 400, though its price is the lowest.
    """
    rows, speeds = [([(EITHER, 8)], [], 6, 0, 0.0)], speeds_of(tmp_path, V100=2)
    tariff = priced(tmp_path, hourly(50, 60, 50), watts="V100:0/400,A100:0/400")
    assert begun(tariff, rows, speeds=speeds) == [(0.0, WEST)]
    assert begun(tariff, rows) == [(0.0, EAST)]  # all as fast
    tariff = priced(tmp_path, hourly(50, 40, 50), watts="V100:0/1200,A100:0/400")
    assert begun(tariff, rows, speeds=speeds) == [(0.0, EAST)]
    assert begun(tariff, [([(V100, 8)], [], 6, 0, 0.0)], speeds=speeds) == [(0.0, WEST)]  # it accepts no other


def test_carbon_is_weighed_with_watts_and_speed_too(tmp_path):
    rows, speeds = [([(EITHER, 8)], [], 6, 0, 0.0)], speeds_of(tmp_path, V100=2)
    carbon = hourly(50, 60, 50)
    tariff = priced(tmp_path, np.ones_like(carbon), carbon, watts="V100:0/400,A100:0/400")
    assert begun(tariff, rows, "greenest", speeds=speeds) == [(0.0, WEST)]


def test_what_free_units_draw_anyway_does_not_count(tmp_path):
    """V100 draw 100 W more when held, A100 350: less in the west, though a held V100 draws more than a held A100."""
    rows, speeds = [([(EITHER, 8)], [], 6, 0, 0.0)], speeds_of(tmp_path, V100=1.5)
    tariff = priced(tmp_path, hourly(50, 60, 50), watts="V100:800/900,A100:50/400")
    assert begun(tariff, rows, speeds=speeds) == [(0.0, WEST)]


def test_all_parts_count(tmp_path):
    """With 4 machines of 1,000 W: (8 x 400 + 4,000) x 50 is above (8 x 800 + 4,000) / 2 x 60; without them below."""
    speeds = speeds_of(tmp_path, V100=2)
    tariff = priced(tmp_path, hourly(50, 60, 90), watts="V100:0/800,A100:0/400,CPU:0/1000")
    assert begun(tariff, [([(EITHER, 8), (CPU, 4)], [], 6, 0, 0.0)], speeds=speeds) == [(0.0, WEST)]
    assert begun(tariff, [([(EITHER, 8)], [], 6, 0, 0.0)], speeds=speeds) == [(0.0, EAST)]


def test_a_region_costs_what_its_free_types_do(tmp_path):
    """32 V100 in the west take two of 16; then the west has only A100, which cost more there than in the east."""
    rows, speeds = [([(EITHER, 16)], [], 6, 0, 0.0)] * 4, speeds_of(tmp_path, V100=2)
    tariff = priced(tmp_path, hourly(50, 60, 70), watts="V100:0/400,A100:0/400")
    assert begun(tariff, rows, speeds=speeds) == [(0.0, WEST), (0.0, WEST), (0.0, EAST), (0.0, EAST)]


def test_where_no_region_has_free_units_it_costs_what_the_fastest_of_the_region_do(tmp_path):
    """All are held at the lowest priority. By price the newcomer would stop one in the east."""
    full = [([(A100, 32)], [], 6, 0, 0.0), *[([(A100, 16)], [], 6, 0, 0.0)] * 3, ([(V100, 32)], [], 6, 0, 0.0)]
    rows, speeds = [*full, ([(EITHER, 16)], [], 0, 0, 0.0)], speeds_of(tmp_path, V100=2)
    tariff = priced(tmp_path, hourly(50, 60, 70), watts="V100:0/400,A100:0/400")
    arrival_s = [0.0] * 5 + [34.0]
    assert begun(tariff, rows, arrival_s=arrival_s, speeds=speeds)[-1] == (34.0, WEST)


def test_a_hold_waits_for_a_better_price_by_what_a_workload_costs(tmp_path):
    """In the west it costs 50 x 200, in the east and the south 50 x 400: 30 x 400 is no better, 45 x 200 is."""
    rows, speeds = [([(EITHER, 16)], [], 6, 0, 0.0)], speeds_of(tmp_path, V100=2)
    watts = "V100:0/400,A100:0/400"
    assert begun(priced(tmp_path, prices(south_5=30.0), watts=watts), rows, speeds=speeds) == [(0.0, WEST)]
    ((start_s, region),) = begun(priced(tmp_path, prices(south_5=30.0, west_7=45.0), watts=watts), rows, speeds=speeds)
    assert region == WEST and 7 * 3600.0 <= start_s <= 7 * 3600.0 + PASS_S


def test_nobody_waits_for_a_cheaper_type(tmp_path):
    """V100, on which it costs half, are held when the third comes: it starts on A100 at the same price all hours."""
    rows, speeds = [([(EITHER, 16)], [], 6, 0, 0.0)] * 3, speeds_of(tmp_path, V100=2)
    tariff = priced(tmp_path, hourly(50, 50, 50), watts="V100:0/400,A100:0/400")
    assert [start_s for start_s, _ in begun(tariff, rows, speeds=speeds)] == [0.0] * 3


@pytest.mark.parametrize("seed", range(12))
def test_where_units_are_free_the_bill_is_the_least_of_all_regions_and_never_rises_with_fewer_watts(tmp_path, seed):
    """Two workloads, at prices without hours, on GPUs that draw nothing when free: recomputed without the policy."""
    rng = np.random.default_rng(seed)
    price, units = rng.uniform(10.0, 100.0, 3), rng.choice([4, 8], 2).tolist()
    watts = dict(zip(("A100", "V100"), rng.uniform(100.0, 900.0, 2).tolist(), strict=True))
    speed = dict(zip(("A100", "V100"), rng.uniform(0.5, 4.0, 2).tolist(), strict=True))
    speeds, rows = speeds_of(tmp_path, **speed), [([(EITHER, size)], [], 6, 0, 0.0) for size in units]

    def least(watts):
        """$: in each region on the fastest type there."""
        fastest = ["A100", max(watts, key=lambda kind: speed[kind]), "A100"]
        by_region = [cost * watts[kind] / speed[kind] for cost, kind in zip(price, fastest, strict=True)]
        return min(by_region) * sum(units) * 600.0 / 3600.0 / 1e6

    def paid(watts):
        words = ",".join(f"{kind}:0/{value!r}" for kind, value in watts.items())
        tariff = priced(tmp_path, np.repeat(price[:, None], 2, axis=1), watts=f"{words},CPU:0/0")
        return run(tariff, rows, speeds=speeds).metrics()["energy_cost"]

    before = paid(watts)
    assert before == pytest.approx(least(watts), rel=1e-9)
    for kind, value in watts.items():
        fewer = {**watts, kind: value / 2}
        after = paid(fewer)
        assert after == pytest.approx(least(fewer), rel=1e-9) and after <= before * (1.0 + 1e-12)


def test_a_forecast_below_zero_is_refused():
    with pytest.raises(InputError, match="forecast_h = -1: expected hours from 0"):
        make("cheapest:forecast_h=-1")


WORDS = ("mast:regions=3,gpus=96", "mast-like:regions=3,gpus=96,days=2,jobs=60,longest_h=6,tables=20")


def test_each_saves_what_it_is_for():
    """Of what jobs draw: the idle power of the cluster is no policy's to save, so it is set to nothing."""
    watts = "V100:0/300,A100:0/400,H100:0/700,CPU:0/350"
    setting = Setting.of("Geo", *WORDS, prices="synthetic:seed=5", watts=watts)
    found = {
        word: [play(setting, word, seed).metrics for seed in range(3)] for word in ("mast", "cheapest", "greenest")
    }
    dollars = {word: sum(one["energy_cost"] for one in mine) for word, mine in found.items()}
    kg = {word: sum(one["carbon_kg"] for one in mine) for word, mine in found.items()}
    assert dollars["cheapest"] < 0.9 * dollars["mast"] and kg["greenest"] < 0.9 * kg["mast"]
    assert dollars["cheapest"] < dollars["greenest"] and kg["greenest"] < kg["cheapest"]


def test_played_in_the_environment_it_is_as_alone():
    options = {"topology": WORDS[0], "workload": WORDS[1], "prices": "synthetic:seed=5"}
    env = gymnasium.make("clustergym/Geo-v0", **options).unwrapped
    env.reset(seed=3)
    policy, ended = make("cheapest"), False
    while not ended:
        _, _, ended, cut, info = env.step(policy.act(env))
        assert not cut and not info["invalid_action"]
    alone = Simulator(env.simulator.config)
    alone.use(env.simulator.rule)  # as in the environment the first look at tables waits for a pass
    alone.reset(env.simulator.workload, int(env.simulator.state.seed))
    assert alone.run(make("cheapest").decider(alone)) == info["metrics"]
