"""Events per CPU second of the compiled schedulers, steps per second of Delay-v0, time to the first step.

Beside every scheduler that it knows, the pure-Python reference simulator of the tests plays the same workload in the
same run; an event is an arrival, a completion or a demotion in both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from _measure import (
    Spread,
    arguments_of,
    at_load,
    cpu_seconds,
    in_process,
    play,
    print_document,
    print_table,
    run_times,
    verdict,
)
from _replay import DELAY_PLAYERS, check, record, speeds

from clustergym import policies
from clustergym.experiments.console.terminal import progress
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload

LOAD = 1.0
STEADY_LOAD = 0.9  # for the scaling: at 1 and more the queue, and with it the work of an event, grows with the jobs
MIXES = ("philly-like", "poisson")
ENV_ID = "clustergym/Delay-v0"
STEPS_TARGET = 200_000.0
START_TARGETS_S = {"warm": 1.0, "cold": 20.0}
FIRST_STEP = (
    "import json, time, clustergym, gymnasium; "
    f"env = gymnasium.make({ENV_ID!r}); env.reset(seed=0); env.step([0, 0, 0]); "
    "print(json.dumps({'cpu_s': time.process_time()}))"
)


@dataclass(frozen=True)
class Case:
    """One scheduler on one workload; `target` is in events per CPU second."""

    policy: str
    mix: str
    machines: int  # of 8 GPUs
    jobs: int
    runs: int
    target: float | None = None
    reference: bool = True

    @property
    def topology(self) -> str:
        """The cluster."""
        return f"flat:machines={self.machines},gpus_per_machine=8"


def cases(quick: bool) -> list[Case]:
    """The rows of the first table. The reference knows no skew rule (tiresias), and takes minutes for large LAS."""
    if quick:
        return [Case(policy, mix, 8, 300, 2) for mix in MIXES for policy in ("fifo", "las")]
    found = []
    for mix in MIXES:
        targets = {"fifo": 4e6, "sjf": 4e6, "srtf": None, "las": 1e6, "tiresias": None}
        found += [Case(name, mix, 64, 10_000, 25, goal, name != "tiresias") for name, goal in targets.items()]
    for mix in MIXES:
        targets = {"fifo": 2e6, "sjf": 2e6, "las": None, "tiresias": None}
        found += [Case(name, mix, 800, 100_000, 5, goal, goal is not None) for name, goal in targets.items()]
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the tables or the JSON document; a missed target is printed as missed, the status is 0."""
    options = arguments_of(__doc__.splitlines()[0], argv)
    todo = cases(options.quick)
    sizes = (200, 400) if options.quick else (10_000, 100_000, 1_000_000)
    with progress("bench engine", len(todo) + 2 * len(sizes) + 2, options.quiet) as show:
        events: list[dict[str, Any]] = []
        for case in todo:
            events.append(measure(case, options.seed))
            show(len(events))
        scaling: list[dict[str, Any]] = []
        for policy in ("fifo", "las"):
            for jobs in sizes:
                scaling.append(measure_scaling(policy, jobs, options.seed, options.quick))
                show(len(events) + len(scaling))
        environment = measure_environment(options.seed, options.quick)
        show(len(events) + len(scaling) + 1)
        startup = measure_startup(options.quick)
    document = {
        "load": LOAD,
        "events": events,
        "scaling_load": STEADY_LOAD,
        "scaling": scaling,
        "environment": environment,
        "startup": startup,
    }
    document["missed"] = [
        row["name"] for key in ("events", "environment", "startup") for row in document[key] if row["met"] is False
    ]
    (print_document if options.json else print_tables)(document)
    return 0


def measure(case: Case, seed: int) -> dict[str, Any]:
    """One row: events per CPU second of the kernels, and of the reference if it plays this case."""
    workload = at_load(f"{case.mix}:jobs={case.jobs}", LOAD, 8 * case.machines, seed)
    rule = policies.make(case.policy).rule
    simulator = Simulator(case.topology, "none", rule=rule)
    times = run_times(simulator, workload, seed, case.runs)
    events = int(simulator.state.events)
    jobs = simulator.jobs()
    row = {
        "name": f"{case.policy}, {case.mix}, {8 * case.machines:,} GPUs, {case.jobs:,} jobs",
        "policy": case.policy,
        "workload": case.mix,
        "gpus": 8 * case.machines,
        "jobs": case.jobs,
        "mean_gang": float(workload.gpus.mean()),
        "waited": float((jobs["first_start_s"] > jobs["arrival_s"]).mean()),
        "events": events,
        "preemptions": int(simulator.state.preemptions),
        "runs": case.runs,
        "events_per_s": events / times.best_s,
        "events_per_s_median": events / times.median_s,
        "target": case.target,
        "met": None if case.target is None else events / times.best_s >= case.target,
    }
    return row | measure_reference(case, workload, events, times, jobs["finish_s"])


