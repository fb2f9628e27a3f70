"""Policies by name: which there are, where they play, and what parameters they take."""

from __future__ import annotations

import builtins
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..simulator.names import bind, choose, parse_name
from .base import Policy
from .bsbf import sjf_bsbf, sjf_ffs
from .cassini.schedulers import bsbf_cassini, dally_cassini, pollux_cassini, themis_cassini
from .dally import dally, dally_consolidated, dally_manual, dally_nowait
from .drawn import drawn
from .gandiva import gandiva
from .greedy import greedy
from .harmony.harmony import Harmony
from .harmony.interleaved import Muri
from .harmony.isolated import Isolated
from .harmony.naive import Naive
from .harmony.searching import Oracle
from .mast.schedulers import cell
from .ordered import backfilled, las, ordered
from .pollux import Pollux
from .tetris.paths import milp, static, tetris_v1, tetris_v2
from .themis import LeastShared, Themis, ideal
from .tiresias import tiresias
from .tiresias_rounds import TiresiasRounds

DELAY = "clustergym/Delay-v0"
SHARING = "clustergym/Sharing-v0"
TIME_SHIFT = "clustergym/TimeShift-v0"
GEO = "clustergym/Geo-v0"
DATA_PLACEMENT = "clustergym/DataPlacement-v0"
GROUPING = "clustergym/Grouping-v0"
BOTH = (DELAY, SHARING)


@dataclass(frozen=True)
class Entry:
    """One policy: what builds it, one line about it, and the ids of the environments that it plays in."""

    factory: Callable[..., Policy]
    summary: str
    environments: tuple[str, ...] = (DELAY,)


POLICIES: dict[str, Entry] = {
    "random": Entry(
        drawn,
        "a random order and random GPUs, drawn from the seed: the baseline that everything should beat",
        (*BOTH, TIME_SHIFT, GEO, GROUPING),
    ),
    "greedy": Entry(
        greedy,
        "shortest first; a job waits for a better tier if it ends sooner so; among groups the largest sum of rates",
        (DELAY, GROUPING),
    ),
    "fifo": Entry(
        partial(backfilled, "fifo"),
        "first in, first out, by arrival; head=reserve (EASY) and head=conservative: with backfilling",
        BOTH,
    ),
    "sjf": Entry(
        partial(backfilled, "sjf"),
        "shortest job first, by isolated run time; running jobs are left alone; heads as fifo",
        BOTH,
    ),
    "edf": Entry(
        partial(ordered, "edf"), "earliest deadline first, jobs without one last; running jobs are left alone", BOTH
    ),
    "srtf": Entry(partial(ordered, "srtf"), "shortest remaining time first: made anew at each event, preemptive"),
    "srsf": Entry(partial(ordered, "srsf"), "shortest remaining service (GPUs x time left) first, preemptive"),
    "las": Entry(las, "two-dimensional least attained service: queues by GPUs x time held, preemptive"),
    "tiresias": Entry(
        tiresias, "Tiresias (NSDI'19): discretised 2D-LAS; models with skewed tensors are consolidated", BOTH
    ),
    "sjf-ffs": Entry(
        sjf_ffs, "shortest job first; what finds too few free GPUs shares the first that hold one job", (SHARING,)
    ),
    "sjf-bsbf": Entry(
        sjf_bsbf, "SJF-BSBF (INFOCOM'24): shortest job first; shares GPUs where the pair ends sooner so", (SHARING,)
    ),
    "pollux": Entry(
        Pollux,
        "Pollux (OSDI'21): searches for the most goodput, shared fairly, every round; adapt=off: sizes as asked",
        (SHARING, TIME_SHIFT),
    ),
    "tiresias-rounds": Entry(
        TiresiasRounds, "Tiresias as Pollux's simulator plays it: two queues, looked at every round", (SHARING,)
    ),
    "themis": Entry(
        Themis,
        "Themis (NSDI'20): GPUs are leased, and auctioned to those jobs that are farthest from fair",
        (TIME_SHIFT,),
    ),
    "themis+cassini": Entry(
        themis_cassini,
        "CASSINI (NSDI'24) on Themis: of its placements the most compatible, and time-shifts for jobs that share links",
        (TIME_SHIFT,),
    ),
    "pollux+cassini": Entry(pollux_cassini, "CASSINI on Pollux, jobs of the size that they ask", (TIME_SHIFT,)),
    "dally+cassini": Entry(dally_cassini, "CASSINI on Dally", (TIME_SHIFT,)),
    "sjf-bsbf+cassini": Entry(bsbf_cassini, "CASSINI on SJF-BSBF", (TIME_SHIFT,)),
    "least-shared": Entry(
        LeastShared, "Themis; of its placements the one with the fewest shared links, nobody shifted", (TIME_SHIFT,)
    ),
    "ideal": Entry(ideal, "Themis where every job has all links to itself: the bound for the others", (TIME_SHIFT,)),
    "mast": Entry(
        partial(cell, "mast", "global", "region"),
        "MAST (OSDI'24): one queue by priority, quota and credit; each region's best plan, the best of all wins",
        (GEO,),
    ),
    "federated": Entry(
        partial(cell, "federated", "region", "region"),
        "a workload is bound to the region with the lowest demand over supply of its GPU type when it arrives",
        (GEO,),
    ),
    "global": Entry(
        partial(cell, "global", "global", "global"),
        "MAST that places several workloads jointly: Table 1's ideal",
        (GEO,),
    ),
    "scope": Entry(
        partial(cell, "scope"), "any cell of paper mast's Table 1: scopes of the queue and of the allocation", (GEO,)
    ),
    "static": Entry(
        static, "V0 of paper mast: tables stay where users put them; copies for disasters", (DATA_PLACEMENT,)
    ),
    "tetris-v1": Entry(
        tetris_v1, "Tetris (OSDI'24), V1: homes by hill climbing, overload no worse than underload", (DATA_PLACEMENT,)
    ),
    "tetris-v2": Entry(
        tetris_v2, "Tetris, V2: overload costs more, storage is balanced too, hot tables are spread", (DATA_PLACEMENT,)
    ),
    "milp": Entry(milp, "the best homes by mixed-integer programming, replicas as tetris-v2", (DATA_PLACEMENT,)),
    "gandiva": Entry(
        gandiva,
        "Gandiva (OSDI'18) as Dally's authors read it: by affinity, moves to better tiers; slicing= adds time slices",
        BOTH,
    ),
    "dally": Entry(dally, "Dally (Big Data'25): delay timers, tuned by demand and tier; most slowed down first"),
    "dally-manual": Entry(dally_manual, "Dally with fixed timers: 12 h for a machine, 24 h in all for a rack"),
    "dally-nowait": Entry(dally_nowait, "Dally that never waits for a better tier"),
    "dally-consolidated": Entry(dally_consolidated, "Dally that waits for the best tier as long as it takes"),
    "isolated": Entry(
        Isolated, "one job a group, on as many machines as it needs: Harmony's first baseline", (GROUPING,)
    ),
    "naive-colocation": Entry(
        Naive, "jobs share equal partitions as they come, and may run out of memory: its second baseline", (GROUPING,)
    ),
    "harmony": Entry(
        Harmony,
        "Harmony (ICDCS'21): groups in which COMP and COMM keep CPU and network busy, regrouped where it pays",
        (GROUPING,),
    ),
    "oracle": Entry(
        Oracle, "the best utilisation at every event: exact up to 10 jobs, above by local search", (GROUPING,)
    ),
    "muri": Entry(Muri, "Muri (SIGCOMM'22), by analogy: jobs whose stages interleave, by matchings", (GROUPING,)),
}

