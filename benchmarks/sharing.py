"""Events per CPU second of the schedulers that share GPUs, one of their passes on 16 GPUs, and 160 jobs under Pollux.

Two jobs may hold a GPU, with the measured interference. `philly-sample` has the memory of its GPUs too (11 GiB), so
that sub-batches shrink; the others are philly-like and poisson with the six measured models. An event is an arrival or
a completion. Pollux plays its own workload 6 with the measured tables of its artifact, where the real traces are beside
the source tree, and is left out elsewhere.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _measure import ROOT, arguments_of, at_load, in_process, print_document, print_table, run_times, verdict

from clustergym import policies
from clustergym.experiments.console.terminal import progress
from clustergym.simulator.elastic.applications import measured_applications
from clustergym.simulator.elastic.elastic import TrainingPace
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import open_workload

LOAD = 1.0
SIX = "models=bert/cifar10/deepspeech2/imagenet/ncf/yolov3"
MIXES = {"philly-sample": "philly-sample", "philly-like": f"philly-like:{SIX}", "poisson": f"poisson:{SIX}"}
MEMORY_GB = {"philly-sample": 11.0}
GOALS = {"sjf": None, "sjf-ffs": 2e6, "sjf-bsbf": 5e5}
MIX_OF_GOALS = "philly-like"  # as the targets of bench engine: 512 GPUs, 10,000 jobs
PASS_GOAL_S = 1e-3  # the paper's own scheduler: under 0.02 s
ARTIFACT = ROOT.parent / "shared" / "traces" / "adaptdl" / "simulator"
POLLUX_GOAL_S = 30.0  # the artifact's own simulator: 15 to 28 minutes


@dataclass(frozen=True)
class Case:
    """One scheduler on one mix of jobs; `target` is in events per CPU second."""

    policy: str
    mix: str
    machines: int  # of 8 GPUs
    jobs: int
    runs: int
    target: float | None


def cases(quick: bool) -> list[Case]:
    """The rows of the first table; quick: on few enough GPUs for the kernels that environments have compiled."""
    machines, jobs, runs = (4, 136, 2) if quick else (64, 10_000, 15)
    return [
        Case(policy, mix, machines, jobs, runs, goal if mix == MIX_OF_GOALS else None)
        for mix in MIXES
        for policy, goal in GOALS.items()
    ]


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the tables or the JSON document; a missed target is printed as missed, the status is 0."""
    options = arguments_of(__doc__.splitlines()[0], argv)
    todo = cases(options.quick)
    with progress("bench sharing", len(todo) + 1, options.quiet) as show:
        events = []
        for case in todo:
            events.append(measure(case, options.seed))
            show(len(events))
        passes = [measure_passes(policy, options.seed, options.quick) for policy in ("sjf-ffs", "sjf-bsbf")]
        pollux = [in_process(pollux_run(options.seed, options.quick))[0]] if ARTIFACT.is_dir() else []
    document: dict[str, Any] = {"load": LOAD, "events": events, "passes": passes, "pollux": pollux}
    document["missed"] = [row["name"] for row in (*events, *passes, *pollux) if row["met"] is False]
    (print_document if options.json else print_tables)(document)
    return 0


def measure(case: Case, seed: int) -> dict[str, Any]:
    """One row of the first table."""
    word = MIXES[case.mix]
    workload = at_load(f"{word}{',' if ':' in word else ':'}jobs={case.jobs}", LOAD, 8 * case.machines, seed)
    sharing = Sharing(memory_gb=MEMORY_GB.get(case.mix))
    topology = f"flat:machines={case.machines},gpus_per_machine=8"
    simulator = Simulator(topology, rule=policies.make(case.policy).rule, sharing=sharing)
    times = run_times(simulator, workload, seed, case.runs)
    s, jobs = simulator.state, simulator.jobs()
    return {
        "name": f"{case.policy}, {case.mix}, {8 * case.machines:,} GPUs, {case.jobs:,} jobs",
        "policy": case.policy,
        "workload": case.mix,
        "gpus": 8 * case.machines,
        "jobs": case.jobs,
        "mean_gang": float(workload.gpus.mean()),
        "waited": float((jobs["first_start_s"] > jobs["arrival_s"]).mean()),
        "shared": float(s.shared_integral / s.busy_integral),
        "events": int(s.events),
        "runs": case.runs,
        "events_per_s": int(s.events) / times.best_s,
        "events_per_s_median": int(s.events) / times.median_s,
        "target": case.target,
        "met": None if case.target is None else int(s.events) / times.best_s >= case.target,
    }


