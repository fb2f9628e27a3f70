"""Playing policies on the same workloads, seed by seed: the runs behind every table, picture and log."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..policies import Handed, Policy, PolicyFailed, handed, make_for, playing, word_of
from ..simulator.base.errors import InputError
from ..simulator.base.names import parse_name
from ..simulator.base.own_code import is_own, own, shown_word
from ..simulator.base.own_code_files import files_of
from ..simulator.cluster.topology import Topology
from ..simulator.engine.network_choice import Contention, Network, load_network, network_for
from ..simulator.engine.simulator import Simulator
from ..simulator.engine.time_window import Window, windowed
from ..simulator.events.initialise import Failures
from ..simulator.jobs.estimates import Estimates
from ..simulator.jobs.region_columns import siblings
from ..simulator.profiles.skew import skewed_jobs
from ..simulator.rules.rule import SKEW_PLACERS
from ..simulator.rules.semantics import load_semantics
from ..simulator.sharing.sharing_model import Sharing
from ..simulator.workloads import Workload, open_workload
from ..simulator.workloads import is_path as is_trace
from .executors import Executor, elsewhere
from .group_timeline import group_timeline, group_words
from .hosting import hosted
from .recording import ABOUT_TABLES, HAPPENINGS, WORDS, Recorded, Timeline, decisions, timeline

if TYPE_CHECKING:
    from .store import Store

Record = Literal["nothing", "first", "all"]
Task = tuple[str | Handed, int, bool]  # who plays, on which seed, and whether that is recorded
NAMED = ("topology", "workload", "network")  # fields of a setting that name what may be a file, or a user's own
MOST_ASKED = 20_000  # jobs of a run of which reasons are kept: each instant with decisions costs a copy of the state
DECISION_COLUMNS = ("policy", "seed", "time_s", "job_id", "decision", "gpus", "shift_s", "why")


@dataclass(frozen=True)
class Setting:
    """What policies are compared on: all but the policy and the seed. Words as on the command line.

    Attributes:
        environment: the id whose defaults and policies these are.
        topology, workload, network: words, or paths of files; or a user's own objects, as `Topology.load`,
            `open_workload` and `load_network` take them.
        format: of a trace; None recognises it.
        oversize: what to do with jobs larger than the cluster (`error`, `drop`, `cap`).
        horizon_s: stop after so many seconds from the first arrival.
        mtbf_s: mean time between failures of a machine; None: machines do not fail.
        mttr_s, checkpoint_s: see `Failures`.
        region_mtbf_s: mean time between failures of a region; None: regions do not fail.
        region_mttr_s: see `Failures`.
        semantics: how leases end and when passes are made; see `simulator/rules/semantics.py`.
        jobs_per_gpu, interference, memory_gb, gpu, memory: see `Sharing`; jobs_per_gpu None: GPUs are not shared.
        tables_every_s: in regions, from one look at the tables to the next; None: nobody looks.
        estimates: what policies and observations know of run times; see `simulator/jobs/estimates.py`.
        window: "START/END", seconds since the first arrival: metrics are of that time and the jobs that arrive in it
            (simulator/engine/time_window.py); None: of the whole run.
        config: in an environment with a simulator of its own, what that simulates, as words; see `hosting.py`.
    """

    environment: str
    topology: Any
    workload: Any
    network: Any = field(hash=False)
    format: str | None = None
    oversize: Literal["error", "drop", "cap"] = "error"
    horizon_s: float = math.inf
    mtbf_s: float | None = None
    mttr_s: float = 3600.0
    checkpoint_s: float = 1800.0
    region_mtbf_s: float | None = None
    region_mttr_s: float = 3600.0
    semantics: str = "events"
    jobs_per_gpu: int | None = None
    interference: str = "measured"
    memory_gb: float | None = None
    gpu: str = "2080ti"
    memory: str = "assumed"
    tables_every_s: float | None = None
    estimates: str = "exact"
    config: str | None = None
    window: str | None = None

    @property
    def sharing(self) -> Sharing | None:
        """How GPUs are shared, if they are."""
        if self.jobs_per_gpu is None:
            return None
        return Sharing(self.jobs_per_gpu, self.interference, self.memory_gb, self.gpu, memory=self.memory)

    @property
    def failures(self) -> Failures | None:
        """Failures of machines and regions, if there are any."""
        if self.mtbf_s is None and self.region_mtbf_s is None:
            return None
        mtbf_s, region_mtbf_s = (math.inf if mean is None else mean for mean in (self.mtbf_s, self.region_mtbf_s))
        return Failures(mtbf_s, self.mttr_s, self.checkpoint_s, region_mtbf_s, self.region_mttr_s)

    @property
    def is_drawn(self) -> bool:
        """Whether the workload is drawn anew for each seed: a generator that was not given its own, or a user's."""
        if is_own(self.workload) or not isinstance(self.workload, str | Path):
            return not isinstance(self.workload, Workload)
        if self.format is not None or is_trace(str(self.workload)):
            return False
        return "seed" not in parse_name(str(self.workload), "workload")[1]

    def words(self) -> dict[str, Any]:
        """The fields as one can write them down: in place of an object what to call it."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return given | {name: shown_word(given[name]) for name in NAMED}


@dataclass(frozen=True)
class Run:
    """One policy on one seed.

    Attributes:
        policy: its word.
        seed: of the workload, of random orders and of failures.
        metrics: by the names of `simulator/engine/metrics.py`.
        jobs: how many there were.
        jct_s: float64, of the finished jobs.
        decisions: rows of `DECISION_COLUMNS` after the first two, if they were recorded.
        timeline: who held what when, if it was recorded.
        knows_run_times: whether the policy knew how long jobs run: `yes`, `no` or `estimates`; empty: nobody has said.
    """

    policy: str
    seed: int
    metrics: dict[str, float]
    jobs: int
    jct_s: np.ndarray
    decisions: tuple[tuple[str, ...], ...] = ()
    timeline: Timeline | None = None
    knows_run_times: str = ""


def network_of(setting: Setting) -> Network:
    """The network of a setting; what `duration_s` means is as its semantics have it, unless its words say so."""
    return load_network(setting.network, load_semantics(setting.semantics).duration)


def workload_of(setting: Setting, seed: int) -> Workload:
    """The workload of one seed, checked against the cluster; the last two are kept while their files stay the same."""
    of_it = replace(setting, network=None, interference="", memory_gb=None)  # on which no workload hangs
    return _workload(of_it, seed, stamps(setting))


def stamps(setting: Setting) -> tuple[tuple[int, int] | None, ...]:
    """Time and size of the files that the words of a setting name: they change when a file is written."""
    words = [str(word) for _, word in named(setting) if isinstance(word, str | Path) and not is_own(word)]
    trace = setting.workload
    words += map(str, siblings(trace).values()) if isinstance(trace, str | Path) and is_trace(str(trace)) else ()
    parts = [part for word in (*words, setting.format or "") for part in (word, *re.split("[:,=]", word)[1:])]
    return tuple(_stamp(path) for path in (*parts, *own_files(setting)))


def named(setting: Setting) -> Iterator[tuple[str, Any]]:
    """The fields that name what may be a file, or a user's own: (field, its value)."""
    yield from ((name, getattr(setting, name)) for name in NAMED)


