"""Random jobs on random links, and what becomes of them; run as a script it prints that, however numba is set."""

from __future__ import annotations

import json
import random
import sys

import numpy as np

from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.cluster.routes import LinkUse
from clustergym.simulator.contention.phase_run import Contender, PhaseRun
from clustergym.simulator.numerics.rounding import GRAIN
from clustergym.simulator.profiles.phases import in_order

PLAYED_S = 20.0
FLOWS = [1, 1, 1, 2, 3, 0.25, round(8 / 7 / GRAIN) * GRAIN]  # on a link; the last: all-to-all of 8 over two leaves


def use(flows: dict[int, float]) -> LinkUse:
    links = sorted(flows)
    return LinkUse(np.array(links, np.int64), np.array([flows[link] for link in links], np.float64))


def random_jobs(rng: random.Random, links: int, most: int = 8) -> list[Contender]:
    """1 to `most` jobs on up to 4 of the links each; some with shifts, ends or late beginnings.

    In half of the cases each has one flow on its links, so that links with the same jobs are equal.
    """
    jobs = []
    streams = rng.choice([FLOWS, [1]])
    for _ in range(rng.randint(1, most)):
        parts = [
            (rng.choice([0.0, 0.01, 0.05, 0.1, rng.random() / 5]), 0.0)
            if i % 2 == 0
            else (rng.choice([0.02, 0.1, rng.random() / 4]) + 1e-3, rng.choice([45, 50, 25, 50 * rng.random()]) * GBPS)
            for i in range(rng.randint(2, 8))
        ]
        flows = {link: rng.choice(streams) for link in rng.sample(range(links), rng.randint(1, min(4, links)))}
        jobs.append(
            Contender(
                in_order(parts, sum(seconds for seconds, _ in parts) + rng.choice([0.0, 0.02])),
                use(flows),
                shift_s=rng.choice([None, None, 0.0, rng.random()]),
                period_s=rng.choice([None, 1.0, 0.5]),
                begin_s=rng.choice([0.0, 0.0, rng.random()]),
                rounds=rng.choice([float("inf"), float("inf"), rng.randint(1, 30), 2.5]),
            )
        )
    return jobs


def random_run(seed: int, log: bool = False) -> PhaseRun:
    """Not played yet; in half of the cases all links have the same capacity."""
    rng = random.Random(seed)
    links = rng.randint(1, 6)
    gbps = rng.choice([[50], [50, 50, 45, 25, 10 + 90 * rng.random()]])
    capacity = [rng.choice(gbps) * GBPS for _ in range(links)]
    return PhaseRun(
        capacity,
        random_jobs(rng, links),
        pacing=rng.random() < 0.7,
        adjust=rng.choice([float("inf"), 0.05]),
        jitter=rng.choice([0.0, 0.01]),
        carried=rng.choice([1.0, 1.0, 0.88, 0.5]),
        seed=seed,
        log=log,
    )


def outcome(run: PhaseRun) -> dict[str, list[float]]:
    """All that was measured, exactly."""
    return {
        "iterations": run.iterations.tolist(),
        "iteration_s": [float(x).hex() for x in run.iteration_s],
        "communication_s": [float(x).hex() for x in run.communication_s],
        "link_bytes": [x.hex() for x in run.link_bytes.tolist()],
        "link_congestion": [x.hex() for x in run.link_congestion.tolist()],
        "job_congestion": [x.hex() for x in run.job_congestion.tolist()],
        "totals": [run.congestion_bytes.hex(), run.adjustments, int(run.state.phase_events)],
    }


def played(seed: int) -> dict[str, list[float]]:
    run = random_run(seed)
    run.play(PLAYED_S)
    return outcome(run)


if __name__ == "__main__":
    print(json.dumps([played(seed) for seed in range(int(sys.argv[1]))]))
