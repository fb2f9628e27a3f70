"""Paper dally against its authors' own simulator, corrected: the same grants in the same order, job by job.

The reference logs (traces/dally/peer) hold every grant of three policies on the batch set at 2 racks, machines in
natural order. Where ours departs, the longest identical prefix is printed and the first difference is told; who has the
authors' jobs alone holds ours against hashes of the logs (dally_peer_marks.py). Two jobs are cut in that set and no
other (readers/artist_sim_trace.py): how long they run in the Poisson set is printed too.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ....simulator.base.errors import InputError
from ....simulator.workloads import open_workload
from ...console.terminal import progress
from ...playing.evaluation import play
from ...playing.runs import Run
from ...settings.evaluation_setting import workload_of
from ..findings import Findings, Options
from ..rows import Row, table
from .dally_grid import AS_THE_PAPER
from .dally_jobs import BATCH, COMMIT, REPOSITORY, WEEK, dally_batch, dally_file, dally_weeks
from .dally_peer_marks import EVERY, MARKS, Marks

TIGHT, LOOSE = 0.001, 0.02  # of the averages: where all grants are the same, and where they are not
SAME_TIME_S = 1e-6
SLOT_GPUS = 4
AS_THE_PEER = AS_THE_PAPER.setting.copy_with(topology="dally:racks=2")
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
    """One gang that was granted: when, to whom, which GPUs (`rack.machine.gpu`, in ascending order)."""

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


def peer(options: Options) -> Findings:
    """Grants, makespan, average JCT and ends of the jobs under the three policies of the logs."""
    batch = dally_file(options, BATCH)
    if batch is None:
        raise InputError(
            f"dally-peer plays the authors' own jobs, which are not ours to ship: git clone {REPOSITORY} DIR, "
            "git -C DIR checkout " + COMMIT + ", then --traces DIR"
        )
    jobs = dally_batch(options)
    rows, notes = [], [jobs.says, "semantics=artist-sim, 2 racks, machines in natural order"]
    with progress("dally-peer", len(LOGS), options.quiet) as show:
        for number, (word, name) in enumerate(LOGS.items()):
            setting = AS_THE_PEER.copy_with(workload=jobs.path)
            log = batch.parent / "peer" / f"batch_r2_{name}_g1000_fixtrue.csv"
            run = play(setting, word, 0, record=True)
            policy = word.partition(":")[0]
            if log.is_file():
                theirs, ends_s = reference(log)
                own_rows, note = _compared(
                    policy, run, theirs, [ends_s[job_id] for job_id in workload_of(setting, 0).job_id]
                )
            else:
                own_rows, note = _held_against(policy, run, MARKS[name])
            rows += own_rows
            notes.append(note)
            show(number + 1)
    if dally_file(options, WEEK) is None:
        return Findings(rows, [*notes, f"{WEEK} is not here: its rows are left out"])
    week = dally_weeks(replace(options, quick=True))[0]
    return Findings([*rows, *_uncut_rows(week.path)], [*notes, week.says])


def _uncut_rows(path: str) -> list[Row]:
    """How long the jobs run that the batch set cuts: all chunks of their iterations, the last one whole."""
    jobs = open_workload(path)
    chunk = AS_THE_PEER.config.semantics.chunk_on(jobs) * jobs.gpus
    run_s = np.ceil(jobs.iterations / chunk) * chunk * jobs.iteration_s
    rows = []
    for job_id, kept_s in UNCUT_S.items():
        ours = float(run_s[jobs.job_id.tolist().index(job_id)])
        within = (kept_s - 0.5, kept_s + 0.5)
        rows.append(Row(f"Poisson week 1: run time of job {job_id}", kept_s, ours, within, unit="s"))
    return rows


def _compared(name: str, run: Run, theirs: list[Grant], ends_s: list[float]) -> tuple[list[Row], str]:
    ours, end_s = granted(run), np.array(ends_s)  # JCTs too: all arrive at 0
    prefix = identical_prefix(ours, theirs)
    same = prefix == len(theirs) == len(ours)
    times = float(end_s.max()), float(end_s.mean()), float(np.quantile(end_s, 0.99))
    rows = _rows(name, run, len(theirs), prefix, times, same)
    apart = 100.0 * float(np.max(np.abs(run.jct_s / end_s - 1.0)))
    most = 100.0 * (TIGHT if same else LOOSE)
    rows.append(Row(f"{name}: end of a job, largest difference", 0.0, apart, (0.0, most), unit="%"))
    if same:
        return rows, f"{name}: all {len(theirs):,} grants are the same"
    return rows, f"{name}: {prefix:,} of {len(theirs):,} grants are the same; {_difference(ours, theirs, prefix)}"


def _held_against(name: str, run: Run, marks: Marks) -> tuple[list[Row], str]:
    """As `_compared`, where there is not the log but what it holds in short."""
    ours = [(grant.time_s, grant.job_id, grant.gpus) for grant in granted(run)]
    prefix = marks.identical(ours)
    same = prefix == marks.count == len(ours)
    rows = _rows(name, run, marks.count, prefix, (marks.makespan, marks.jct_mean, marks.jct_p99), same)
    if same:
        return rows, f"{name}: all {marks.count:,} grants are the same, by the hash of the log"
    return rows, f"{name}: {prefix:,} of {marks.count:,} grants are the same, in steps of {EVERY}, by hashes of the log"


def _rows(name: str, run: Run, grants: int, prefix: int, times: tuple[float, ...], same: bool) -> list[Row]:
    """How many grants are the same, of theirs, and their makespan, average and P99 JCT beside ours."""
    count, names = float(grants), {"makespan": "makespan", "average JCT": "jct_mean", "P99 JCT": "jct_p99"}
    return [
        Row(f"{name}: identical grants from the first on", count, float(prefix), (count, count)),
        *(
            table(f"{name}: {what}", theirs, run.metrics[metric], tolerance=TIGHT if same else LOOSE)
            for (what, metric), theirs in zip(names.items(), times, strict=True)
        ),
    ]


def _difference(ours: list[Grant], theirs: list[Grant], place: int) -> str:
    words = [
        f"{whose} grants job {grants[place].job_id} at {grants[place].time_s:.6f} s: {' '.join(grants[place].gpus)}"
        if place < len(grants)
        else f"{whose} grants nothing more"
        for whose, grants in (("the peer", theirs), ("ours", ours))
    ]
    return "then " + ", ".join(words)
