"""Play policies on the same workloads, seed by seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ...policies import Policy, PolicyFailed, PolicyObject, as_player, make_for, playing, word_of
from ...simulator.base.arguments import checked_seed
from ...simulator.base.errors import InputError
from ...simulator.configuration.cluster_config import SimulatedCluster
from ...simulator.engine.simulator import Simulator
from ...simulator.engine.time_window import Window, windowed
from ...simulator.jobs.estimates import Estimates
from ...simulator.profiles.skew import jobs_taken_for_skewed
from ...simulator.rules.rule import SKEW_PLACERS
from ...simulator.workloads import Workload
from ...simulator.workloads.log_samples import Slices, is_resampled, is_sampled, samples_of
from ..settings.evaluation_setting import Setting, may_draw, network_of, workload_of
from .by_group import by_group, expect_groups
from .copy_rows import CopyRows
from .executors import Executor, elsewhere
from .group_timeline import group_timeline, group_words
from .recording import ABOUT_TABLES, HAPPENINGS, JOB_FIELDS, WORDS, Recorded, Timeline, decisions, timeline
from .runs import Run, RunStore, labels_of, players_of, with_labels

Record = Literal["nothing", "first", "all"]
Task = tuple[str | PolicyObject, int, bool]  # a player, its seed, and whether the run is recorded
Show = Callable[[float], None]
Parallelism = tuple[Executor | None, int]  # the executor, or the number of processes
MOST_ASKED = 20_000  # jobs of a run of which reasons are kept: each instant with decisions costs a copy of the state


def simulator_of(config: SimulatedCluster, policy: Policy) -> Any:
    """The simulator of a cluster for `policy`, with its compiled rule; InputError if it needs hidden run times."""
    policy.expect_known(config.estimates)
    return config.for_policy(policy).build(policy.rule_under(config.semantics))


def run_times_known(policy: Policy, estimates: Estimates) -> str:
    """Whether a policy knows how long jobs run: `yes`, `no`, or `estimates`."""
    if estimates.hides or not policy.knows_run_times:
        return "no"
    return "yes" if estimates.kind == "exact" else "estimates"


def play(setting: Setting, player: Any, seed: int, record: bool = False, progress: Show | None = None) -> Run:
    """One run; `player` is a word, or an object that decides, of which a copy plays.

    `record` keeps decisions and the timeline; `progress` is called with the share of jobs that have finished.
    InputError for an error of a user's policy, with the line of its file.
    """
    given, player = player, as_player(player)
    policy = make_for(player, setting.environment)
    workload = workload_of(setting, seed if setting.is_drawn else 0)
    for by in setting.groupings:
        expect_groups(setting, by, workload)
    simulator = simulator_of(setting.config, policy)
    simulator.reset(policy.workload_for(workload), seed)
    decider = policy.decider(simulator)
    share = None if progress is None else lambda done: progress(done / len(workload))
    kept: list[Recorded] = []
    seen: Timeline | None = None
    copies = CopyRows(simulator) if record and workload.geo is not None else None
    with playing(policy, seed):
        if record:
            follow = timeline if workload.ps is None else group_timeline
            asked = policy if len(workload) <= MOST_ASKED else None
            report = share if copies is None else _taking_copies(copies, share)
            seen = follow(simulator, _kept(decisions(simulator, decider, report, asked), kept))
        else:
            simulator.run(decider, share)
    rows = tuple(_decision_rows(simulator, kept))
    counted = Window.load(setting.window).of(simulator.state) if setting.window else np.ones(len(workload), bool)
    metrics = simulator.metrics() if setting.window is None else _of_window(setting, given, workload, seed, simulator)
    for by in setting.groupings:
        metrics |= by_group(simulator, setting, by, counted)
    metrics |= policy.measured(simulator, counted)
    jobs = simulator.jobs()
    jct_s = jobs["jct_s"][counted]
    if seen is not None and workload.ps is None:
        seen = replace(seen, **{name: jobs[name] for name in JOB_FIELDS})
    knows = run_times_known(policy, simulator.estimates)
    moved = () if copies is None else copies.rows()
    drawn = simulator.is_drawn or may_draw(setting, player)
    about = word_of(player), seed, metrics, int(counted.sum()), jct_s[np.isfinite(jct_s)]
    of_one_log = setting.is_drawn and is_resampled(setting.workload)
    return Run(*about, rows, seen, knows, moved, drawn, is_resampled=of_one_log)


def _taking_copies(copies: CopyRows, share: Callable[[int], None] | None) -> Callable[[int], None]:
    def report(done: int) -> None:
        copies.take()
        if share is not None:
            share(done)

    return report


def _of_window(setting: Setting, player: Any, workload: Workload, seed: int, ended: Any) -> dict[str, float]:
    """The metrics of the setting's window: the run is played again up to its beginning and its end."""
    assert setting.window is not None

    def at(since_s: float) -> dict[str, float]:
        policy = make_for(as_player(player), setting.environment)
        simulator = simulator_of(setting.config.copy_with(horizon_s=since_s), policy)
        simulator.reset(policy.workload_for(workload), seed)
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
    store: RunStore | None = None,
) -> list[Run]:
    """Play every policy on every seed; the workload of a seed is the same for all policies.

    Where nothing depends on the seed, one run stands for all seeds.

    Args:
        setting: to play on.
        policies: words, as on the command line, with or without labels; or objects that decide, copied for each run,
            called by their `name` or else by their class (docs/tutorials/write-a-policy.md).
        seeds: at least one.
        processes, executor: number of processes of this machine; or an executor in their place (`executors.py`).
        record: whose decisions and timelines to keep: no run's, those of the first seed, all.
        progress: called with the number of the `len(policies) * len(seeds)` runs that are done, fractions included.
        store: keeps each run when it ends; its earlier runs are not played again.

    Returns:
        Runs in the order of the policies, then of the seeds.

    Raises:
        InputError: no policy, two of one name, a seed beyond the slices of a log; or an error of a policy: at once, or
            with a store after all other runs.
    """
    if not isinstance(setting, Setting):
        raise InputError(f"setting = {setting!r:.80}: expected a Setting, as Setting.of('Delay')")
    _expect_some(policies, seeds)
    if is_sampled(setting.workload) and setting.is_drawn and any(seeds):  # slice 0 is always there
        samples, _ = samples_of(setting.workload)
        if isinstance(samples, Slices):
            samples.expect_seeds(seeds)
    players = players_of(policies)
    recorded = frozenset(seeds if record == "all" else seeds[:1] if record == "first" else ())
    every = [(player, seed, seed in recorded) for seed in seeds for player in players.values()]
    # Players whose seeds may differ unseen play all at once; of others the first run shows whether seeds differ.
    sure = {word for word, player in players.items() if may_draw(setting, player)}
    at_once = [word_of(player) in sure or seed == seeds[0] for player, seed, _ in every]
    first = [task for task, is_first in zip(every, at_once, strict=True) if is_first]
    played, failed = _play_all(setting, first, (executor, processes), store, _shifted(progress, 0))
    fixed = {run.policy for run in played.values() if not run.is_drawn}
    later = (task for task, is_first in zip(every, at_once, strict=True) if not is_first)
    others = [task for task in later if word_of(task[0]) not in fixed]
    later_progress = _shifted(progress, len(every) - len(others))
    more, failed_too = _play_all(setting, others, (executor, processes), store, later_progress)
    played, failed = played | more, failed + failed_too
    _expect_none(failed, len(played), store)
    keys = [(word, seed) for word in players for seed in seeds]
    runs = [played[key] if key in played else replace(played[key[0], seeds[0]], seed=key[1]) for key in keys]
    if store is not None:
        for run in runs:
            if (run.policy, run.seed) not in played and store.find(run.policy, run.seed, record == "all") is None:
                store.keep(run if record == "all" else replace(run, timeline=None, decisions=(), copies=()))
    return with_labels(runs, labels_of(policies))