# Words whose rest is a path or the name of an environment, and what opens them. The rooms above are not imported from
# here: who asks for a trained agent imports them.
_AGENTS = "clustergym.agents"
AGENTS = dict.fromkeys(("ppo", "maskable-ppo", "sb3", "zoo"), f"{_AGENTS}.player:open_agent")
SHIPPED = f"{_AGENTS}.shipped:describe_shipped"


def list(env_id: str | None = None) -> builtins.list[str]:
    """Names of all policies, or of those that play in an environment (`clustergym/Delay-v0`, or short `Delay`).

    Trained agents are not among them: `shipped` lists those that come with the package.
    """
    if env_id is None:
        return builtins.list(POLICIES)
    wanted = env_id.removeprefix("clustergym/").removesuffix("-v0")
    known = {i.removeprefix("clustergym/").removesuffix("-v0") for e in POLICIES.values() for i in e.environments}
    choose(wanted, known, "environment")
    full = f"clustergym/{wanted}-v0"
    return [name for name, entry in POLICIES.items() if full in entry.environments]


def make(name: str, **params: Any) -> Policy:
    """A policy by name: `make("sjf", head="strict")`, or with its parameters in the name: `make("sjf:head=strict")`.

    `ppo:PATH`, `maskable-ppo:PATH`, `sb3:FILE.zip` and `zoo:ENV` are trained agents: the rest of the word is the path
    or the environment, and `params` are those of `agents.player.open_agent`.

    Raises:
        InputError: an unknown name or parameter, a value that it does not take, or an agent that cannot be loaded.
        MissingExtra: a trained agent, where the extra [agents] is not installed.
    """
    if is_agent(name):
        kind, _, rest = name.strip().partition(":")
        policy = bind(partial(_found(AGENTS[kind]), kind, rest), params, f"policy {kind}")
        policy.name = name.strip()
        return policy
    word, given = parse_name(name, "policy")
    entry = POLICIES[choose(word, (*POLICIES, *AGENTS), "policy")]
    policy = bind(entry.factory, {**given, **params}, f"policy {word}")
    if given or params:
        policy.given = frozenset({**given, **params})
        policy.name = name if not params else f"{word}:" + ",".join(f"{k}={v}" for k, v in {**given, **params}.items())
    return policy


def make_for(name: str, env_id: str | None) -> Policy:
    """As `make`: whoever plays under the name in an environment; two of one name may differ (twofold.py)."""
    policy = make(name)
    if env_id is not None:
        policy = policy.playing_in(env_id)
    return policy.among_groups() if env_id == GROUPING else policy


def is_agent(name: str) -> bool:
    """Whether a policy's word names a trained agent."""
    return isinstance(name, str) and name.strip().partition(":")[0] in AGENTS


def environments_of(name: str) -> tuple[str, ...]:
    """The ids of the environments that a policy plays in, by its word; raises as `make`."""
    if is_agent(name):
        return make(name).environments  # type: ignore[attr-defined]
    return POLICIES[choose(parse_name(name, "policy")[0], POLICIES, "policy")].environments


def shipped() -> builtins.list[dict[str, Any]]:
    """The trained agents that come with the package, as `describe` has the others."""
    return _found(SHIPPED)()


def _found(place: str) -> Callable[..., Any]:
    """What `module:name` stands for."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def describe() -> builtins.list[dict[str, Any]]:
    """One dict a policy: name, summary (one line), environments, parameters (name -> default), and knows_run_times."""
    return [
        {
            "name": name,
            "summary": entry.summary,
            "environments": builtins.list(entry.environments),
            "parameters": {key: value.default for key, value in inspect.signature(entry.factory).parameters.items()},
            "knows_run_times": entry.factory().knows_run_times,
        }
        for name, entry in POLICIES.items()
    ]
