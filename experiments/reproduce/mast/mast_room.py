"""What there is to win in Geo-v0 and DataPlacement-v0, as they are by default and with one thing changed at a time.

The bound is `everywhere`, the best baseline's scheduler with every table in every region, free, from time 0: it bounds
what data is worth, and nothing else. Nothing of this is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....envs.registration import ENVIRONMENTS
from ....policies.registry import DATA_PLACEMENT, GEO
from ....simulator.base.names import parse_name
from ...comparing.intervals import Estimate
from ...settings.evaluation_setting import Setting
from ..case import Case
from ..case_runs import Runs, metric
from ..findings import Findings, Options
from ..rows import Row, bounded, printed
from ..sweep import sweep_by

SEEDS = 5
MOST = 0.7  # of the best baseline, that the bound is to be in the default settings
DEFAULT = "by default"
# Who plays in each environment, and whose scheduler the bound has when it is the best.
PLAYERS: Mapping[str, Mapping[str, str]] = {
    GEO: dict.fromkeys(("greedy:slow=static", "bring:slow=static", "bring:slow=none"), "greedy"),
    DATA_PLACEMENT: dict.fromkeys(("static", "tetris-v2"), "mast"),
}


@dataclass(frozen=True)
class Change:
    """Parameters in place of the default's; None: left out.

    Attributes:
        both: of topology and workload. topology, workload: of one of them.
    """

    both: Mapping[str, str] = field(default_factory=dict)
    topology: Mapping[str, str] = field(default_factory=dict)
    workload: Mapping[str, str | None] = field(default_factory=dict)


PLAIN = Change()
CHANGES: Mapping[str, Change] = {
    DEFAULT: PLAIN,
    "load 0.8": Change(workload={"load": "0.8"}),
    "4 regions": Change({"regions": "4"}),
    "8 regions": Change({"regions": "8"}),
    "3 days": Change(workload={"days": "3"}),
    "no drift": Change(workload={"drift": None}),
    "tables as published": Change(workload={"storage_ratio": None}),
    "links of 5 Gbps": Change(topology={"wan_gbps": "5"}),
    "links of 0.5 Gbps": Change(topology={"wan_gbps": "0.5"}),
    "links of 0.1 Gbps": Change(topology={"wan_gbps": "0.1"}),
}
QUICK = (DEFAULT, "tables as published")


def changed(word: str, *changes: Mapping[str, str | None]) -> str:
    """A word with other parameters, in the order in which it gives them, new ones last."""
    name, params = parse_name(word)
    given: dict[str, str | None] = {**params}
    for one in changes:
        given |= one
    told = ",".join(f"{key}={value}" for key, value in given.items() if value is not None)
    return f"{name}:{told}" if told else name


def case_of(env_id: str, change: Change) -> Case:
    """A case of the environment's default setting with a change, with nobody who plays yet."""
    usual = ENVIRONMENTS[env_id].defaults
    topology = changed(usual["topology"], change.both, change.topology)
    workload = changed(usual["workload"], change.both, change.workload)
    return Case("", Setting.of(env_id, topology, workload, usual["network"]))


def room(options: Options) -> Findings:
    """The mean JCT of the bound over that of the best baseline, setting by setting."""
    seeds, rows = options.seeds(SEEDS), list[Row]()
    names = QUICK if options.quick else tuple(CHANGES)
    cases = {}
    for env_id, players in PLAYERS.items():
        for name in names:
            playing = case_of(env_id, CHANGES[name])
            for policy in (*players, *map(bound_of, dict.fromkeys(players.values()))):
                cases[policy, (env_id, name)] = [playing.on(policy, seed) for seed in seeds]
    runs = Runs(sweep_by("mast-room", cases, options))
    for env_id in PLAYERS:
        rows += [row_of(runs, env_id, name) for name in names]
    default = " and ".join(f"{env_id}: {case_of(env_id, PLAIN).setting.workload}" for env_id in PLAYERS)
    notes = [
        f"mean JCT over seeds {seeds[0]} to {seeds[-1]}; changed is one thing at a time in the defaults, {default}",
        "everywhere bounds the value of data only: its scheduler places workloads as the best baseline's does",
    ]
    return Findings(rows, notes)


def bound_of(scheduler: str) -> str:
    """The word of the bound."""
    return f"everywhere:scheduler={scheduler}"


def row_of(runs: Runs, env_id: str, name: str) -> Row:
    """The row of one setting; the default's is held to `MOST`."""
    players, place = PLAYERS[env_id], (env_id, name)
    take = metric("jct_mean")
    best = min(players, key=lambda policy: runs.mean(take, policy, place).mean)
    over: Estimate = runs.ratio(take, bound_of(players[best]), best, place)
    what = f"{env_id.removeprefix('clustergym/')}, {name}: everywhere / {best}"
    return bounded(what, "at most 0.7", over, (0.0, MOST)) if name == DEFAULT else printed(what, over, "x")