def _play_all(
    setting: Setting, tasks: Sequence[Task], asked: Parallelism, store: RunStore | None, show: Show
) -> tuple[dict[tuple[str, int], Run], list[PolicyFailed]]:
    """The runs of `tasks` by policy and seed, stored ones as they are, and the errors of others; `show` counts."""
    played: dict[tuple[str, int], Run] = {}
    missing: list[Task] = []
    for task in tasks:
        run = None if store is None else store.find(word_of(task[0]), *task[1:])
        if run is None:
            missing.append(task)
        else:
            played[run.policy, run.seed] = run
    failed: list[PolicyFailed] = []
    stored = len(played)
    show(stored)
    for number, outcome in enumerate(_played(setting, missing, asked, store, lambda done: show(stored + done))):
        if isinstance(outcome, Run):
            played[outcome.policy, outcome.seed] = outcome
        else:
            failed.append(outcome)
        show(stored + number + 1)
    return played, failed


def _expect_some(policies: Any, seeds: Any) -> None:
    if isinstance(policies, str) or not isinstance(policies, Sequence) or not policies:
        raise InputError(f"policies = {policies!r:.80}: expected a list of at least one word or object that decides")
    if isinstance(seeds, str) or not isinstance(seeds, Sequence | np.ndarray) or not len(seeds):
        raise InputError(f"seeds = {seeds!r:.80}: expected a list of at least one whole number")
    for seed in seeds:
        checked_seed(seed)