def measure_reference(
    case: Case, workload: Workload, events: int, times: Spread, finish_s: np.ndarray
) -> dict[str, Any]:
    """The same in plain Python, the ratio of the best times, and whether all jobs finished at the same instants."""
    if not case.reference:
        return {"reference_events_per_s": None, "ratio": None, "same_finish_times": None}
    jobs = list(zip(workload.arrival_s.tolist(), workload.gpus.tolist(), workload.duration_s.tolist(), strict=True))
    simulate = load_reference()
    outcome: dict[str, Any] = {}
    taken_s: list[float] = []
    while len(taken_s) < 3 and sum(taken_s) < 2.0:
        taken_s.append(cpu_seconds(lambda: outcome.update(simulate(jobs, [8] * case.machines, order=case.policy))))
    return {
        "reference_events_per_s": events / min(taken_s),
        "ratio": min(taken_s) / times.best_s,
        "same_finish_times": outcome["finish_s"] == finish_s.tolist(),
    }


def load_reference() -> Callable[..., dict[str, Any]]:
    """`simulate` of tests/support/reference.py, which is no part of the package."""
    from clustergym.tests.support.reference import simulate

    return simulate


def measure_scaling(policy: str, jobs: int, seed: int, quick: bool) -> dict[str, Any]:
    """Cost per event against the size of the workload, and by tenths of one run, as more and more jobs finish."""
    workload = at_load(f"poisson:jobs={jobs}", STEADY_LOAD, 512, seed)
    simulator = Simulator("flat:machines=64,gpus_per_machine=8", "none", rule=policies.make(policy).rule)
    times = run_times(simulator, workload, seed, 2 if quick else max(3, min(25, 300_000 // jobs)))
    events = int(simulator.state.events)
    tenths = [
        min(column) for column in zip(*(_tenths_s(simulator, workload, events, seed) for _ in range(3)), strict=True)
    ]
    return {
        "policy": policy,
        "jobs": jobs,
        "events": events,
        "events_per_s": events / times.best_s,
        "events_per_s_median": events / times.median_s,
        "ns_per_event": 1e9 * times.best_s / events,
        "ns_per_event_by_tenth": [1e9 * tenth_s / (events / 10) for tenth_s in tenths],
    }


def _tenths_s(simulator: Simulator, workload: Workload, events: int, seed: int) -> list[float]:
    """CPU seconds of each tenth of the events of one run."""
    simulator.reset(workload, seed)
    taken_s = []
    for tenth in range(1, 11):
        goal = events * tenth // 10 if tenth < 10 else 2 * events
        taken_s.append(cpu_seconds(lambda left=goal - int(simulator.state.events): play(simulator, left)))
    return taken_s


def measure_environment(seed: int, quick: bool) -> list[dict[str, Any]]:
    """Delay-v0 with its defaults through `gymnasium.make`: recorded legal actions, replayed."""
    found = []
    for player in DELAY_PLAYERS:
        env = gymnasium.make(ENV_ID)
        episodes = [record(env, seed + i, player) for i in range(1 if quick else 4)]
        for episode in episodes:
            check(env, episode)
        measured = speeds(env, episodes, 2 if quick else 15)
        row = {"name": f"Delay-v0, {player}", "actions": player, **measured, "target": STEPS_TARGET}
        found.append(row | {"met": measured["steps_per_s"] >= STEPS_TARGET})
        env.close()
    return found


def measure_startup(quick: bool) -> list[dict[str, Any]]:
    """Seconds of a whole process that imports, makes, resets and steps: with nothing compiled yet, then with all."""
    if quick:
        return [_startup("warm", [in_process(["-P", "-c", FIRST_STEP])])]
    with tempfile.TemporaryDirectory(prefix="clustergym-bench-") as folder:
        cold = [in_process(["-P", "-c", FIRST_STEP], Path(folder))]
        warm = [in_process(["-P", "-c", FIRST_STEP], Path(folder)) for _ in range(7)]
    return [_startup("warm", warm), _startup("cold", cold)]


def _startup(kind: str, runs: list[tuple[dict[str, Any], float]]) -> dict[str, Any]:
    wall_s = [seconds for _, seconds in runs]
    cpu_s = [said["cpu_s"] for said, _ in runs]
    return {
        "name": f"{kind} start to the first step",
        "start": kind,
        "runs": len(runs),
        "wall_s": min(wall_s),
        "wall_s_median": float(np.median(wall_s)),
        "cpu_s": min(cpu_s),
        "cpu_s_median": float(np.median(cpu_s)),
        "target": START_TARGETS_S[kind],
        "met": min(wall_s) < START_TARGETS_S[kind],
    }


def print_tables(document: dict[str, Any]) -> None:
    """The document as tables."""
    _print_events(document["events"])
    _print_scaling(document["scaling"])
    _print_environment(document["environment"])
    _print_startup(document["startup"])


def _print_events(rows: list[dict[str, Any]]) -> None:
    print_table(
        f"million events per CPU second, one core, load {LOAD:g}",
        (
            "policy",
            "workload",
            "GPUs",
            "jobs",
            "mean gang",
            "waited",
            "best",
            "median",
            "target",
            "",
            "reference",
            "ratio",
        ),
        [
            (
                row["policy"],
                row["workload"],
                f"{row['gpus']:,}",
                f"{row['jobs']:,}",
                f"{row['mean_gang']:.2f}",
                f"{100 * row['waited']:.0f} %",
                _millions(row["events_per_s"]),
                _millions(row["events_per_s_median"]),
                row["target"] and f">= {row['target'] / 1e6:g}",
                verdict(row["met"]),
                _millions(row["reference_events_per_s"], 4),
                row["ratio"] and f"{row['ratio']:.0f} x",
            )
            for row in rows
        ],
        words=2,
    )
    if any(row["same_finish_times"] is False for row in rows):
        print("the reference did NOT give the same finish times everywhere: compare the simulators before their speed")


def _print_scaling(rows: list[dict[str, Any]]) -> None:
    print_table(
        f"cost of an event against the number of jobs: poisson, 512 GPUs, load {STEADY_LOAD:g}",
        ("policy", "jobs", "M events/s", "median", "ns per event", "in the 2nd tenth", "in the 9th tenth"),
        [
            (
                row["policy"],
                f"{row['jobs']:,}",
                _millions(row["events_per_s"]),
                _millions(row["events_per_s_median"]),
                f"{row['ns_per_event']:.0f}",
                f"{row['ns_per_event_by_tenth'][1]:.0f}",
                f"{row['ns_per_event_by_tenth'][8]:.0f}",
            )
            for row in rows
        ],
    )


def _print_environment(rows: list[dict[str, Any]]) -> None:
    print_table(
        "Delay-v0 through gymnasium.make: thousand steps per CPU second",
        ("actions", "steps", "best", "median", "with resets", "median", "reset, us", "target", ""),
        [
            (
                row["actions"],
                f"{row['steps']:,}",
                *(f"{row[key] / 1e3:.0f}" for key in ("steps_per_s", "steps_per_s_median")),
                *(f"{row[key] / 1e3:.0f}" for key in ("steps_per_s_with_resets", "steps_per_s_with_resets_median")),
                f"{1e6 * row['reset_s']:.0f}",
                f">= {row['target'] / 1e3:g}",
                verdict(row["met"]),
            )
            for row in rows
        ],
    )


def _print_startup(rows: list[dict[str, Any]]) -> None:
    print_table(
        "a process that imports, makes, resets and steps once: seconds",
        ("start", "runs", "wall, best", "median", "CPU, best", "median", "target", ""),
        [
            (
                row["start"],
                row["runs"],
                *(f"{row[key]:.2f}" for key in ("wall_s", "wall_s_median", "cpu_s", "cpu_s_median")),
                f"< {row['target']:g}",
                verdict(row["met"]),
            )
            for row in rows
        ],
    )


def _millions(per_s: float | None, digits: int = 2) -> str | None:
    return None if per_s is None else f"{per_s / 1e6:.{digits}f}"


if __name__ == "__main__":
    raise SystemExit(main())
