"""What Geo-v0 and DataPlacement-v0 charge for $ and for CO2 beside a reward that has a name."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.paths import ROOT

pytestmark = pytest.mark.usefixtures("run_by_python")

SMALL = {
    "topology": "mast:regions=2,gpus=48",
    "workload": "mast-like:regions=2,gpus=48,jobs=12,longest_h=2,tables=6",
}
PRICED = {**SMALL, "prices": str(ROOT / "tests" / "data" / "prices.csv"), "egress_per_gb": 0.5}
GEO, TABLES = "clustergym/Geo-v0", "clustergym/DataPlacement-v0"


def played(env_id, **options):
    """The return of random legal actions, and the metrics."""
    env = gymnasium.make(env_id, **options)
    _, info = env.reset(seed=2)
    rng, total, ended = np.random.default_rng(0), 0.0, False
    while not ended:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, reward, terminated, truncated, info = env.step(action)
        total, ended = total + reward, terminated or truncated
    return total, info["metrics"]


@pytest.mark.parametrize("env_id", [GEO, TABLES])
@pytest.mark.parametrize("reward", ["jct", "makespan", "slowdown"])
def test_a_return_is_that_of_the_name_less_what_is_spent(env_id, reward):
    plain, without = played(env_id, reward=reward, **SMALL)
    same, metrics = played(env_id, reward=reward, **PRICED)
    weighed, again = played(env_id, reward=reward, cost_weight=0.25, carbon_weight=0.125, **PRICED)
    assert same == plain and metrics == again and without.items() <= metrics.items()
    charged = 0.25 * metrics["cost_total"] + 0.125 * metrics["carbon_kg"]
    assert charged > 0.1 and plain - weighed == pytest.approx(charged, rel=1e-9)


def test_an_episode_that_is_cut_off_is_charged_for_what_was_spent():
    options = {"horizon_s": 3000.0, **PRICED}
    plain, _ = played(GEO, **options)
    weighed, metrics = played(GEO, cost_weight=1.0, **options)
    assert plain - weighed == pytest.approx(metrics["cost_total"], rel=1e-9)
    compared, _ = played(GEO, reference="random", **options)
    weighed, metrics = played(GEO, reference="random", cost_weight=1.0, **options)
    assert compared - weighed == pytest.approx(metrics["cost_total"], rel=1e-9)


def test_a_batch_is_charged_as_one():
    rewards = []
    for weight in (0.0, 2.0):
        envs = clustergym.make_vec(GEO, 2, cost_weight=weight, **PRICED)
        envs.reset(seed=1)
        rewards.append(np.array([envs.step(np.zeros(2, np.int64))[1] for _ in range(5)]))
    assert (rewards[1] < rewards[0]).any() and (rewards[1] <= rewards[0]).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cost_weight": 1.0, **SMALL}, "cost_weight = 1: nothing is said of costs; expected prices"),
        ({"carbon_weight": float("nan"), **PRICED}, "carbon_weight = nan: expected a finite number"),
        (
            {"cost_weight": 1.0, "reward": lambda before, after: 0.0, **PRICED},
            "cost_weight = 1: expected a reward of jct",
        ),
    ],
)
def test_a_weight_that_means_nothing_is_refused(options, told):
    with pytest.raises(InputError, match=told):
        gymnasium.make(GEO, **options)


def test_the_reward_of_placements_takes_no_weights():
    with pytest.raises(InputError, match="expected a reward of jct, makespan, slowdown, slo"):
        gymnasium.make(TABLES, reward="placement", cost_weight=1.0, **PRICED)
