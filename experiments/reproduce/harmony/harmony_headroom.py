"""What is to be won in Grouping-v0's default setting: policies with and without knowledge of run times, and a bound.

An experiment of ours. No schedule of jobs that come over time can be proved best here, so the bound is the shortest of
many: on each workload the best of 24 plans of the search that knows what is left of every job (how much short jobs are
preferred, how long a plan is expected to hold, how long is searched). It is what the best of 24 clairvoyants reaches if
somebody tells each workload which one to take.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np

from ....envs.registration import ENVIRONMENTS
from ....policies import environments_of, shipped
from ....simulator.base.decisions import Advance
from ...comparing.intervals import estimate, paired_ratio
from ..findings import Findings, Options
from ..rows import Row, printed
from ..sweep import sweep_by
from .harmony_case import group_case

ENV_ID = "clustergym/Grouping-v0"
WORKLOAD = ENVIRONMENTS[ENV_ID].defaults["workload"]
MACHINES, SEEDS = 32, 20
KNOWN = "profile_iterations=0"
SETTINGS = {
    "default": f"{KNOWN},move_s=60",
    "moves of 300 s": f"{KNOWN},move_s=300",
    "moves of 60 s, memory without end": f"{KNOWN},move_s=60,ram_gb=1000000",
}
HARMONY, BLIND, KNOWING, AGENT = "harmony", "greedy", "greedy:remaining=known", "zoo:Grouping"
POLICIES = ("random", "isolated", "muri", "oracle", HARMONY, BLIND, KNOWING)
PLANS = tuple(
    f"greedy:remaining=known,power={power},holds_s={holds_s},steps={steps}"
    for power, holds_s, steps in product((0.3, 0.5, 0.7, 1.0), (900, 2700, 9000), (5_000, 20_000))
)
BOUND = "the bound: on each workload the shortest of plans that know what is left of each job; none is proved best"
AIMS = {BLIND: 0.92, KNOWING: 0.80}  # of harmony's mean JCT, where nothing is to be won but that


def headroom(options: Options) -> Findings:
    """Play everybody, and the bound, in every setting."""
    seeds = options.seeds(SEEDS)
    words = (*POLICIES, *([AGENT] if any(agent["name"] == AGENT for agent in shipped()) else []))
    plans = PLANS[:2] if options.quick else PLANS
    cases = {
        (name, word): [group_case(word, f"{WORKLOAD},seed={seed}", config, MACHINES, seed) for seed in seeds]
        for name, config in SETTINGS.items()
        for word in (*words, *plans)
    }
    played = sweep_by("harmony-headroom", cases, options)

    def jct_h(name: str, word: str) -> list[float]:
        return [outcome.metrics["jct_mean"] / 3600.0 for outcome in played[name, word]]

    rows: list[Row] = []
    for name in SETTINGS:
        base = jct_h(name, HARMONY)
        bound = np.min([jct_h(name, plan) for plan in plans], axis=0).tolist()
        rows += [printed(f"{name}: {HARMONY}: mean JCT", estimate(base), "h")]
        for word in words:
            if word != HARMONY:
                ours = paired_ratio(jct_h(name, word), base)
                aim = (0.0, AIMS[word]) if word in AIMS else None
                said = f"at most {AIMS[word]:g}" if word in AIMS else None
                rows.append(Row(f"{name}: {word} / {HARMONY}", said, ours.mean, aim, ours.low, ours.high, "x"))
        rows.append(printed(f"{name}: the best of {len(plans)} plans / {HARMONY}", paired_ratio(bound, base), "x"))
    rows += [printed(f"time of a decision: {word}", 1000.0 * decision_s(word, seeds[0]), "ms") for word in words]
    return Findings(rows, [f"means and 95 % intervals over {len(seeds)} workloads ({WORKLOAD})", BOUND])


def decision_s(word: str, seed: int) -> float:
    """Seconds that a policy takes for what it decides at an instant, on average over a run."""
    assert ENV_ID in environments_of(word)
    case = group_case(word, f"{WORKLOAD},seed={seed}", SETTINGS["default"], MACHINES, seed)
    taken_s, instants = 0.0, 0
    for counts in (False, True):  # the first run may compile
        simulator, made = case.begun()
        policy = made.decider(simulator)
        assert policy is not None
        while not simulator.ended:
            began_s = time.perf_counter()
            decision = simulator.ask(policy)
            taken_s += counts * (time.perf_counter() - began_s)
            instants += counts and isinstance(decision, Advance)
            simulator.apply(decision)
    return taken_s / instants