def measure_passes(policy: str, seed: int, quick: bool) -> dict[str, Any]:
    """Seconds of a pass on the paper's testbed, 16 GPUs: all passes of workloads like its 30 jobs, called by Python."""
    simulator = Simulator("bsbf-physical", rule=policies.make(policy).rule, sharing=Sharing(memory_gb=11.0))
    taken_s: list[float] = []
    for i in range(3 if quick else 50):
        simulator.reset(open_workload("bsbf-physical", seed=seed + i), seed)
        while not simulator.ended:
            began_s = time.perf_counter()
            simulator.schedule()
            taken_s.append(time.perf_counter() - began_s)
            simulator.advance()
    mean_s = float(np.mean(taken_s[1:]))  # the first may compile
    return {
        "name": f"one pass of {policy}, 16 GPUs",
        "policy": policy,
        "passes": len(taken_s) - 1,
        "mean_s": mean_s,
        "p99_s": float(np.quantile(taken_s[1:], 0.99)),
        "target": PASS_GOAL_S,
        "met": mean_s < PASS_GOAL_S,
    }


def pollux_run(seed: int, quick: bool) -> list[str]:
    """Arguments of a Python that prints what `measure_pollux` finds."""
    folder = str(Path(__file__).resolve().parent)
    code = f"import json, sys; sys.path.insert(0, {folder!r}); import sharing"
    return ["-c", f"{code}; print(json.dumps(sharing.measure_pollux({seed}, {quick})))"]


def measure_pollux(seed: int, quick: bool) -> dict[str, Any]:
    """CPU seconds of Pollux on its workload 6, 160 jobs on 16 machines of 4 GPUs, rounds of 60 s; quick: 5 jobs."""
    pace = TrainingPace(measured_applications(str(ARTIFACT / "traces")))
    policy = policies.make("pollux")
    simulator = Simulator("flat:machines=16,gpus_per_machine=4", rule=policy.clock, pace=pace)
    workload = open_workload(ARTIFACT / "workloads" / "workload-6.csv")
    few = workload.take(range(5))
    simulator.reset(few, seed)
    simulator.run(policy)  # may compile
    simulator.reset(few if quick else workload, seed)
    began_s = time.process_time()
    metrics = simulator.run(policy)
    taken_s = time.process_time() - began_s
    return {
        "name": "160 jobs under pollux",
        "jobs": len(few if quick else workload),
        "jct_mean": metrics["jct_mean"],
        "cpu_s": taken_s,
        "target": POLLUX_GOAL_S,
        "met": taken_s < POLLUX_GOAL_S,
    }


def print_tables(document: dict[str, Any]) -> None:
    """The document as tables."""
    print_table(
        f"million events per CPU second, one core, load {document['load']:g}, two jobs a GPU",
        ("policy", "workload", "GPUs", "jobs", "mean gang", "waited", "shared", "best", "median", "target", ""),
        [
            (
                row["policy"],
                row["workload"],
                f"{row['gpus']:,}",
                f"{row['jobs']:,}",
                f"{row['mean_gang']:.2f}",
                f"{100 * row['waited']:.0f} %",
                f"{100 * row['shared']:.0f} %",
                f"{row['events_per_s'] / 1e6:.2f}",
                f"{row['events_per_s_median'] / 1e6:.2f}",
                row["target"] and f">= {row['target'] / 1e6:g}",
                verdict(row["met"]),
            )
            for row in document["events"]
        ],
        words=2,
    )
    print_table(
        "one pass on 16 GPUs, called from Python: microseconds",
        ("policy", "passes", "mean", "99 %", "target", ""),
        [
            (
                row["policy"],
                f"{row['passes']:,}",
                f"{1e6 * row['mean_s']:.1f}",
                f"{1e6 * row['p99_s']:.1f}",
                f"< {1e6 * row['target']:g}",
                verdict(row["met"]),
            )
            for row in document["passes"]
        ],
    )
    if document["pollux"]:
        print_pollux(document["pollux"])


def print_pollux(rows: list[dict[str, Any]]) -> None:
    """The runs of Pollux as a table."""
    print_table(
        "pollux, workload 6 of its artifact, 64 GPUs, rounds of 60 s: CPU seconds",
        ("jobs", "mean JCT, s", "CPU s", "target", ""),
        [
            (
                str(row["jobs"]),
                f"{row['jct_mean']:,.1f}",
                f"{row['cpu_s']:.1f}",
                f"< {row['target']:g}",
                verdict(row["met"]),
            )
            for row in rows
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
