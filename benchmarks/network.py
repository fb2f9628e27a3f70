"""Phase events per CPU second of jobs that share links, by how many share a link and by the size of the network.

Models, batches and workers are drawn from those of paper cassini, and everybody goes on for ever. An event is the
beginning or the end of an Up phase. What an event costs is decided by how many sending jobs get new rates; `filled` has
the mean number of jobs a filling: all that full links join where rates come from a table, elsewhere those that the
change reaches. Then what an event of the largest case costs at least, and the time of a search for rotations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import _known_rates
import _rotation
import numpy as np
from _measure import Spread, arguments_of, cpu_seconds, print_document, print_table, verdict

from clustergym.experiments.console.terminal import progress
from clustergym.simulator.cluster.fabrics import cassini_testbed, leaf_spine
from clustergym.simulator.cluster.links import GBPS, LinkGraph
from clustergym.simulator.cluster.routes import LinkUse, link_use
from clustergym.simulator.contention.phase_run import Contender, PhaseRun
from clustergym.simulator.profiles.cassini_models import cassini_models, phases_of
from clustergym.simulator.profiles.phases import Phases

GOAL = 1e6  # events per CPU second, 24 jobs on 48 links
TESTBED_JOBS, DRAWN_LINKS = 24, 48
WARM_S = 2.0
PLACES = ("near", "scattered")
Jobs = tuple[np.ndarray, list[Contender]]
Draw = Callable[[np.random.Generator], Jobs]


@dataclass(frozen=True)
class Case:
    """One row: how to draw capacities and jobs, seconds to play, runs, and the target in events per CPU second."""

    network: str
    placement: str
    draw: Draw
    played_s: float
    runs: int
    target: float | None = None


def any_phases(rng: np.random.Generator, workers: int) -> Phases:
    """A model of the paper with a batch of its range."""
    model = list(cassini_models().values())[rng.integers(len(cassini_models()))]
    return phases_of(model.name, workers, int(rng.integers(model.batch[0], model.batch[1] + 1)))


def on_drawn_links(rng: np.random.Generator, each: int) -> Jobs:
    """24 jobs of 4 workers on 48 links of 50 Gbps, each on so many that are drawn; one flow on each."""
    jobs = []
    for _ in range(TESTBED_JOBS):
        links = np.sort(rng.choice(DRAWN_LINKS, each, replace=False))
        jobs.append(Contender(any_phases(rng, 4), LinkUse(links, np.ones(each, np.int64))))
    return np.full(DRAWN_LINKS, 50 * GBPS), jobs


def on_servers(rng: np.random.Generator, links: LinkGraph, jobs: int, workers: tuple[int, ...], near: bool) -> Jobs:
    """Rings on as many servers as workers: side by side, the jobs spread evenly, or drawn."""
    drawn = []
    for job in range(jobs):
        count = int(rng.choice(workers))
        first = job * links.num_machines // jobs
        machines = [(first + i) % links.num_machines for i in range(count)]
        if not near:
            machines = np.sort(rng.choice(links.num_machines, count, replace=False)).tolist()
        drawn.append(Contender(any_phases(rng, count), link_use(links, machines)))
    return links.capacity, drawn


def cases(quick: bool) -> list[Case]:
    """The rows."""
    played_s, runs = (5.0, 2) if quick else (200.0, 7)
    testbed = cassini_testbed().links
    assert testbed is not None
    rows = [
        Case("testbed", place, _servers(testbed, TESTBED_JOBS, (2,), place), played_s, runs, GOAL) for place in PLACES
    ]
    for each in (2, 4) if quick else (1, 2, 4, 8):
        rows.append(Case("48 links", f"{each} links drawn", _drawn(each), played_s, runs, GOAL))
    for servers, jobs in ((32, 12),) if quick else ((32, 12), (128, 50), (512, 200)):
        links = leaf_spine(leaves=servers // 16, spines=4, machines=16).links
        assert links is not None
        for place in PLACES:
            draw = _servers(links, jobs, (2, 4, 8), place)
            rows.append(Case(f"{servers} servers", place, draw, played_s * 24 / jobs, runs))
    return rows


def _drawn(each: int) -> Draw:
    return lambda rng: on_drawn_links(rng, each)


def _servers(links: LinkGraph, jobs: int, workers: tuple[int, ...], place: str) -> Draw:
    return lambda rng: on_servers(rng, links, jobs, workers, place == "near")


def measure(case: Case, seed: int) -> dict[str, Any]:
    """One row."""
    capacity, jobs = case.draw(np.random.default_rng(seed))
    taken_s, events = [], 0
    for _ in range(case.runs + 1):  # the first may compile
        run = PhaseRun(capacity, jobs)
        run.play(WARM_S)
        before = {name: int(run.state[name]) for name in ("phase_events", "fills", "filled")}
        taken_s.append(cpu_seconds(lambda run=run: run.play(WARM_S + case.played_s)))  # type: ignore[misc]
        events = int(run.state.phase_events) - before["phase_events"]
    times = Spread(tuple(taken_s[1:]))
    fills = int(run.state.fills) - before["fills"]
    used = np.concatenate([job.use.links for job in jobs])
    return {
        "name": f"{case.network}, {case.placement}",
        "network": case.network,
        "placement": case.placement,
        "jobs": len(jobs),
        "links": len(np.unique(used)),
        "links_per_job": len(used) / len(jobs),
        "jobs_per_link": len(used) / len(np.unique(used)),
        "filled": (int(run.state.filled) - before["filled"]) / max(1, fills),
        "slowdown": float(np.nanmean(run.iteration_s / run.alone_s)),
        "events": events,
        "runs": case.runs,
        "events_per_s": events / times.best_s,
        "events_per_s_median": events / times.median_s,
        "target": case.target,
        "met": None if case.target is None else events / times.best_s >= case.target,
    }


def measure_least(case: Case, seed: int) -> dict[str, Any]:
    """What an event of a case costs at least."""
    capacity, jobs = case.draw(np.random.default_rng(seed))
    row = _known_rates.measure_known(capacity, jobs, WARM_S, WARM_S + case.played_s)
    return {"network": case.network, "placement": case.placement, **row}


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the table or the JSON document; a missed target is printed as missed, the status is 0."""
    options = arguments_of(__doc__.splitlines()[0], argv)
    todo = cases(options.quick)
    rows = []
    with progress("bench network", len(todo) + 2, options.quiet) as show:
        for case in todo:
            rows.append(measure(case, options.seed))
            show(len(rows))
        least = [measure_least(todo[-1], options.seed)]
        show(len(todo) + 1)
        rotations = _rotation.measure_rotations(options.seed, options.quick)
        show(len(todo) + 2)
    document: dict[str, Any] = {"events": rows, "least": least, "rotations": rotations}
    document["missed"] = [row["name"] for row in (*rows, *rotations) if row["met"] is False]
    (print_document if options.json else print_tables)(document)
    return 0


def print_tables(document: dict[str, Any]) -> None:
    """The document as tables."""
    columns = ("network", "workers", "jobs", "links", "each", "on a link", "filled", "slower")
    print_table(
        "million phase events per CPU second, one core",
        (*columns, "best", "median", "target", ""),
        [
            (
                row["network"],
                row["placement"],
                row["jobs"],
                row["links"],
                f"{row['links_per_job']:.1f}",
                f"{row['jobs_per_link']:.2f}",
                f"{row['filled']:.1f}",
                f"{row['slowdown']:.2f}",
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
        "microseconds of an event whose rates are known before, and of one that finds them",
        _known_rates.COLUMNS,
        [_known_rates.table_row(row) for row in document["least"]],
        words=2,
    )
    print_table(
        "one search for rotations",
        _rotation.COLUMNS,
        [_rotation.table_row(row) for row in document["rotations"]],
        words=3,
    )


if __name__ == "__main__":
    raise SystemExit(main())
