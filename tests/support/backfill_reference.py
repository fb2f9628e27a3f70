"""Reference of backfilling: EASY and conservative on numbers of GPUs, by brute force; it shares no code with kernels.

Written from Lifka (1995) and Mu'alem and Feitelson (2001) and the choices named in policies/passes/backfill.py.
"""

from __future__ import annotations

Job = tuple[float, int, float]


def start_times(jobs: list[Job], gpus: int, order: str, head: str, estimates: list[float] | None = None) -> list[float]:
    """When each job starts.

    Args:
        jobs: (arrival_s, gpus, duration_s), ascending in arrival_s.
        gpus: of the cluster.
        order: fifo or sjf, which goes by the estimates.
        head: reserve or conservative.
        estimates: expected durations, seconds; None: the true ones.
    """
    run_s = estimates or [duration for _, _, duration in jobs]
    start_s: dict[int, float] = {}
    last_end_s = -1.0
    times = {float(arrival) for arrival, _, _ in jobs}
    while times:
        now = min(times)
        times.discard(now)
        if any(start_s[j] + jobs[j][2] == now for j in start_s):
            last_end_s = now
        line = sorted(
            (arrival if arrival > last_end_s else -1.0, run_s[j] if order == "sjf" else arrival, j)
            for j, (arrival, _, _) in enumerate(jobs)
            if arrival <= now and j not in start_s
        )
        held = [  # (from, until, GPUs)
            (start, expected_end_s(start, run_s[j], now), jobs[j][1])
            for j, start in start_s.items()
            if start + jobs[j][2] > now
        ]
        chosen = (easy if head == "reserve" else conservative)([j for *_, j in line], held, jobs, run_s, gpus, now)
        for j in chosen:
            start_s[j] = now
            times.add(now + jobs[j][2])
    return [start_s[j] for j in range(len(jobs))]


def expected_end_s(start: float, run_s: float, now: float) -> float:
    """Of a running job; one that outlives its estimate needs as long again as it has run."""
    return start + run_s if start + run_s > now else now + (now - start)


def free_at(time: float, held: list[tuple[float, float, int]], gpus: int) -> int:
    """GPUs neither held nor promised at an instant."""
    return gpus - sum(count for begin, end, count in held if begin <= time < end)


def easy(line, held, jobs, run_s, gpus, now):
    """The jobs of the line that start now: the first that does not fit has a reservation."""
    chosen, shadow, spare = [], None, 0
    for j in line:
        need = jobs[j][1]
        fits = need <= free_at(now, held, gpus)
        if shadow is None and not fits:
            shadow = min(end for _, end, _ in held if free_at(end, held, gpus) >= need)
            spare = free_at(shadow, held, gpus) - need
        elif fits and (shadow is None or now + run_s[j] <= shadow or need <= spare):
            chosen.append(j)
            held.append((now, now + run_s[j], need))
            if shadow is not None and now + run_s[j] > shadow:
                spare -= need
    return chosen


def conservative(line, held, jobs, run_s, gpus, now):
    """The jobs of the line that start now: those whose reservation is now."""
    return [j for j, time in reservations(line, held, jobs, run_s, gpus, now).items() if time == now]


def reservations(line, held, jobs, run_s, gpus, now):
    """When each job of the line is to start, beside those before it: job -> time."""
    found = {}
    for j in line:
        need, changes = jobs[j][1], sorted({now, *(end for _, end, _ in held)})
        begins = [begin for begin, _, _ in held]
        time = next(
            t
            for t in changes
            if all(free_at(u, held, gpus) >= need for u in [t, *changes, *begins] if t <= u < t + run_s[j])
        )
        held.append((time, time + run_s[j], need))
        found[j] = time
    return found
