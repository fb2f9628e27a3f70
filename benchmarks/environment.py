"""Steps per CPU second of every environment, of Delay-v0 by observation, window and preemption, and its memory.

Through `gymnasium.make`; legal actions, drawn at random, are recorded once and replayed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numpy as np
from _measure import Row, bench, in_process

from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.numerics.float_sums import sum_in_order

DELAY = "clustergym/Delay-v0"
MOST_STEPS = 20_000
MOST_OF_ANY = 2_000  # steps of each environment; much is decided in Python in some


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    return bench(__doc__.splitlines()[0], argv, steps, environments, memory)


def steps(options: Any) -> Iterator[Row]:
    """Delay-v0 by its options: steps per CPU second."""
    for kind in ("dict", "flat"):
        for slots in (8,) if options.quick else (8, 32, 128):
            for preemption in (True, False):
                row = {"observation": kind, "slots": slots, "preemption": preemption}
                yield row | _speed(DELAY, options, 3, 10, MOST_STEPS, **row)


def environments(options: Any) -> Iterator[Row]:
    """Each environment with its defaults: steps per CPU second."""
    for env_id in ENVIRONMENTS:
        yield {"environment": env_id.removeprefix("clustergym/")} | _speed(env_id, options, 1, 3, MOST_OF_ANY)


def memory(options: Any) -> Iterator[Row]:
    """Resident bytes that each further Delay-v0 takes after its first step."""
    yield in_process([__file__, str(4 if options.quick else 64)])


@dataclass(frozen=True)
class Episode:
    """The actions after `reset(seed)`, and their return."""

    seed: int
    actions: list[np.ndarray | int]
    earned: float


def record(env: Any, seed: int, most: int) -> Episode:
    """One episode of random legal actions, of at most `most` steps."""
    rng = np.random.default_rng(seed)
    discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
    ends = [] if discrete else np.cumsum(env.action_space.nvec)[:-1]
    _, info = env.reset(seed=seed)
    actions: list[np.ndarray | int] = []
    earned, ended = 0.0, False
    while not ended and len(actions) < most:
        drawn = [rng.choice(np.flatnonzero(part)) for part in np.split(info["action_mask"], ends)]
        actions.append(int(drawn[0]) if discrete else np.array(drawn))
        _, reward, terminated, truncated, info = env.step(actions[-1])
        assert not info["invalid_action"], "the mask allowed an action that is not legal"
        earned, ended = earned + float(reward), terminated or truncated
    return Episode(seed, actions, earned)


def _speed(env_id: str, options: Any, count: int, runs: int, most: int, **arguments: Any) -> Row:
    """Steps per CPU second with and without resets; a replay must earn the recorded return."""
    env = gymnasium.make(env_id, **arguments)
    most = 60 if options.quick else most
    episodes = [record(env, options.seed + i, most) for i in range(1 if options.quick else count)]
    for episode in episodes:
        env.reset(seed=episode.seed)
        assert sum_in_order(float(env.step(action)[1]) for action in episode.actions) == episode.earned
    taken = [_replayed(env, episodes) for _ in range(2 if options.quick else runs)]
    played = sum(len(episode.actions) for episode in episodes)
    space = env.observation_space
    boxes = space.spaces.values() if isinstance(space, gymnasium.spaces.Dict) else [space]
    row = {
        "features": sum(box.shape[0] for box in boxes),
        "steps": played,
        "steps_per_s": played / min(steps_s for _, steps_s in taken),
        "steps_per_s_median": played / median(steps_s for _, steps_s in taken),
        "steps_per_s_with_resets": played / min(map(sum, taken)),
        "reset_s": min(resets_s for resets_s, _ in taken) / len(episodes),
    }
    env.close()
    return row


def _replayed(env: Any, episodes: list[Episode]) -> tuple[float, float]:
    resets_s = steps_s = 0.0
    step = env.step
    for episode in episodes:
        began_s = time.process_time()
        env.reset(seed=episode.seed)
        ready_s = time.process_time()
        for action in episode.actions:
            step(action)
        steps_s += time.process_time() - ready_s
        resets_s += ready_s - began_s
    return resets_s, steps_s


def memory_of(count: int) -> Row:
    """Resident bytes of each of `count` more environments in this process, after a reset and a step."""
    kept = []
    for seed in range(count + 1):
        env = gymnasium.make(DELAY)
        env.reset(seed=seed)
        env.step([0, 0, 0])
        kept.append(env)
        if seed == 0:
            before = _resident_bytes()
    record_bytes = int(kept[0].unwrapped.simulator.records.nbytes)  # type: ignore[attr-defined]
    each = (_resident_bytes() - before) / count
    return {"environments": count, "resident_bytes_each": each, "record_bytes": record_bytes}


def _resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


if __name__ == "__main__":
    print(json.dumps(memory_of(int(sys.argv[1]))))
