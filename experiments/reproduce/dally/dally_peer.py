"""Paper dally against its authors' own simulator, corrected: the same grants in the same order, job by job.

The reference logs (traces/dally/peer) hold every grant of three policies on the batch set at 2 racks, machines in
natural order. Where ours departs, the longest identical prefix and the first difference are printed. The logs,
of the authors' simulator as corrected (docs/results/reproductions.md says how), are not ours to publish: beside the
authors' jobs alone ours is held against hashes of them, at every 500th grant and at the last, over all grants up to it.
Two jobs are cut in that set and no other (readers/artist_sim_trace.py): how long they run in the Poisson set is printed
too.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ....simulator.base.errors import InputError
from ....simulator.workloads import open_workload
from ...console.terminal import progress
from ...playing.evaluation import play as run_of
from ...playing.runs import Run
from ...settings.evaluation_setting import Setting, workload_of
from ..engine import Play
from ..rows import Row, table
from .dally_jobs import BATCH, COMMIT, REPOSITORY, WEEK, dally_batch, dally_file, dally_weeks

TIGHT, LOOSE = 0.001, 0.02  # of the averages: where all grants are the same, and where they are not
SAME_TIME_S = 1e-6
SLOT_GPUS = 4
EVERY, DIGITS = 500, 12  # of the hashes
AS_THE_PEER = Setting.of("Delay", "dally:racks=2", "", "allreduce:calibration=artist", semantics="artist-sim")
# our policy: the peer's word for it, in the names of its logs
LOGS = {
    "tiresias": "tiresias",
    "dally:history=24,floors=6/12,deviation=population": "dauto24",
    "dally-nowait": "dnowait",
}
# seconds of whole chunks, without communication, of the jobs that the batch set cuts, in the Poisson set
UNCUT_S = {"399455": 70_708.0, "399469": 322_464.0}


@dataclass(frozen=True)
class Grant:
    """One grant to a gang: the instant, the job, the GPUs (`rack.machine.gpu`, in ascending order)."""

    time_s: float
    job_id: str
    gpus: tuple[str, ...]


def reference(path: Path) -> tuple[list[Grant], dict[str, float]]:
    """The grants of a log of the peer, and when each job ended (seconds).

    Args:
        path: of the csv with a row a job; the grants lie beside it, `.grants.gz`.

    Raises:
        InputError: the grants are damaged, as the checksum of gzip tells.
    """
    packed = f"{path}.grants.gz"
    try:
        with gzip.open(packed, "rt", encoding="utf-8", newline="") as file:
            lines = file.read().splitlines(keepends=True)
    except (gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{packed}: the file is damaged ({error})") from None
    grants = [
        Grant(float(row["time_s"]), row["job_id"], _ascending(map(_label, row["gpus_rack.machine.slot.gpu"].split())))
        for row in csv.DictReader(lines)
    ]
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        ends_s = {row["job_id"]: float(row["end"]) for row in rows}
    return grants, ends_s


def _label(place: str) -> str:
    rack, machine, slot, gpu = place.split(".")
    return f"{rack}.{machine}.{SLOT_GPUS * int(slot) + int(gpu)}"


def _ascending(labels: object) -> tuple[str, ...]:
    return tuple(sorted(labels, key=lambda label: tuple(map(int, label.split(".")))))  # type: ignore[call-overload]


def granted(run: Run) -> list[Grant]:
    """The gangs that a recorded run of ours granted, in order."""
    return [
        Grant(float(time_s), job_id, _ascending(gpus.split()))
        for time_s, job_id, decision, gpus, *_ in run.decisions
        if decision == "start"
    ]


def identical_prefix(ours: list[Grant], theirs: list[Grant]) -> int:
    """How many grants from the first on are the same: job, GPUs, and the time to a microsecond."""
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        same_time = abs(mine.time_s - other.time_s) <= SAME_TIME_S
        if mine.job_id != other.job_id or mine.gpus != other.gpus or not same_time:
            return place
    return min(len(ours), len(theirs))


@dataclass(frozen=True)
class Marks:
    """A log in short.

    Attributes:
        count: grants.
        makespan, jct_mean, jct_p99: seconds.
        hashes: of the first 500 grants, 1,000, ..., and of all; a space between two.
    """

    count: int
    makespan: float
    jct_mean: float
    jct_p99: float
    hashes: str

    def identical(self, grants: Sequence[tuple[float, str, tuple[str, ...]]]) -> int:
        """How many grants from the first on are those of the log, down to a multiple of 500 where not all are.

        Args:
            grants: seconds, compared to a millisecond; job; GPUs in ascending order.
        """
        at = [*range(EVERY, self.count, EVERY), self.count]
        digest, same = hashlib.sha256(), 0
        marks = dict(zip(at, self.hashes.split(), strict=True))
        for number, (time_s, job_id, gpus) in enumerate(grants, start=1):
            digest.update(f"{time_s:.3f} {job_id} {' '.join(gpus)}\n".encode())
            if number in marks:
                if digest.hexdigest()[:DIGITS] != marks[number]:
                    break
                same = number
        return same


def peer(play: Play) -> Iterator[Row]:
    """Grants, makespan, average JCT and ends of the jobs under the three policies of the logs."""
    options = play.options
    batch = dally_file(options, BATCH)
    if batch is None:
        raise InputError(
            f"dally-peer plays the authors' own jobs, which are not ours to ship: git clone {REPOSITORY} DIR, "
            "git -C DIR checkout " + COMMIT + ", then --traces DIR"
        )
    (jobs,) = dally_batch(options)
    play.notes += [jobs.says, "semantics=artist-sim, 2 racks, machines in natural order"]
    with progress("dally-peer", len(LOGS), options.quiet) as show:
        for number, (word, name) in enumerate(LOGS.items()):
            setting = AS_THE_PEER.copy_with(workload=jobs.path)
            log = batch.parent / "peer" / f"batch_r2_{name}_g1000_fixtrue.csv"
            run, policy = run_of(setting, word, 0, record=True), word.partition(":")[0]
            if log.is_file():
                yield from _compared(play, policy, run, log, workload_of(setting, 0).job_id.tolist())
            else:
                yield from _held_against(play, policy, run, MARKS[name])
            show(number + 1)
    if dally_file(options, WEEK) is None:
        play.notes.append(f"{WEEK} is not here: its rows are left out")
        return
    week = dally_weeks(replace(options, quick=True))[0]
    play.notes.append(week.says)
    yield from _uncut_rows(week.path)


def _uncut_rows(path: str) -> Iterator[Row]:
    """How long the jobs run that the batch set cuts: all chunks of their iterations, the last one whole."""
    jobs = open_workload(path)
    chunk = AS_THE_PEER.config.semantics.chunk_on(jobs) * jobs.gpus
    run_s = np.ceil(jobs.iterations / chunk) * chunk * jobs.iteration_s
    for job_id, kept_s in UNCUT_S.items():
        ours = float(run_s[jobs.job_id.tolist().index(job_id)])
        within = (kept_s - 0.5, kept_s + 0.5)
        yield Row(f"Poisson week 1: run time of job {job_id}", kept_s, ours, within, unit="s")


def _compared(play: Play, name: str, run: Run, log: Path, job_ids: Sequence[str]) -> Iterator[Row]:
    theirs, ends_s = reference(log)
    ours, end_s = granted(run), np.array([ends_s[job_id] for job_id in job_ids])  # JCTs too: all arrive at 0
    prefix = identical_prefix(ours, theirs)
    same = prefix == len(theirs) == len(ours)
    times = float(end_s.max()), float(end_s.mean()), float(np.quantile(end_s, 0.99))
    yield from _rows(name, run, len(theirs), prefix, times, same)
    apart = 100.0 * float(np.max(np.abs(run.jct_s / end_s - 1.0)))
    yield Row(
        f"{name}: end of a job, largest difference", 0.0, apart, (0.0, 100.0 * (TIGHT if same else LOOSE)), unit="%"
    )
    count = f"all {len(theirs):,}" if same else f"{prefix:,} of {len(theirs):,}"
    play.notes.append(
        f"{name}: {count} grants are the same" + ("" if same else f"; {_difference(ours, theirs, prefix)}")
    )


def _held_against(play: Play, name: str, run: Run, marks: Marks) -> Iterator[Row]:
    """As `_compared`, where there is not the log but what it holds in short."""
    ours = [(grant.time_s, grant.job_id, grant.gpus) for grant in granted(run)]
    prefix = marks.identical(ours)
    same = prefix == marks.count == len(ours)
    yield from _rows(name, run, marks.count, prefix, (marks.makespan, marks.jct_mean, marks.jct_p99), same)
    count = f"all {marks.count:,}" if same else f"{prefix:,} of {marks.count:,}"
    play.notes.append(f"{name}: {count} grants are the same, in steps of {EVERY}, by hashes of the log")


def _rows(name: str, run: Run, grants: int, prefix: int, times: tuple[float, ...], same: bool) -> Iterator[Row]:
    """How many grants are the same, of theirs, and their makespan, average and P99 JCT beside ours."""
    count, names = float(grants), {"makespan": "makespan", "average JCT": "jct_mean", "P99 JCT": "jct_p99"}
    yield Row(f"{name}: identical grants from the first on", count, float(prefix), (count, count))
    for (what, metric), theirs in zip(names.items(), times, strict=True):
        yield table(f"{name}: {what}", theirs, run.metrics[metric], tolerance=TIGHT if same else LOOSE)


def _difference(ours: list[Grant], theirs: list[Grant], place: int) -> str:
    words = [
        f"{whose} grants job {grants[place].job_id} at {grants[place].time_s:.6f} s: {' '.join(grants[place].gpus)}"
        if place < len(grants)
        else f"{whose} grants nothing more"
        for whose, grants in (("the peer", theirs), ("ours", ours))
    ]
    return "then " + ", ".join(words)


MARKS = {
    "tiresias": Marks(
        10545,
        2217507.608468451,
        312166.3937856232,
        1909365.3895744516,
        "6fceeeb81875 aadc08e19780 60627f4b4a01 d8fbaa48a01a 53240b1f1aa5 013237b4f8e4 7a77ed2a638d 30b218230b65 "
        "3c273d611c47 0263a47bfdee a074a2aa8928 c56ea11fa4a3 867b58e57156 19a48433c9fe c67bc14280a0 8590bd474dff "
        "a3ba5c7edffd a5a9951cfba5 bc6db380ecbe ce5a1803cf5a 4b6522fc0492 fa9006f80a8a ",
    ),
    "dauto24": Marks(
        10139,
        2395558.7668664847,
        374822.74938043166,
        2196083.798059675,
        "d624c1ea898c 954fd2efa746 87a58d8a43f5 aecb3e915ffe 79382f4f11ee 6dffb2913780 42d2a2983bbf f421baf5a8e0 "
        "e39cd6351eb7 54c761cce6d3 4471716a866a 26bd6935f9a1 961371e3daf1 2a7bf22a1752 50aa0cf1b3ff 0322fa165806 "
        "d4c6ab0e9fc8 9e6700a4fbf7 8c161c8e453b 8fd157ac6a37 b959f2a7898b ",
    ),
    "dnowait": Marks(
        10702,
        3000586.312014062,
        476989.81162449584,
        2623809.5833631447,
        "a65c225dc8ec 4925eadb952d 4f725f49a36a 0e71cb0a10bd 700971fec4b0 a4763e2bd0d7 c6b583be6133 878bc4949c0d "
        "7657bfb180c3 f4f1591a58bf f9b23887476b 5a637ea01d02 47c5afbcb431 b163a38c3263 a4efe1d0e73a b0f6d8dfceec "
        "4614d50611e4 0603da2693f9 60508ccce335 4e1eae507b37 036ffa1e0344 630661a69892 ",
    ),
}
