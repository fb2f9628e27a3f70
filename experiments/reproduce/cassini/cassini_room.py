"""TimeShift-v0 as it is by default: how many of its decisions are shifts that matter, and how much there is to win.

A shift matters where the rotations of the job differ: the excess on its links, as the observation has it in
`rotations`, by more than a hundredth of a link from the best of them to the worst. Decisions are those of an episode
that `themis+cassini` plays with whole gangs, as the scheduler of the environment has them. `ideal`, where nobody meets,
bounds them all; `best-rotations` does at each instant what is best for the jobs that are there, and bounds what
rotations can give nearer (policies/cassini/best_rotations.py).

Decisions are counted in episodes of `env.reset(seed)`, which draws the run's seed from the one that it is given: they
are of other workloads of the same generator than the mean JCTs, which are those of `evaluate --seeds`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium

from ....envs.registration import ENVIRONMENTS
from ....policies.registry import make
from ...settings.evaluation_setting import Setting
from ..case import Case
from ..case_runs import Runs, metric
from ..findings import Findings, Options
from ..rows import Row, bounded, printed
from ..sweep import sweep_by

ENVIRONMENT = "clustergym/TimeShift-v0"
SEEDS = 20
PLAYERS = ("random", "themis", "least-shared", "themis+cassini", "ideal")
GANGS = "workers=fixed"  # whole ones; best-rotations takes minutes an episode where workers are tuned
WHOLE = tuple(
    f"{word}:{GANGS},equal=locality" for word in ("themis", "least-shared", "themis+cassini", "best-rotations")
)
WHOLE_IDEAL = f"ideal:{GANGS}"
CASSINI = WHOLE[2]
DECIDED = "decided by themis+cassini"
MATTERS = 0.01  # of a link
SHARE, ROOM = 1 / 3, 1.2  # what there is to be at least


def in_default() -> Case:
    """A policy in the environment's default setting."""
    found = ENVIRONMENTS[ENVIRONMENT].defaults
    return Case("", Setting.of(ENVIRONMENT, str(found["topology"]), str(found["workload"]), str(found["network"])))


def decisions(case: Case) -> Mapping[str, Any]:
    """Play an episode step by step; `steps`, and how many of them are `shifts`, and such that `matter`."""
    env: Any = gymnasium.make(ENVIRONMENT, workload=case.workload, max_decisions=math.inf).unwrapped
    policy = make(case.policy)
    env.reset(seed=case.seed)
    steps = shifts = matter = 0
    ended = False
    while not ended:
        action = policy.act(env)
        steps += 1
        if env.interface.at.turning:
            rotations = env.observe()["rotations"]
            shifts += 1
            matter += bool(rotations.max() - rotations.min() > MATTERS)
        *_, ended, _, info = env.step(action)
    return {"metrics": info["metrics"], "steps": steps, "shifts": shifts, "matter": matter}


def room(options: Options) -> Findings:
    """Shares of decisions, and mean JCTs over that of `ideal`."""
    seeds = options.seeds(SEEDS)
    playing = in_default()
    counting = replace(playing, how="cassini.cassini_room:decisions")
    players = (*PLAYERS, *WHOLE, WHOLE_IDEAL)
    cases = {(policy, ""): [playing.on(policy, seed) for seed in seeds] for policy in players}
    cases[DECIDED, ""] = [counting.on(CASSINI, seed) for seed in seeds]
    runs = Runs(sweep_by("cassini-room", cases, options))
    played = runs.of(DECIDED, "")
    steps, shifts, matter = ([float(outcome[name]) for outcome in played] for name in ("steps", "shifts", "matter"))
    shares = [found / of for found, of in zip(matter, steps, strict=True)]
    rows: list[Row] = [
        printed("decisions an episode", runs.mean(lambda outcome: float(outcome["steps"]), DECIDED, "")),
        printed("part of them that are shifts", sum(shifts) / sum(steps)),
        bounded("part that are shifts that matter", "at least 1/3", sum(matter) / sum(steps), (SHARE, 1.0), ""),
        printed("the same, least of all episodes", min(shares)),
        printed("the same, most", max(shares)),
    ]
    for policy, least in [*((one, "ideal") for one in PLAYERS[:-1]), *((one, WHOLE_IDEAL) for one in WHOLE)]:
        name, over = f"mean JCT, {policy} / {least}", runs.ratio(metric("jct_mean"), policy, least, "")
        claimed = policy == WHOLE[0]
        rows.append(bounded(name, "at least 1.2", over, (ROOM, math.inf)) if claimed else printed(name, over, "x"))
    for policy, plain in [("themis+cassini", "themis"), *((one, WHOLE[0]) for one in WHOLE[1:])]:
        over = runs.ratio(metric("jct_mean"), policy, plain, "")
        rows.append(printed(f"mean JCT, {policy} / {plain}", over, "x"))
    notes = [
        f"{ENVIRONMENT} as it is by default, {playing.setting.workload}, seeds {seeds[0]} to {seeds[-1]}; a shift "
        f"matters where the job's rotations differ by more than {100 * MATTERS:g} % of a link, {CASSINI} deciding, in "
        "episodes of env.reset(seed), which are of other workloads of the generator than evaluate's of that seed",
        "with workers=fixed gangs are whole, as in the environment; else Themis tunes them. best-rotations is best at "
        "each instant for the jobs that are there, no bound of a whole episode in the strict sense",
    ]
    return Findings(rows, notes)
