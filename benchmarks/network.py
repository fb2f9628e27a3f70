"""Phase events per CPU second of jobs that share links, and the time of a search for rotations.

Models, batches and workers are drawn from those of paper cassini, and every job iterates for ever. An event is the
beginning or the end of an Up phase. What it costs is decided by `filled`: how many sending jobs get new rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from _measure import Row, bench, cpu_seconds

from clustergym.experiments.reproduce.cassini.cassini_instances import PERIODS, drawn_jobs, on_one_link
from clustergym.policies.cassini.compatibility import exact, solve
from clustergym.simulator.cluster.fabrics import cassini_testbed, leaf_spine
from clustergym.simulator.cluster.links import GBPS, LinkGraph
from clustergym.simulator.cluster.routes import LinkUse, link_use
from clustergym.simulator.contention.circle import Grid
from clustergym.simulator.contention.phase_run import Contender, PhaseRun
from clustergym.simulator.profiles.cassini_models import cassini_models, phases_of
from clustergym.simulator.profiles.phases import Phases

TESTBED_JOBS, DRAWN_LINKS = 24, 48
WARM_S = 2.0
SAME, CLOSE = 1e-9, 1e-3  # of the score
Jobs = tuple[np.ndarray, list[Contender]]


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    return bench(__doc__.splitlines()[0], argv, events, rotations)


def events(options: Any) -> Iterator[Row]:
    """Phase events per CPU second."""
    played_s, runs = (5.0, 2) if options.quick else (200.0, 7)
    testbed = _graph(cassini_testbed().links)
    for near in (True, False):
        drawn = on_servers(_random(options), testbed, TESTBED_JOBS, (2,), near)
        yield _measured("testbed", _where(near), drawn, played_s, runs)
    for each in (2, 4) if options.quick else (1, 2, 4, 8):
        drawn = on_drawn_links(_random(options), each)
        yield _measured("48 links", f"{each} links drawn", drawn, played_s, runs)
    for servers, jobs in ((32, 12),) if options.quick else ((32, 12), (128, 50), (512, 200)):
        links = _graph(leaf_spine(leaves=servers // 16, spines=4, machines=16).links)
        for near in (True, False):
            drawn = on_servers(_random(options), links, jobs, (2, 4, 8), near)
            yield _measured(f"{servers} servers", _where(near), drawn, played_s * 24 / jobs, runs)


def rotations(options: Any) -> Iterator[Row]:
    """One search for rotations on a grid of 5 degrees, and how often it finds the best: exactly, and within 0.001."""
    for jobs in (2, 3, 4, 5, 6):
        for periods in PERIODS:
            yield _searched(options, jobs, periods, Grid(), compared=jobs <= 4)
    yield _searched(options, 5, "free", Grid(of_circle=True), compared=True)


def any_phases(rng: np.random.Generator, workers: int) -> Phases:
    """A model of the paper with a batch of its range."""
    model = list(cassini_models().values())[rng.integers(len(cassini_models()))]
    return phases_of(model.name, workers, int(rng.integers(model.batch[0], model.batch[1] + 1)))


def on_drawn_links(rng: np.random.Generator, each: int) -> Jobs:
    """24 jobs of 4 workers on 48 links of 50 Gbps, each on `each` links that are drawn; one flow on each."""
    jobs = []
    for _ in range(TESTBED_JOBS):
        links = np.sort(rng.choice(DRAWN_LINKS, each, replace=False))
        jobs.append(Contender(any_phases(rng, 4), LinkUse(links, np.ones(each, np.int64))))
    return np.full(DRAWN_LINKS, 50 * GBPS), jobs


def on_servers(rng: np.random.Generator, links: LinkGraph, jobs: int, workers: tuple[int, ...], near: bool) -> Jobs:
    """Rings on as many servers as workers: side by side with the jobs spread evenly (`near`), or drawn."""
    drawn = []
    for job in range(jobs):
        count = int(rng.choice(workers))
        first = job * links.num_machines // jobs
        machines = [(first + i) % links.num_machines for i in range(count)]
        if not near:
            machines = np.sort(rng.choice(links.num_machines, count, replace=False)).tolist()
        drawn.append(Contender(any_phases(rng, count), link_use(links, machines)))
    return links.capacity, drawn


def _graph(links: LinkGraph | None) -> LinkGraph:
    assert links is not None
    return links


def _random(options: Any) -> np.random.Generator:
    return np.random.default_rng(options.seed)


def _where(near: bool) -> str:
    return "near" if near else "scattered"


def _measured(network: str, workers: str, drawn: Jobs, played_s: float, runs: int) -> Row:
    capacity, jobs = drawn
    taken_s = []
    for _ in range(runs + 1):  # the first may compile
        run = PhaseRun(capacity, jobs)
        run.play(WARM_S)
        before = {name: int(run.state[name]) for name in ("phase_events", "fills", "filled")}
        taken_s.append(cpu_seconds(lambda run=run: run.play(WARM_S + played_s)))  # type: ignore[misc]
    played, fills, filled = (int(run.state[name]) - count for name, count in before.items())
    used = np.concatenate([job.use.links for job in jobs])
    links = len(np.unique(used))
    slowdown = float(np.nanmean(run.iteration_s / run.alone_s))
    row: Row = {"network": network, "workers": workers, "jobs": len(jobs), "links": links}
    row |= {"links_per_job": len(used) / len(jobs), "jobs_per_link": len(used) / links}
    row |= {"filled": filled / max(1, fills), "slowdown": slowdown, "events_per_s": played / min(taken_s[1:])}
    return row | {"events_per_s_median": played / median(taken_s[1:])}


def _searched(options: Any, jobs: int, periods: str, grid: Grid, compared: bool) -> Row:
    solve(on_one_link(drawn_jobs(_random(options), jobs, periods), grid))  # compiles
    random, taken_s, gaps, angles = _random(options), [], [], []
    for _ in range(3 if options.quick else 100):
        overlay = on_one_link(drawn_jobs(random, jobs, periods), grid)
        found: list[Any] = []
        taken_s.append(cpu_seconds(lambda overlay=overlay, found=found: found.append(solve(overlay))))  # type: ignore[misc]
        angles.append(overlay.demand.shape[1])
        if compared:
            gaps.append(exact(overlay).scores[0] - found[0].scores[0])
    circle = "unified circle" if grid.of_circle else "own circle"
    optimal, close = (float(np.mean(np.array(gaps) < gap)) if gaps else None for gap in (SAME, CLOSE))
    row: Row = {"jobs": jobs, "periods": periods, "grid": circle, "angles": float(np.mean(angles))}
    row |= {"ms_median": 1e3 * float(np.median(taken_s)), "ms_95_percent": 1e3 * float(np.quantile(taken_s, 0.95))}
    return row | {"optimal": optimal, "close": close}
