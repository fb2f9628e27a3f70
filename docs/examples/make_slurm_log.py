"""Writes slurm-log.txt: 400 jobs as `sacct -X -P` prints them, made up, and scheduled on 8 nodes of 8 GPUs.

Every 30 seconds, in order of submission, each job starts that finds GPUs: on one node, or on whole nodes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

JOBS, NODES, GPUS, EVERY_S = 400, 8, 8, 30
BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
USERS = {"alice": "vision", "bob": "vision", "chen": "speech", "dana": "llm", "emil": "llm"}
COLUMNS = "JobID|User|Account|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES|NNodes|NodeList"


def nodes_for(free: list[int], gpus: int) -> list[int]:
    """The node with the fewest free GPUs that suffice, or whole nodes; empty: none."""
    if gpus > GPUS:
        whole = [node for node in range(NODES) if free[node] == GPUS]
        return whole[: gpus // GPUS] if len(whole) * GPUS >= gpus else []
    return sorted((node for node in range(NODES) if free[node] >= gpus), key=lambda node: free[node])[:1]


def starts(submit_s: np.ndarray, gpus: np.ndarray, run_s: np.ndarray) -> tuple[list[int], list[list[int]]]:
    """When each job starts, and on which nodes."""
    free, start_s, places = [GPUS] * NODES, [-1] * JOBS, [[] for _ in range(JOBS)]
    waiting, running, now = list(range(JOBS)), [], 0
    while waiting:
        now += EVERY_S
        for job in [job for job in running if start_s[job] + run_s[job] <= now]:
            running.remove(job)
            for node in places[job]:
                free[node] += min(GPUS, int(gpus[job]))
        for job in [job for job in waiting if submit_s[job] <= now]:
            places[job] = nodes_for(free, int(gpus[job]))
            if places[job]:
                start_s[job] = now
                waiting.remove(job)
                running.append(job)
                for node in places[job]:
                    free[node] -= min(GPUS, int(gpus[job]))
    return start_s, places


def clock(seconds: int) -> str:
    """As Slurm writes a duration: D-HH:MM:SS."""
    days, rest = divmod(int(seconds), 86400)
    hours = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{hours}" if days else hours


def at(seconds: int) -> str:
    """As Slurm writes a time."""
    return (BEGIN + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%S")


def rows() -> list[str]:
    """The lines of the file."""
    rng = np.random.default_rng(44)
    submit_s = np.sort(rng.integers(0, 5 * 86400, JOBS))
    gpus = rng.choice([1, 2, 4, 8, 16, 32], JOBS, p=[0.45, 0.2, 0.15, 0.12, 0.06, 0.02])
    run_s = np.clip(rng.lognormal(8.9, 1.3, JOBS), 60, 2 * 86400).astype(int)
    limit_s = np.minimum(np.ceil(run_s * rng.choice([1.2, 2, 4, 8], JOBS) / 3600) * 3600, 2 * 86400).astype(int)
    user = rng.choice(list(USERS), JOBS, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    state = rng.choice(["COMPLETED", "FAILED", "CANCELLED by 1000"], JOBS, p=[0.8, 0.12, 0.08])
    start_s, places = starts(submit_s, gpus, run_s)
    lines = [COLUMNS]
    for job in range(JOBS):
        names = [f"gpu{node + 1:02d}" for node in places[job]]
        listed = names[0] if len(names) == 1 else "gpu[" + ",".join(name[3:] for name in names) + "]"
        begin, tres = start_s[job], f"cpu={8 * gpus[job]},gres/gpu={gpus[job]}"
        times = [at(submit_s[job]), at(begin), at(begin + run_s[job]), clock(run_s[job]), clock(limit_s[job])]
        about = [str(1001 + job), user[job], USERS[user[job]], *times, state[job], tres, str(len(names)), listed]
        lines.append("|".join(about))
        if job % 40 == 20:  # what plays no part: jobs without GPUs, and such as wait yet
            times = f"{at(submit_s[job])}|{at(begin)}|{at(begin + 600)}|00:10:00|01:00:00"
            lines.append(f"{5000 + job}|dana|llm|{times}|COMPLETED|cpu=4|1|cpu01")
    lines.append(f"6000|alice|vision|{at(5 * 86400)}|Unknown|Unknown|00:00:00|04:00:00|PENDING||1|None assigned")
    return lines


if __name__ == "__main__":
    (Path(__file__).parent / "slurm-log.txt").write_text("\n".join(rows()) + "\n", encoding="utf-8")
