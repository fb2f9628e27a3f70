"""Reference simulator: gang scheduling with order-based policies, written to be read, not to be fast.

The compiled kernels are checked against it; it shares no code with them. One clock, one heap of events, and
after the events of an instant one scheduling pass. Ties by job id, which is the index in order of arrival.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Any

COMPLETION, DEMOTION, ARRIVAL, PASS = range(4)  # the order of events at one instant
PREEMPTIVE = ("srtf", "srsf", "las")
ORDERS = ("fifo", "sjf", *PREEMPTIVE)


def round_up(time_s: float, step_s: float) -> float:
    """First whole multiple of `step_s` at or after `time_s`; `time_s` itself if `step_s` is 0."""
    return max(time_s, math.ceil(time_s / step_s) * step_s) if step_s > 0 else time_s


def simulate(
    jobs: list[tuple[float, int, float]], gpus_per_machine: list[int], *,
    order: str = "fifo", head: str = "skip", placer: str = "count",
    preemption_cost: float | tuple[float, float] = 0.0, thresholds: tuple[float, ...] = (3250, 7200),
    quantum_s: float = 1.0, round_s: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """Run all jobs to their end.

    Args:
        jobs: (arrival_s, gpus, duration_s), ascending in arrival_s; the id is the index.
        gpus_per_machine: size of each machine; `placer="count"` looks at the sum only.
        order: fifo, sjf (never preempt), srtf, srsf, las (preempt).
        head: strict (the pass stops at the first job that does not fit) or skip.
        placer: count (any GPUs) or consolidated (interface.md's definition).
        preemption_cost: seconds of restoring at each start but the first; a pair is (up to 8 GPUs, above).
        thresholds: GPU-seconds at which a job leaves LAS level 0, 1, ...
        quantum_s: demotions happen at whole multiples of it, 0 = at the exact instant.
        round_s: passes happen at whole multiples of it, 0 = at every event.

    Returns:
        finish_s (list, by id), preemptions, makespan (last finish - first arrival), jct_mean.

    Raises:
        ValueError: an unknown option, or a job that never starts.
    """
    for option, known in ((order, ORDERS), (head, ("strict", "skip")), (placer, ("count", "consolidated"))):
        if option not in known:
            raise ValueError(f"{option!r} is not one of {known}")
    cost_s = preemption_cost if isinstance(preemption_cost, tuple) else (preemption_cost, preemption_cost)
    sizes = list(gpus_per_machine) if placer == "consolidated" else [sum(gpus_per_machine)]  # one big machine
    machine_of = [m for m, size in enumerate(sizes) for _ in range(size)]
    free = [[gpu for gpu, k in enumerate(machine_of) if k == m] for m in range(len(sizes))]  # ascending
    strict, n, gpus = head == "strict", len(jobs), [job[1] for job in jobs]

    left_s = [float(job[2]) for job in jobs]  # isolated seconds left when last settled
    start_s, since_s = [-1.0] * n, [0.0] * n  # last start, -1 = none; progress counts from since_s
    finish_s = [math.inf] * n  # foreseen at each start
    attained_s, level = [0.0] * n, [0] * n  # service of earlier runs; LAS level
    demote_s = [math.inf] * n  # the one valid demotion event of a job
    where: list[list[int] | None] = [None] * n  # the GPUs of a running job
    queues: dict[int, list[tuple[float, int]]] = {}  # fifo, sjf: heap of waiting (key, id) per gang size
    active: list[list[int]] = [[] for _ in range(len(thresholds) + 1)]  # else: ids; levels above 0 in las
    preemptions, pass_at = 0, -1.0  # pass_at: time of the pass to come, -1 = none
    events = [(float(job[0]), ARRIVAL, j) for j, job in enumerate(jobs)]  # ascending, so a heap

    def find(g: int) -> list[int] | None:
        """The GPUs that a gang of g gets now, or None; within a machine the lowest-numbered ones."""
        if g <= max(sizes):
            fits = [(len(f), m) for m, f in enumerate(free) if len(f) >= g]
            return free[min(fits)[1]][:g] if fits else None
        whole = [gpu for f, size in zip(free, sizes, strict=True) if len(f) == size for gpu in f]
        return whole[:g] if len(whole) >= g else None

    def take(j: int, chosen: list[int]) -> None:
        where[j], taken = chosen, set(chosen)
        for m in {machine_of[gpu] for gpu in chosen}:
            free[m] = [gpu for gpu in free[m] if gpu not in taken]

    def release(j: int) -> None:
        chosen, where[j] = where[j] or [], None
        for m in {machine_of[gpu] for gpu in chosen}:
            free[m] = sorted(free[m] + [gpu for gpu in chosen if machine_of[gpu] == m])

    def foresee_demotion(j: int, now: float) -> None:
        """Set the next demotion: of a waiting job only if its service already suffices."""
        if order != "las" or level[j] == len(thresholds):
            return
        needed_s = thresholds[level[j]] / gpus[j]
        if where[j] is not None:
            demote_s[j] = max(now, round_up(start_s[j] + (needed_s - attained_s[j]), quantum_s))
        elif attained_s[j] >= needed_s:
            demote_s[j] = now
        if demote_s[j] < math.inf:
            heappush(events, (demote_s[j], DEMOTION, j))

    def begin(j: int, now: float) -> None:
        since_s[j] = now + cost_s[gpus[j] > 8] if start_s[j] >= 0 else now
        start_s[j] = now
        finish_s[j] = since_s[j] + left_s[j]
        heappush(events, (finish_s[j], COMPLETION, j))
        if demote_s[j] == math.inf:  # else reached before a preemption and due at the end of its quantum
            foresee_demotion(j, now)

    def stop(j: int, now: float) -> None:
        left_s[j] -= max(0.0, now - since_s[j])
        attained_s[j] += now - start_s[j]
        finish_s[j] = math.inf
        if level[j] < len(thresholds) and attained_s[j] < thresholds[level[j]] / gpus[j]:
            demote_s[j] = math.inf

    def pass_without_preemption(now: float) -> None:
        """Walk the waiting jobs in order; a gang size that failed once fails for the rest of the pass."""
        candidates = {g: queue for g, queue in queues.items() if queue}
        while candidates:
            _, j = min(queue[0] for queue in candidates.values())
            g = gpus[j]
            chosen = find(g)
            if chosen is not None:
                heappop(queues[g])
                take(j, chosen)
                begin(j, now)
            elif strict:
                return
            if chosen is None or not queues[g]:
                del candidates[g]

    def key(j: int, now: float) -> tuple[float, int]:
        remaining_s = left_s[j] - (max(0.0, now - since_s[j]) if where[j] is not None else 0.0)
        return (remaining_s * gpus[j] if order == "srsf" else remaining_s, j)

    def assign_count(walk: list[int]) -> None:
        """A job that fits in what those before it leave runs; strict: none starts after one that does not fit."""
        room, runs, blocked = len(machine_of), set(), False
        for j in walk:
            if gpus[j] > room:
                blocked = strict
            elif where[j] is not None or not blocked:
                room -= gpus[j]
                runs.add(j)
        for j in walk:
            if j not in runs:
                release(j)
        for j in walk:
            if j in runs and where[j] is None:
                take(j, find(gpus[j]) or [])

    def assign_consolidated(walk: list[int]) -> None:
        """A running job keeps its GPUs at its turn; a waiting one may take those of running jobs after it."""
        later = [j for j in reversed(walk) if where[j] is not None]  # those that ran and whose turn is to come
        for j in walk:
            if later and later[-1] == j:
                later.pop()
            if where[j] is not None:
                continue
            chosen, released = find(gpus[j]), []
            for k in later:  # worst first
                if chosen is not None:
                    break
                if (held := where[k]) is not None:
                    released.append((k, held))
                    release(k)
                    chosen = find(gpus[j])
            for k, held in reversed(released):  # best first
                take(k, held)
                if chosen is not None and find(gpus[j]) is None:
                    release(k)
            if chosen is not None:
                take(j, find(gpus[j]) or [])
            elif strict:
                return

    def pass_with_preemption(now: float) -> None:
        nonlocal preemptions
        walk = [j for ids in active for j in ids]
        if order != "las":
            walk.sort(key=lambda j: key(j, now))
        before = {j: where[j] for j in walk if where[j] is not None}
        (assign_count if placer == "count" else assign_consolidated)(walk)
        for j in walk:
            if where[j] == before.get(j):  # also: stopped and started on the same GPUs
                continue
            if j in before:
                preemptions += 1
                stop(j, now)
            if where[j] is not None:
                begin(j, now)
        for i, ids in enumerate(active):
            active[i] = [j for j in ids if where[j] is not None] + [j for j in ids if where[j] is None]

    while events:
        now, kind, j = heappop(events)
        if kind == PASS:
            pass_at = -1.0
            (pass_with_preemption if order in PREEMPTIVE else pass_without_preemption)(now)
            continue
        if kind == COMPLETION:
            if where[j] is None or finish_s[j] != now:
                continue  # foreseen before a preemption
            release(j)
            demote_s[j] = math.inf
            if order in PREEMPTIVE:
                active[level[j]].remove(j)
        elif kind == DEMOTION:
            if demote_s[j] != now:
                continue
            demote_s[j] = math.inf
            active[level[j]].remove(j)
            level[j] += 1
            active[level[j]].append(j)
            foresee_demotion(j, now)
        elif order in PREEMPTIVE:
            active[0].append(j)
        else:
            heappush(queues.setdefault(gpus[j], []), (jobs[j][0] if order == "fifo" else left_s[j], j))
        if pass_at < 0:
            pass_at = round_up(now, round_s)
            heappush(events, (pass_at, PASS, -1))

    if math.inf in finish_s:
        raise ValueError(f"job {finish_s.index(math.inf)} never starts")
    return {
        "finish_s": finish_s,
        "preemptions": preemptions,
        "makespan": max(finish_s) - jobs[0][0] if jobs else 0.0,
        "jct_mean": sum(end - job[0] for end, job in zip(finish_s, jobs, strict=True)) / n if n else 0.0,
    }