def own_files(setting: Setting) -> tuple[Path, ...]:
    """The files of a user's own topology, workload and network.

    Raises:
        InputError: one that cannot be opened.
    """
    found: list[Path] = []
    for what, value in named(setting):
        if is_own(value):
            found += own(value, what).files
        elif not isinstance(value, str | Path):
            found += files_of(value if hasattr(value, "__qualname__") else type(value))
    return tuple(dict.fromkeys(found))


def _stamp(path: str | Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


@functools.lru_cache(maxsize=2)
def _workload(setting: Setting, seed: int, _stamps: tuple[tuple[int, int] | None, ...]) -> Workload:
    topology = Topology.load(setting.topology)
    workload = open_workload(
        setting.workload,
        format=setting.format,
        seed=seed,
        oversize=setting.oversize,
        cluster_gpus=topology.num_gpus,
    )
    load_semantics(setting.semantics).chunk_on(workload)  # its warning is told here, by the first process
    return workload


def depends_on_seed(setting: Setting, policy: Policy) -> bool:
    """Whether two seeds can differ: a drawn workload, machines that fail, estimates, or a policy that draws."""
    rule = policy.rule
    draws = rule is None or rule.order == "random" or rule.placer in ("random", "affinity")
    guesses = policy.knows_run_times and Estimates.load(setting.estimates).kind == "lognormal"
    return draws or guesses or setting.is_drawn or setting.failures is not None


def simulator_of(setting: Setting, policy: Policy) -> Simulator:
    """The simulator in which `policy` plays; its compiled rule, if it is one, is in it already.

    Raises:
        InputError: the policy needs run times, of which nothing is known.
    """
    estimates = Estimates.load(setting.estimates)
    policy.expect_known(estimates)
    semantics = load_semantics(setting.semantics)
    if setting.config is not None:
        return hosted(setting, policy.rule_under(semantics), estimates)
    network = network_for(policy, network_of(setting))
    return Simulator(
        setting.topology,
        network,
        rule=policy.rule_under(semantics),
        semantics=semantics,
        failures=setting.failures,
        horizon_s=setting.horizon_s,
        sharing=setting.sharing,
        tables_every_s=math.inf if setting.tables_every_s is None else setting.tables_every_s,
        pace=None if isinstance(network, Contention) else policy.pace(setting.gpu),
        estimates=estimates,
    )


def run_times_known(policy: Policy, estimates: Estimates) -> str:
    """Whether a policy knows how long jobs run: `yes`, `no`, or `estimates`."""
    if estimates.hides or not policy.knows_run_times:
        return "no"
    return "yes" if estimates.kind == "exact" else "estimates"


def play(
    setting: Setting,
    player: Any,
    seed: int,
    record: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """One run.

    Args:
        setting: what to play on.
        player: the policy: a word, or an object that decides, of which a copy plays.
        seed: of the workload, of random orders and of failures.
        record: keep decisions and the timeline.
        progress: told the share of jobs that have finished.

    Raises:
        InputError: what a user's policy raised, with the line of its file.
    """
    given, player = player, handed(player)
    policy = make_for(player, setting.environment)
    workload = workload_of(setting, seed if setting.is_drawn else 0)
    simulator = simulator_of(setting, policy)
    simulator.reset(workload, seed)
    decider = policy.decider(simulator)
    share = None if progress is None else lambda done: progress(done / len(workload))
    kept: list[Recorded] = []
    seen: Timeline | None = None
    with playing(policy, seed):
        if record:
            follow = timeline if setting.config is None else group_timeline
            asked = policy if len(workload) <= MOST_ASKED else None
            seen = follow(simulator, _kept(decisions(simulator, decider, share, asked), kept))
        else:
            simulator.run(decider, share)
    rows = tuple(_decision_rows(simulator, kept))
    counted = Window.load(setting.window).of(simulator.state) if setting.window else np.ones(len(workload), bool)
    metrics = simulator.metrics() if setting.window is None else _of_window(setting, given, workload, seed, simulator)
    jct_s = simulator.jobs()["jct_s"][counted]
    knows = run_times_known(policy, simulator.estimates)
    return Run(word_of(player), seed, metrics, int(counted.sum()), jct_s[np.isfinite(jct_s)], rows, seen, knows)


def _of_window(setting: Setting, player: Any, workload: Workload, seed: int, ended: Any) -> dict[str, float]:
    """The metrics of the setting's window: the run is played again up to its beginning and its end."""
    assert setting.window is not None

    def at(since_s: float) -> dict[str, float]:
        policy = make_for(handed(player), setting.environment)
        simulator = simulator_of(replace(setting, horizon_s=since_s), policy)
        simulator.reset(workload, seed)
        return simulator.run(policy.decider(simulator))

    return windowed(Window.load(setting.window), ended, at)


def _kept(entries: Iterator[Recorded], kept: list[Recorded]) -> Iterator[Recorded]:
    for entry in entries:
        kept.append(entry)
        yield entry


def _decision_rows(simulator: Simulator, entries: Sequence[Recorded]) -> Iterator[tuple[str, ...]]:
    topology = simulator.topology
    label = [topology.gpu_label(gpu) for gpu in range(topology.num_gpus)]
    geo, ps = simulator.workload.geo, simulator.workload.ps
    for time_s, job, kind, gpus, shift_s, why in entries:
        if kind in ABOUT_TABLES and geo is not None:
            yield repr(time_s), geo.table_names[job], WORDS[kind], geo.regions[gpus[0]], "", why
            continue
        if ps is not None:
            if kind not in HAPPENINGS:
                name = "" if job < 0 else str(simulator.workload.job_id[job])
                yield repr(time_s), name, WORDS[kind], group_words(kind, gpus, shift_s), "", why
            continue
        places = " ".join(label[gpu] for gpu in gpus)
        shifted = "" if shift_s is None else repr(shift_s)
        yield repr(time_s), str(simulator.workload.job_id[job]), WORDS[kind], places, shifted, why


def evaluate(
    setting: Setting,
    policies: Sequence[Any],
    seeds: Sequence[int],
    *,
    processes: int = 1,
    executor: Executor | None = None,
    record: Record = "nothing",
    progress: Callable[[float], None] | None = None,
    store: Store | None = None,
) -> list[Run]:
    """Play every policy on every seed; the workload of a seed is the same for all policies.

    Where nothing depends on the seed, one run stands for all seeds.

    Args:
        setting: what to play on.
        policies: words, as on the command line; or objects that decide, copied for each run, called by their `name`
            or else by their class (docs/policies-how-to.md).
        seeds: at least one.
        processes, executor: how many to use; or who plays in place of processes of this machine (`executors.py`).
        record: whose decisions and timelines to keep: nobody's, those of the first seed, all.
        progress: told how many of the `len(policies) * len(seeds)` runs are done, fractions included.
        store: where each run goes as soon as it has ended; those that are there already are not played.

    Returns:
        Runs in the order of the policies, then of the seeds.

    Raises:
        InputError: no policy, two of one name, or what one raised: at once, or with a store after all other runs.
    """
    players = players_of(policies)
    wanted = {word: _seeds_of(setting, player, seeds) for word, player in players.items()}
    recorded = seeds if record == "all" else seeds[:1] if record == "first" else ()
    tasks = [(word, seed, seed in recorded) for seed in seeds for word in players if seed in wanted[word]]
    played = {task[:2]: run for task in tasks if store is not None and (run := store.find(*task)) is not None}
    missing = [(players[word], seed, kept) for word, seed, kept in tasks if (word, seed) not in played]
    show = _shifted(progress, len(players) * len(seeds) / len(tasks), len(played))
    failed: list[PolicyFailed] = []
    for number, outcome in enumerate(_played(setting, missing, (executor, processes), store, show)):
        if isinstance(outcome, Run):
            played[outcome.policy, outcome.seed] = outcome
        else:
            failed.append(outcome)
        show(number + 1)
    _expect_none(failed, len(played), store)
    runs = [
        played[word, seed] if (word, seed) in played else replace(played[word, seeds[0]], seed=seed)
        for word in players
        for seed in seeds
    ]
    if store is not None:
        for run in runs:
            if (run.policy, run.seed) not in played and store.find(run.policy, run.seed, record == "all") is None:
                store.keep(run if record == "all" else replace(run, timeline=None, decisions=()))
    return runs


def _seeds_of(setting: Setting, player: str | Handed, seeds: Sequence[int]) -> Sequence[int]:
    """The seeds that a policy must be played on: the first stands for all where nothing depends on it."""
    return seeds if depends_on_seed(setting, make_for(player, setting.environment)) else seeds[:1]


def _expect_none(failed: Sequence[PolicyFailed], played: int, store: Store | None) -> None:
    if failed and store is not None:  # without a store the first was raised at once
        others = f"{len(failed) - 1} more of its kind; " if failed[1:] else ""
        raise PolicyFailed(f"{failed[0]}; {others}the runs that ended, {played}, are in {store.folder}") from failed[0]


def players_of(policies: Sequence[Any]) -> dict[str, str | Handed]:
    """Who plays, by what tables call it.

    Raises:
        InputError: something that is no policy, or two of one name.
    """
    players: dict[str, str | Handed] = {}
    for policy in policies:
        player = handed(policy)
        word = word_of(player)
        if word in players:
            raise InputError(f"policies: two are called {word!r}; give each a `name` of its own")
        players[word] = player
    return players


def _shifted(progress: Callable[[float], None] | None, weight: float, stored: int) -> Callable[[float], None]:
    """Progress in the runs that are played, told as progress in all that were asked for."""
    if progress is None:
        return lambda done: None
    progress(weight * stored)
    return lambda done: progress(weight * (stored + done))


def _played(
    setting: Setting,
    tasks: Sequence[Task],
    asked: tuple[Executor | None, int],
    store: Store | None,
    progress: Callable[[float], None],
) -> Iterator[Run | PolicyFailed]:
    """The runs of `tasks`, each in the store when it is handed out, or what stopped one."""
    executor = elsewhere(*asked, len(tasks))
    outcomes: Iterator[Run | PolicyFailed]
    if executor is None or not tasks:
        told = [functools.partial(_report, progress, number) for number in range(len(tasks))]
        outcomes = (_play(setting, *task, store, show) for task, show in zip(tasks, told, strict=True))
    else:
        _tell(setting, tasks)
        _expect_portable(setting, [player for player, _, _ in tasks])
        outcomes = executor.each(_play_there, [(setting, *task, store) for task in tasks])
    for outcome in outcomes:
        if store is not None and isinstance(outcome, Run):
            store.keep(outcome)
        yield outcome


def _report(progress: Callable[[float], None], number: int, share: float) -> None:
    progress(number + share)


def _expect_portable(setting: Setting, players: Sequence[str | Handed]) -> None:
    """InputError for a user's object that other processes cannot be given."""
    import cloudpickle  # which Gymnasium needs too

    for one in (setting, *(player for player in players if isinstance(player, Handed))):
        try:
            cloudpickle.dumps(one)
        except Exception as error:  # whatever the objects inside raise
            what = f"policy {one.word!r}" if isinstance(one, Handed) else "the setting"
            reason = " ".join(str(error).split())
            raise InputError(f"{what}: other processes cannot be given it ({reason}); play with processes=1") from error


def _tell(setting: Setting, tasks: Sequence[Task]) -> None:
    """The mistakes and warnings of the first workload, which processes that play keep to themselves: here, once."""
    workload = workload_of(setting, tasks[0][1] if setting.is_drawn else 0)
    semantics = load_semantics(setting.semantics)
    rules = [
        make_for(player, setting.environment).rule_under(semantics)
        for player in {word_of(player): player for player, _, _ in tasks}.values()
    ]
    if any(rule is not None and rule.placer in SKEW_PLACERS for rule in rules):
        skewed_jobs(workload)


def _play_there(task: tuple[Setting, str | Handed, int, bool, Store | None]) -> Run | PolicyFailed:
    return _play(*task, None)


def _play(
    setting: Setting,
    player: str | Handed,
    seed: int,
    record: bool,
    store: Store | None,
    progress: Callable[[float], None] | None,
) -> Run | PolicyFailed:
    try:
        run = play(setting, player, seed, record, progress)
    except PolicyFailed as error:
        if store is None:
            raise
        return error  # the others are played to their ends, and kept
    if store is not None:
        store.expect_unchanged(setting, player)
    return run


def default_setting(environment: str) -> tuple[str, Mapping[str, str]]:
    """The id of an environment given by id or short name, and its topology, workload and network.

    Raises:
        InputError: there is no such environment.
    """
    from ..envs.registration import ENVIRONMENTS, resolve

    env_id = resolve(environment)
    return env_id, ENVIRONMENTS[env_id].defaults
