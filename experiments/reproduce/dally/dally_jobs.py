"""The job sets of the papers: the authors' own where they are at hand, generated ones of the same statistics elsewhere.

A job set is read, changed as its paper's simulator changes it, and saved as parquet under a name that holds a hash of
its content, so that every process of a sweep opens the same jobs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....simulator.base.errors import InputError
from ....simulator.workloads import Workload, open_workload
from ...console.terminal import written_whole
from ..rows import Options

PACKAGE = Path(__file__).resolve().parents[3]
BATCH = "batch_500.csv"
WEEK = "poisson_411_week1.csv"
# Where the authors publish both, and what they are called there.
REPOSITORY, COMMIT = "https://github.com/aakash-sharma/cluster-sim", "4cd660e977e5258933d70e3c12297f2a8f0e2a40"
PUBLISHED = Path("configuration", "jobs")
PUBLISHED_AS = {
    BATCH: "sense_500jobs_0start0arrival-withBert.json",
    WEEK: "sense_500jobs_poisson_1proc-week.json",
}
WEEKS = 3  # the paper's authors drew three weeks of arrivals for the same jobs
AS_THE_AUTHORS_READ_IT = "artist-sim:scale=gang,caps=batch"
GENERATED_BATCH = "dally-like:jobs=500,scale=gang"
GENERATED_WEEK = "dally-like:jobs=411,arrivals=poisson,jobs_per_day=58.7,scale=gang"


@dataclass(frozen=True)
class JobSet:
    """A prepared job set.

    Attributes:
        name: short, for rows.
        says: what it is and where it comes from, for a note.
        path: of the parquet file. digest: hash of its content.
    """

    name: str
    says: str
    path: str
    digest: str


def default_cache() -> Path:
    """Where finished runs are kept unless a folder is given."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "clustergym" / "reproduce"


def traces_folder(given: Path | None) -> Path | None:
    """The folder of the real traces: the given one, or ../shared/traces beside the source tree; None: not here.

    Args:
        given: a clone of the repository of paper dally's authors, or a folder that holds one of converted traces,
            `dally`, or `lingjun` with its table of hosts (cassini_rivals.py).

    Raises:
        InputError: the given one is no folder, or holds none of these.
    """
    if given is not None:
        if not given.is_dir():
            raise InputError(f"--traces {given}: there is no such folder")
        if not any((given / name).is_dir() for name in ("dally", PUBLISHED, "lingjun")):
            raise InputError(
                f"--traces {given}: it holds no folder dally, lingjun nor {PUBLISHED}, expected a clone of {REPOSITORY}"
            )
        return given
    beside = PACKAGE.parent / "shared" / "traces"
    return beside if beside.is_dir() else None


def dally_file(options: Options, name: str) -> Path | None:
    """A file of the real traces of paper dally, or None where it is not at hand."""
    if options.traces is None:
        return None
    places = [options.traces / "dally" / name]
    if name in PUBLISHED_AS:
        places.append(options.traces / PUBLISHED / PUBLISHED_AS[name])
    return next((path for path in places if path.is_file()), None)


def dally_batch(options: Options) -> list[JobSet]:
    """The 500 jobs that are all there at time 0, two of them cut, as the authors' simulator reads them."""
    path = dally_file(options, BATCH)
    if path is None:
        says = _said_of_generated(GENERATED_BATCH)
        return [_prepared(options, "batch", says, lambda: open_workload(GENERATED_BATCH, seed=options.seed))]
    says = f"jobs: the authors' own batch set, {path.name}, read with {AS_THE_AUTHORS_READ_IT}"
    return [_prepared(options, "batch", says, lambda: open_workload(path, format=AS_THE_AUTHORS_READ_IT))]


def dally_weeks(options: Options) -> list[JobSet]:
    """Weeks of Poisson arrivals of the same 411 jobs, none of them cut: the authors' own, and two drawn at its rate."""
    path = dally_file(options, WEEK)
    if path is None:
        says = _said_of_generated(GENERATED_WEEK)
        return [
            _prepared(options, f"week {1 + week}", says, _generated_week(options.seed * WEEKS + week))
            for week in range(1 if options.quick else WEEKS)
        ]
    first = open_workload(path, format=AS_THE_AUTHORS_READ_IT)
    says = (
        f"jobs: the authors' own Poisson set, {path.name}, read with {AS_THE_AUTHORS_READ_IT} (week 1); "
        "weeks 2 and 3: the same jobs, arrivals drawn at its mean rate"
    )
    weeks = [_prepared(options, "week 1", says, lambda: first)]
    for week in range(1, 1 if options.quick else WEEKS):
        weeks.append(_prepared(options, f"week {1 + week}", says, _redrawn(first, options.seed * WEEKS + week)))
    return weeks


def _said_of_generated(word: str) -> str:
    return (
        f"jobs: GENERATED with the statistics of the authors' set ({word}); --traces names a clone of {REPOSITORY}, "
        "which has theirs"
    )


def _generated_week(seed: int) -> Callable[[], Workload]:
    return lambda: open_workload(GENERATED_WEEK, seed=seed)


def _redrawn(workload: Workload, seed: int) -> Callable[[], Workload]:
    """The same jobs in the same order with other Poisson arrivals at the same mean rate, the first at time 0."""

    def draw() -> Workload:
        mean_gap_s = float(workload.arrival_s[-1] - workload.arrival_s[0]) / (len(workload) - 1)
        gaps_s = np.random.default_rng(seed).exponential(mean_gap_s, len(workload) - 1)
        return Workload.from_arrays(
            f"{workload.name}, redrawn {seed}",
            np.concatenate([[0.0], np.cumsum(gaps_s)]),
            workload.gpus,
            workload.duration_s,
            job_id=workload.job_id,
            iterations=workload.iterations,
            iteration_s=workload.iteration_s,
            model=workload.model,
            batch_size=workload.batch_size,
        )

    return draw


def _prepared(options: Options, name: str, says: str, make: Callable[[], Workload]) -> JobSet:
    workload = make()
    digest = _digest(workload)
    folder = options.cache / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace(' ', '-')}-{digest}.parquet"
    if not path.exists():
        with written_whole(path) as draft:
            named = draft.with_suffix(".parquet")
            workload.save(named)
            os.replace(named, draft)
    return JobSet(name, says, str(path), digest)


def _digest(workload: Workload) -> str:
    digest = hashlib.sha256()
    for column in ("arrival_s", "gpus", "duration_s", "iterations", "iteration_s"):
        digest.update(getattr(workload, column).tobytes())
    for column in ("job_id", "model"):
        digest.update("\0".join(getattr(workload, column)).encode())
    return digest.hexdigest()[:16]
