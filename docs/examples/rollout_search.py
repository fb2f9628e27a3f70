"""Rollout search on exact copies of the future: what `snapshot` and `restore` are for.

At every decision each legal candidate is tried and then played to the end by a base policy; the best one is played.
"""

import gymnasium
import numpy as np

import clustergym


def rollout(env, action, policy):
    """The sum of rewards to the end of the episode: of an action (None: the policy's), then of a policy."""
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = env.step(env.act_of(policy) if action is None else action)
        total, action, ended = total + reward, None, terminated or truncated
    return total


def search(env, policy):
    """The mean JCT of an episode that has just begun, if every decision is the best of all that were tried."""
    ended = False
    while not ended:
        here, values = env.snapshot(), {}
        for action in [None, *np.flatnonzero(env.action_masks()).tolist()]:
            values[action] = rollout(env, action, policy)
            env.restore(here)
        best = max(values, key=values.get)
        _, _, terminated, truncated, _ = env.step(env.act_of(policy) if best is None else best)
        ended = terminated or truncated
    return env.metrics()["jct_mean"]


def main(workloads=20, jobs=12):
    """Print greedy's mean JCT and the search's, on so many workloads of so many jobs."""
    words = {"topology": "dally:racks=1,machines=2", "workload": f"poisson:jobs={jobs},backlog={jobs // 2}"}
    env = gymnasium.make("clustergym/Delay-v0", action="discrete", **words).unwrapped
    policy, ratios = clustergym.policies.make("greedy"), []
    for seed in range(workloads):
        env.reset(seed=seed)
        start = env.snapshot()
        rollout(env, None, policy)
        greedy = env.metrics()["jct_mean"]
        env.restore(start)
        found = search(env, policy)
        ratios.append(found / greedy)
        print(f"workload {seed:2d}: greedy {greedy:8.0f} s, search {found:8.0f} s, {found / greedy:.3f} of it")  # noqa: T201
    better = sum(ratio < 1 for ratio in ratios)
    print(f"better on {better} of {workloads}, worse on {sum(ratio > 1 for ratio in ratios)}; {np.mean(ratios):.3f}")  # noqa: T201
    return ratios


if __name__ == "__main__":
    main()
