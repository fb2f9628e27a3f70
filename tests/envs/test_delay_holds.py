"""Delay-v0: every variant of Dally, without leases and moves, is a fixed policy over single actions."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

TOPOLOGY, NETWORK = "dally:racks=2,machines=2", "penalty:default=1/1.3/2"
LARGEST = 8, 16  # GPUs of a machine, of a rack
LONG_S = 1e9
HOLD, OFFER, FIRST_DELAY = 4, 0, 2
VARIANTS = {"no wait": (0.0, 0.0), "manual": (900.0, math.inf), "consolidated": (math.inf, math.inf)}


def crowded(seed: int) -> Workload:
    """40 jobs of 1 to 16 GPUs on 32, at instants that no sum of others meets."""
    rng = np.random.default_rng(seed)
    gpus = rng.integers(1, 17, 40)
    duration_s = rng.lognormal(7, 1, 40)
    arrival_s = np.sort(rng.uniform(0, (gpus * duration_s).sum() / 32 / 1.1, 40))
    return Workload.from_arrays("crowded", arrival_s, gpus, duration_s)


def action(env, timers: tuple[float, float]):
    """Algorithm 1 for the first job in the window that has not been held or started at this instant; then advance."""
    machine_s, rack_s = timers
    legal = env.action_masks()[: env.action_space.nvec[0]]
    s, window = env.simulator.state, env.interface.window
    for slot in range(int(window.waiting_shown)):
        job, first = int(window.waiting_job[slot]), 1 + 5 * slot
        starved_s = env.view.waited_s(job)
        gpus = int(s.gpus[job])
        waits = [
            (0, machine_s if gpus <= LARGEST[0] else 0.0),
            (1, rack_s if gpus <= LARGEST[1] else 0.0),
        ]
        for tier, timer_s in waits:
            if any(legal[first + better] for better in range(tier + 1)):
                return first + int(np.flatnonzero(legal[first : first + 3])[0]), OFFER, 0
            left_s = timer_s - starved_s
            if left_s > 1e-6 * max(1.0, starved_s) and legal[first + HOLD]:
                delays = window.delay_s[FIRST_DELAY : int(window.n_delays)]
                return first + HOLD, FIRST_DELAY + int(np.abs(delays - min(left_s, LONG_S)).argmin()), tier
        if legal[first : first + 3].any():
            return first + int(np.flatnonzero(legal[first : first + 3])[0]), OFFER, 0
        if legal[first + HOLD]:
            return first + HOLD, OFFER, 0
    return 0, 0, 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(4))
def test_dally_is_a_fixed_policy_over_single_actions(variant, seed):
    """Starts, ends and tiers are those of the compiled rule; holds are asked for once a timer, not at every offer.

    A job that takes anything has no hold of its own, and comes after the holds: so no rack timer runs out here.
    """
    timers, workload = VARIANTS[variant], crowded(seed)
    rule = Simulator(TOPOLOGY, NETWORK, rule=Rule("fifo", placer="tier", timers=timers))
    rule.reset(workload)
    rule.run()
    delays = (900.0, LONG_S)
    env = gymnasium.make(
        "clustergym/Delay-v0",
        topology=TOPOLOGY,
        network=NETWORK,
        workload=workload,
        slots=64,
        delays=delays,
        preemption=False,
        skip_idle=False,
        max_decisions=math.inf,
    ).unwrapped
    env.reset(seed=0)
    ended = False
    while not ended:
        *_, terminated, truncated, info = env.step(action(env, timers))
        assert not info["invalid_action"] and not info["adjusted_action"]
        ended = terminated or truncated
    own, expected = env.simulator.jobs(), rule.jobs()
    for column in ("first_start_s", "finish_s", "tier"):
        assert own[column].tolist() == expected[column].tolist(), column