def _expect_none(failed: Sequence[PolicyFailed], played: int, store: RunStore | None) -> None:
    if failed and store is not None:  # without a store the first was raised at once
        others = f"{len(failed) - 1} more of its kind; " if failed[1:] else ""
        raise PolicyFailed(f"{failed[0]}; {others}the runs that ended, {played}, are in {store.folder}") from failed[0]


def _shifted(progress: Show | None, before: int) -> Show:
    """Progress in some runs as progress in all, of which `before` are done."""
    return lambda done: None if progress is None else progress(before + done)


def _played(
    setting: Setting, tasks: Sequence[Task], asked: Parallelism, store: RunStore | None, progress: Show
) -> Iterator[Run | PolicyFailed]:
    """The runs of `tasks`, each in the store when it is yielded, or the error that stopped one."""
    executor = elsewhere(*asked, len(tasks))
    outcomes: Iterator[Run | PolicyFailed]
    if executor is None or not tasks:
        shows = [functools.partial(_report, progress, number) for number in range(len(tasks))]
        outcomes = (_play(setting, *task, store, show) for task, show in zip(tasks, shows, strict=True))
    else:
        _warn_once_here(setting, tasks)
        _expect_portable(setting, [player for player, _, _ in tasks])
        outcomes = executor.each(_play_there, [(setting, *task, store) for task in tasks])
    for outcome in outcomes:
        if store is not None and isinstance(outcome, Run):
            store.keep(outcome)
        yield outcome


def _report(progress: Show, number: int, share: float) -> None:
    progress(number + share)


def _expect_portable(setting: Setting, players: Sequence[str | PolicyObject]) -> None:
    import cloudpickle  # which Gymnasium needs too

    for one in (setting, *(player for player in players if isinstance(player, PolicyObject))):
        try:
            cloudpickle.dumps(one)
        except Exception as error:  # any error of the objects inside
            what = f"policy {one.word!r}" if isinstance(one, PolicyObject) else "the setting"
            reason = " ".join(str(error).split())
            raise InputError(f"{what}: other processes cannot be given it ({reason}); play with processes=1") from error


def _warn_once_here(setting: Setting, tasks: Sequence[Task]) -> None:
    """Warn of the first workload here, once: processes that play do not."""
    workload = workload_of(setting, tasks[0][1] if setting.is_drawn else 0)
    semantics = setting.config.semantics
    players = {word_of(player): player for player, _, _ in tasks}.values()
    rules = [make_for(player, setting.environment).rule_under(semantics) for player in players]
    if any(rule is not None and rule.placer in SKEW_PLACERS for rule in rules):
        jobs_taken_for_skewed(workload, network_of(setting).name)


def _play_there(task: tuple[Setting, str | PolicyObject, int, bool, RunStore | None]) -> Run | PolicyFailed:
    return _play(*task, None)


def _play(
    setting: Setting, player: str | PolicyObject, seed: int, record: bool, store: RunStore | None, progress: Show | None
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
