"""Legal actions of an environment, recorded once and replayed for time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustergym.simulator.numerics.float_sums import sum_in_order

MOST_STEPS = 20_000
TIERS = 2  # values of the last part of an action
SLOTS = 32  # of the environment, unless told otherwise
KINDS = (
    "advance",
    "start: machine",
    "start: rack",
    "start: network",
    "make room",
    "hold",
    "preempt",
    "migrate",
    "defragment",
)


@dataclass(frozen=True)
class Episode:
    """What was played after `reset(seed)`, and what it earned."""

    seed: int
    actions: list[np.ndarray]
    total_reward: float


def drawn(rng: np.random.Generator, mask: np.ndarray, candidates: int) -> np.ndarray:
    """Any legal action, each candidate, each delay and each tier as likely as another."""
    delays = np.flatnonzero(mask[candidates:-TIERS])
    return np.array([rng.choice(np.flatnonzero(mask[:candidates])), rng.choice(delays), rng.integers(TIERS)])


def first_start(rng: np.random.Generator, mask: np.ndarray, candidates: int) -> np.ndarray:
    """The first waiting job that can start does so, at the best tier that has room; else advance."""
    starts = [c for c in np.flatnonzero(mask[:candidates]).tolist() if kind_of(c, SLOTS) in (1, 2, 3)]
    return np.array([min(starts, default=0), 0, 0])


def drawn_candidate(rng: np.random.Generator, mask: np.ndarray, candidates: int) -> np.ndarray:
    """Any legal action of one part, each as likely as another."""
    return np.array(rng.choice(np.flatnonzero(mask[:candidates])))


DELAY_PLAYERS: dict[str, Callable[..., np.ndarray]] = {"random legal": drawn, "first start": first_start}
PLAYERS: dict[str, Callable[..., np.ndarray]] = {**DELAY_PLAYERS, "random candidate": drawn_candidate}


def record(env: Any, seed: int, player: str = "random legal") -> Episode:
    """One episode of a player of PLAYERS; at most MOST_STEPS steps of it."""
    rng = np.random.default_rng(seed)
    space = env.action_space
    candidates = int(space.nvec[0] if hasattr(space, "nvec") else space.n)
    _, info = env.reset(seed=seed)
    actions, total, ended = [], 0.0, False
    while not ended and len(actions) < MOST_STEPS:
        action = PLAYERS[player](rng, info["action_mask"], candidates)
        _, reward, terminated, truncated, info = env.step(action)
        assert not info["invalid_action"], "the mask allowed an action that is not legal"
        actions.append(action)
        total += float(reward)
        ended = terminated or truncated
    return Episode(seed, actions, total)


def check(env: Any, episode: Episode) -> None:
    """Replay without a clock: it must earn the same again. It also compiles whatever is not compiled yet."""
    env.reset(seed=episode.seed)
    total = sum_in_order(float(env.step(action)[1]) for action in episode.actions)
    assert total == episode.total_reward, f"the replay of seed {episode.seed} earned {total}, not as recorded"


def replay(env: Any, episodes: list[Episode]) -> tuple[float, float]:
    """CPU seconds of the resets and of the steps of all episodes."""
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


def speeds(env: Any, episodes: list[Episode], runs: int) -> dict[str, float]:
    """Steps per CPU second with and without the resets, best and median of `runs`, and seconds of a reset."""
    taken = [replay(env, episodes) for _ in range(runs)]
    steps = sum(len(episode.actions) for episode in episodes)
    without = [steps / steps_s for _, steps_s in taken]
    with_resets = [steps / (resets_s + steps_s) for resets_s, steps_s in taken]
    return {
        "steps": steps,
        "steps_per_s": max(without),
        "steps_per_s_median": float(np.median(without)),
        "steps_per_s_with_resets": max(with_resets),
        "steps_per_s_with_resets_median": float(np.median(with_resets)),
        "reset_s": min(resets_s for resets_s, _ in taken) / len(episodes),
    }


def seconds_by_kind(env: Any, episodes: list[Episode], slots: int, runs: int) -> dict[str, list[float]]:
    """Wall seconds of every step (about 0.1 us of clock included), by the kind of its candidate; best of `runs`."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for episode in episodes:
        best_ns = np.full(len(episode.actions), np.iinfo(np.int64).max)
        for _ in range(runs):
            env.reset(seed=episode.seed)
            for place, action in enumerate(episode.actions):
                began_ns = time.perf_counter_ns()
                env.step(action)
                best_ns[place] = min(best_ns[place], time.perf_counter_ns() - began_ns)
        for action, step_ns in zip(episode.actions, best_ns, strict=True):
            taken[KINDS[kind_of(int(action[0]), slots)]].append(step_ns / 1e9)
    return taken


def kind_of(candidate: int, slots: int) -> int:
    """Place in KINDS of a candidate of Delay-v0."""
    if candidate == 0:
        return 0
    waiting = candidate - 1
    return 1 + waiting % 5 if waiting < 5 * slots else 6 + (waiting - 5 * slots) % 3
