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
from clustergym.tests.support.geo_small import A100, REGIONS

EAST, WEST, SOUTH = range(3)
PASS_S = 34.0
ANYWHERE = ([(A100, 8)], [], 6, 0, 0.0)  # reads nothing: any region with A100, no limit to its wait


def priced(folder, price, carbon=None):
    """A tariff of these hours, (regions, hours)."""
    carbon = np.ones_like(price) if carbon is None else carbon
    path = folder / "prices.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "hour", "price_per_mwh", "carbon_g_per_kwh"])
        for region, hour in np.ndindex(*price.shape):
            writer.writerow([REGIONS[region], hour, price[region, hour], carbon[region, hour]])
    return Tariff(str(path))


def begun(tariff, rows, word="cheapest", arrival_s=None, duration_s=600.0):
    """Of each workload when it started, and in which region it ran."""
    geo = geo_small.demands(rows)
    arrival = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s, float)
    workload = Workload.from_arrays("rows", arrival, geo.units, np.full(len(rows), duration_s)).with_geo(geo)
    simulator = Simulator(geo_small.small_topology(), tariff=tariff)
    simulator.reset(workload)
    simulator.run(make(f"{word}:slow=none" if ":" not in word else f"{word},slow=none").decider(simulator))
    assert simulator.done
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
