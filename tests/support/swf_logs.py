"""Made logs in the Standard Workload Format; Python alone, so that other simulators' Pythons can make them too."""

from __future__ import annotations

import random

HEADER = """; Version: 2.2
; Computer: made up, seed {seed}
; MaxJobs: {jobs}
; MaxNodes: 64
; MaxProcs: 256
; UnixStartTime: 1700000000
; TimeZoneString: Europe/Berlin
; StartTime: Tue Nov 14 23:13:20 CET 2023
; Queue: 1 batch; 2 debug
"""


def archive_log(seed: int, jobs: int = 1000) -> str:
    """A log of the archive's form: every status, partial executions after their job, -1 wherever it may be."""
    draw = random.Random(seed)
    lines, submit = [], 0

    def known(value: int, unknown: float = 0.1) -> int:
        return -1 if draw.random() < unknown else value

    for job in range(1, jobs + 1):
        submit += draw.randrange(600)
        run = 0 if draw.random() < 0.02 else 1 + int(draw.lognormvariate(7, 1.5))
        allocated = 2 ** draw.randrange(9) - draw.randrange(2) or 1
        requested = allocated + draw.choice((0, 0, 0, 1, 5))
        status = draw.choices((1, 0, 5, -1), (70, 15, 10, 5))[0]
        after = [known(draw.randrange(1, n)) for n in (30, 9, 50, 3, 4)]
        before = [known(job - 1, 0.9) if job > 1 else -1, known(draw.randrange(900), 0.9)]
        fields = [job, submit, known(draw.randrange(9000)), known(run, 0.05), known(allocated), known(run // 2)]
        fields += [known(draw.randrange(10**6)), known(requested, 0.2), known(run * draw.randrange(1, 5) or 60)]
        lines.append([*fields, known(4096, 0.5), status, *after, *before])
        if status in (0, 1) and draw.random() < 0.05:  # was swapped out: its bursts follow, without a submit time
            for code in (2, 2, 3 if status else 4):
                burst = [job, -1, draw.randrange(100), max(run // 3, 1), allocated, -1, -1, requested, -1, -1, code]
                lines.append([*burst, *after, -1, -1])
    between = draw.choice((" ", "  ", "\t"))
    rows = [between.join(f"{field:>{draw.choice((1, 6))}}" for field in line) for line in lines]
    rows.insert(len(rows) // 2, "; Note: the clock was set here")
    return HEADER.format(seed=seed, jobs=jobs) + "\n".join(rows) + "\n"


def full_log(seed: int, jobs: int = 400, processors: int = 256, load: float = 0.9) -> str:
    """A log to play, of which all is known: run times of a minute to a day, estimates of 1 to 4 times as much."""
    draw = random.Random(seed)
    drawn = [(draw.choice((1, 2, 4, 8, 16, 32, 33, 64, 100, 128)), 60 + int(draw.lognormvariate(8, 1.3)) % 86340)
             for _ in range(jobs)]  # fmt: skip
    gap_s = sum(gpus * run for gpus, run in drawn) / (jobs * processors * load)
    lines, at = [], 0.0
    for job, (gpus, run) in enumerate(drawn, start=1):
        at += draw.expovariate(1 / gap_s)
        estimate = int(run * draw.uniform(1, 4))
        lines.append(f"{job} {int(at)} -1 {run} {gpus} -1 -1 {gpus} {estimate} -1 1 {job % 9 + 1} 1 -1 1 -1 -1 -1")
    return HEADER.format(seed=seed, jobs=jobs) + "\n".join(lines) + "\n"
