"""A user's estimate, of `duration_s`, is scaled as the run time is: a perfect one plays as `exact`, to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustergym.envs.configured import config_of, gang_room
from clustergym.experiments.playing.evaluation import simulator_of
from clustergym.policies import make_for
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_small import A100
from clustergym.tests.support.small_envs import SMALL

PENALTY = "penalty:table=chronus,default=1/1.2/1.5,duration=compute"
PLAYED = {  # environment: what is not as in SMALL, and which policy knows run times there
    "Delay": ({"network": PENALTY}, ("greedy", "sjf:head=reserve,placer=tier")),
    "Sharing": ({}, ("sjf-bsbf",)),
    "TimeShift": ({"network": "contention:duration=compute"}, ("sjf-bsbf+cassini",)),
    "Geo": ({"network": PENALTY, "speeds": "speeds.csv"}, ("greedy:slow=none",)),
    "DataPlacement": ({"network": PENALTY, "speeds": "speeds.csv"}, ("greedy",)),
    "Grouping": ({}, ("greedy:remaining=known",)),
}
OF_WINDOWS = ("workload", "slots", "running_slots", "group_slots")


def metrics(config, policy, env_id, workload, estimates):
    simulator = simulator_of(replace(config, estimates=estimates), policy)
    simulator.reset(workload, 3)
    return simulator.run(policy.decider(simulator))


@pytest.mark.parametrize("environment", PLAYED)
def test_perfect_estimates_play_as_exact_to_the_bit(environment, tmp_path, monkeypatch):
    """With times that the network (`duration=compute`) and the types of GPUs scale, in every environment's cluster."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speeds.csv").write_text("model,type,speed\n*,H100,2.5\n*,V100,0.4\n")
    env_id = f"clustergym/{environment}-v0"
    changes, words = PLAYED[environment]
    given = {key: value for key, value in (SMALL[env_id] | changes).items() if key not in OF_WINDOWS}
    config = config_of(env_id, **given)
    workload = open_workload(SMALL[env_id]["workload"], seed=2, cluster_gpus=gang_room(env_id, config.topology))
    perfect = replace(workload, estimate_s=workload.duration_s.copy())
    for word in words:
        policy = make_for(word, env_id)
        assert policy.knows_run_times
        found = [metrics(config, policy, env_id, perfect, estimates) for estimates in ("exact", "user")]
        np.testing.assert_equal(found[1], found[0])


def test_by_user_estimates_the_job_on_the_faster_type_is_the_shorter_one(tmp_path):
    """16 A100 in the south have the table; m1 takes a quarter there, m2 as long as it says.

    R runs from 0 to 100. P (m1, 2,000 s) and Q (m2, 1,000 s) come at 1 and 2; their users' estimates are right, R's is
    not. Isolated they take 500 and 1,000 s: P runs from 100 to 600, Q to 1,600. Unscaled, Q went first.
    """
    (tmp_path / "speeds.csv").write_text("model,type,speed\nm1,A100,4\nm2,A100,1\n")
    geo = geo_small.demands([([(A100, 16)], [4], 6, 0, 0.0)] * 3)
    columns = {"model": ["m2", "m1", "m2"], "estimate_s": [90.0, 2000.0, 1000.0]}
    workload = Workload.from_arrays("types", [0.0, 1.0, 2.0], geo.units, [100.0, 2000.0, 1000.0], **columns)
    policy = make_for("sjf:slow=none,scan_s=0", "clustergym/Geo-v0")
    for estimates in ("exact", "user"):
        simulator = Simulator(geo_small.small_topology(), speeds=str(tmp_path / "speeds.csv"), estimates=estimates)
        simulator.reset(workload.with_geo(geo))
        assert simulator.view.isolated_s(1) == 500.0
        simulator.run(policy)
        assert simulator.jobs()["finish_s"].tolist() == [100.0, 600.0, 1600.0]


def test_an_estimate_grows_with_what_the_network_adds():
    """alexnet on 16 GPUs: two machines are x 1.9673 under `penalty`; 1,000 s of computing are 1,967.3 isolated.

    An estimate of 500 s for them is one of 983.65; the other job, of one GPU, is not slowed down.
    """
    workload = Workload.from_arrays(
        "two", [0.0, 0.0, 0.0], [16, 1, 16], [1000.0] * 3, model=["alexnet"] * 3, estimate_s=[1000.0, 700.0, 500.0]
    )
    simulators = [
        Simulator("dally:racks=1,machines=4", "penalty:table=chronus,duration=compute", estimates=estimates)
        for estimates in ("exact", "user")
    ]
    for simulator in simulators:
        simulator.reset(workload)
    exact, user = (simulator.view for simulator in simulators)
    assert exact.isolated_s(0) == pytest.approx(1967.3, abs=0.1) and exact.isolated_s(1) == 1000.0
    assert user.isolated_s(0) == pytest.approx(exact.isolated_s(0), rel=1e-15)
    assert user.isolated_s(1) == 700.0
    assert user.isolated_s(2) == pytest.approx(exact.isolated_s(0) / 2, rel=1e-15)


def test_the_estimate_of_a_job_on_fewer_machines_grows_with_its_run_time():
    """100 iterations of 80 machine-seconds and 2 s: 1,200 s on 8 machines, 2,200 s on 4; half of that is estimated."""
    workload = open_workload("harmony-like:jobs=4", seed=0)
    whole = replace(workload, estimate_s=workload.duration_s / 2)
    with pytest.warns(UserWarning, match="capped"):
        capped = whole.oversize(int(workload.gpus.min()) // 2 or 1, "cap")
    assert (capped.duration_s > workload.duration_s).any()
    assert capped.estimate_s == pytest.approx(capped.duration_s / 2, rel=1e-12)
