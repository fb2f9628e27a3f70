"""Reference of Harmony: the executor of one group, Eq. 1-4 and Algorithm 1, written to be read, not to be fast.

Source: Lee et al., Harmony: A Scheduling Framework Optimized for Multiple Distributed Machine Learning Jobs, ICDCS'21;
sections and equations below are the paper's. The compiled kernels and solvers are checked against this file; it shares
no code with them. It is in its turn checked against cases worked by hand (test_harmony_reference.py).

A job is a pair (w, c): COMP takes w machine-seconds an iteration, so w / m seconds on m machines (Eq. 2), and COMM c
seconds on any number of machines. Every function works on whatever numbers it is given: with floats it rounds, with
ints and Fractions it is exact, and then so are its ties. Defaults are ints and Fractions for that reason.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

Number = Any  # int, float or Fraction
Job = tuple[Number, Number]  # COMP machine-seconds, COMM seconds; both > 0
Event = tuple[Number, int, str]  # the end of a subtask: time in seconds, job, kind
Group = tuple[tuple[int, ...], int]  # its jobs, its machines

HALF = Fraction(1, 2)
SIMILAR = Fraction(5, 100)  # IV-B4: "within 5%"
EXPANSION = Fraction(136, 100)  # bytes in memory for a byte of data
LEAST_GAIN = Fraction(1, 10**12)  # of the imbalance of two groups; less is rounding
EACH_PREFIX = 200  # with more jobs than these the prefixes that Algorithm 1 tries grow by a twentieth


# --- The executor of one group (IV-A, Figure 7) ---


@dataclass
class Running:
    """A subtask that holds a resource."""

    job: int
    kind: str
    since_s: Number
    left_s: Number  # seconds of work left at `since_s`, at rate 1
    rate: Number
    end_s: Number


def run_group(
    jobs: Sequence[Job],
    machines: int,
    until_s: Number,
    *,
    comm: str = "merged",
    busy: Number = 1,
    execution: str = "subtasks",
    loss: Number = 0,
    gc: Number = 1,
    disk_s: Sequence[Number] | None = None,
    start_s: Sequence[Number] | None = None,
    pull: Sequence[Number] | None = None,
) -> list[Event]:
    """Run `jobs` on `machines` and list the ends of their subtasks up to `until_s` (included), in order.

    Args:
        jobs: in the order in which they enter.
        machines: of the group, >= 1.
        until_s: seconds.
        comm: "merged", an iteration is COMP, COMM; "split", it is PULL, COMP, PUSH (II-A, Figure 1).
        busy: share of its time for which a COMM alone keeps the network busy, in [.5, 1]; below 1 a secondary COMM
            runs beside it at rate (1 - busy) / busy (IV-A). Of no effect when `execution` is "naive".
        execution: "subtasks" or "naive" (V-A): all members run at once and share CPU and network equally.
        loss: what overlapping subtasks of one kind lose to each other, in [0, 1); "naive" only.
        gc: factor >= 1 on the time of every COMP.
        disk_s: seconds that the disk takes to load one pass over each job's spilled input; 0 if nothing is spilled.
        start_s: when each job enters the queue of its first subtask. At one instant ends go before entries.
        pull: share of each job's COMM that is PULL ("split"); a half by default.
    """
    stages = [_stages(job, machines, comm, gc, HALF if pull is None else pull[j]) for j, job in enumerate(jobs)]
    entries = [0] * len(jobs) if start_s is None else list(start_s)
    if execution == "naive":
        if disk_s is not None and any(disk_s):
            raise ValueError("naive co-location does not spill")
        return _run_naive(stages, entries, until_s, loss)
    return _run_subtasks(stages, entries, until_s, busy, disk_s or [0] * len(jobs))


def _stages(job: Job, machines: int, comm: str, gc: Number, pull: Number) -> list[tuple[str, Number]]:
    """The subtasks of an iteration in their order: kind, seconds of it alone."""
    w, c = job
    comp_s = w * gc / _exact(machines)
    if comm == "merged":
        return [("COMP", comp_s), ("COMM", c)]
    assert comm == "split"
    return [("PULL", pull * c), ("COMP", comp_s), ("PUSH", c - pull * c)]


def _exact(count: Number) -> Number:
    """An int as something that divides an int without rounding."""
    return Fraction(count) if isinstance(count, int) else count


def _run_subtasks(
    stages: list[list[tuple[str, Number]]],
    entries: list[Number],
    until_s: Number,
    busy: Number,
    disk_s: Sequence[Number],
) -> list[Event]:
    """Two FIFO queues; one COMP at a time, and one COMM, or a primary and a secondary one (IV-A)."""
    slots = 1 if busy == 1 else 2
    rates = [1, (1 - busy) / _exact(busy)]
    stage = [0] * len(stages)
    waiting = list(range(len(stages)))  # for their entry
    cpu_queue: deque[int] = deque()
    net_queue: deque[int] = deque()
    cpu: list[Running] = []
    net: list[Running] = []  # the primary, then the secondary
    disk_free_s: Number = -math.inf
    loaded_s: list[Number] = [-math.inf] * len(stages)  # when each job's next pass is in memory
    events: list[Event] = []

    def enqueue(job: int) -> None:
        (cpu_queue if stages[job][stage[job]][0] == "COMP" else net_queue).append(job)

    while True:
        now = min([run.end_s for run in cpu + net] + [entries[job] for job in waiting])
        if now > until_s:
            return events

        # All ends of the instant: the CPU's, the primary's, the secondary's. Each enqueues what follows it.
        for run in [run for run in cpu + net if run.end_s == now]:
            events.append((now, run.job, run.kind))
            (cpu if run.kind == "COMP" else net).remove(run)
            if run.kind == "COMP" and disk_s[run.job] > 0:  # IV-C: the next pass is preloaded in the background
                disk_free_s = max(now, disk_free_s) + disk_s[run.job]
                loaded_s[run.job] = disk_free_s
            stage[run.job] = (stage[run.job] + 1) % len(stages[run.job])
            enqueue(run.job)

        for job in [job for job in waiting if entries[job] == now]:
            waiting.remove(job)
            enqueue(job)

        # Only now do idle resources take from their queues.
        if not cpu and cpu_queue:
            job = cpu_queue.popleft()
            seconds = stages[job][stage[job]][1]
            end_s = max(now + seconds, loaded_s[job])  # V-G: "blocked by loading"; it keeps the CPU
            cpu.append(Running(job, "COMP", now, seconds, 1, end_s))
        if net and net[0].rate != 1:  # the primary has ended: the secondary takes its place
            left_s = net[0].left_s - net[0].rate * (now - net[0].since_s)
            net[0] = Running(net[0].job, net[0].kind, now, left_s, 1, now + left_s)
        while len(net) < slots and net_queue:
            job = net_queue.popleft()
            kind, seconds = stages[job][stage[job]]
            rate = rates[len(net)]
            net.append(Running(job, kind, now, seconds, rate, now + seconds / _exact(rate)))


def _run_naive(
    stages: list[list[tuple[str, Number]]], entries: list[Number], until_s: Number, loss: Number
) -> list[Event]:
    """No queues: k subtasks of one resource move at rate 1 / k, less the loss if they are two or more (II-B, V-A)."""
    stage = [0] * len(stages)
    left_s = [parts[0][1] for parts in stages]  # seconds of the present subtask left, at rate 1
    running: list[int] = []
    now: Number = 0
    events: list[Event] = []

    def on_cpu(job: int) -> bool:
        return stages[job][stage[job]][0] == "COMP"

    while True:
        rates = {}
        for job in running:
            sharers = sum(1 for other in running if on_cpu(other) == on_cpu(job))
            rates[job] = 1 if sharers == 1 else (1 - loss) / _exact(sharers)
        ends = {job: now + left_s[job] / _exact(rates[job]) for job in running}
        then = min(list(ends.values()) + [entries[job] for job in range(len(stages)) if job not in ends])
        if then > until_s:
            return events
        for job in running:
            left_s[job] -= rates[job] * (then - now)
        now = then
        for job in sorted(running):
            if ends[job] == now:
                events.append((now, job, stages[job][stage[job]][0]))
                stage[job] = (stage[job] + 1) % len(stages[job])
                left_s[job] = stages[job][stage[job]][1]
        running += [job for job in range(len(stages)) if job not in ends and entries[job] == now]


def steady_cycle_s(events: Sequence[Event], job: int) -> Number:
    """Seconds between the COMPs of `job` once it goes round regularly: a pattern of gaps that fills the latter half.

    Without such a pattern, the mean of the latter half's gaps.
    """
    ends = [time_s for time_s, of, kind in events if of == job and kind == "COMP"]
    gaps = [after - before for before, after in pairwise(ends)]
    late = gaps[len(gaps) // 2 :]
    if not late:
        raise ValueError(f"job {job} has ended {len(ends)} COMPs, which is too few to see a cycle")
    for period in range(1, len(late) // 3 + 1):
        if all(abs(a - b) <= 1e-9 * abs(b) for a, b in zip(late, late[period:], strict=False)):
            return sum(late[-period:]) / _exact(period)
    return sum(late) / _exact(len(late))


# --- The performance model (IV-B2) ---


def comp_s(job: Job, machines: Number) -> Number:
    """T_cpu of a job, Eq. 2."""
    return job[0] / _exact(machines)


def iteration_s(job: Job, machines: Number) -> Number:
    """T_j_itr of a job alone: one COMP and one COMM."""
    return comp_s(job, machines) + job[1]


def predicted_cycle_s(
    jobs: Sequence[Job], machines: Number, *, gc: Number = 1, disk_s: Sequence[Number] | None = None
) -> Number:
    """T_g_itr of a group, Eq. 1; with garbage collection's factor on COMP, and not below the disk's time (OURS)."""
    jobs = [(w * gc, c) for w, c in jobs]
    comps_s = sum(comp_s(job, machines) for job in jobs)
    comms_s = sum(c for _, c in jobs)
    longest_s = max(iteration_s(job, machines) for job in jobs)
    return max(comps_s, comms_s, longest_s, sum(disk_s or [0]))


def group_utilisation(jobs: Sequence[Job], machines: Number) -> tuple[Number, Number]:
    """(U_cpu, U_net) of a group, Eq. 3."""
    cycle_s = _exact(predicted_cycle_s(jobs, machines))
    return sum(comp_s(job, machines) for job in jobs) / cycle_s, sum(c for _, c in jobs) / cycle_s


def utilisation(jobs: Sequence[Job], groups: Sequence[Group]) -> tuple[Number, Number]:
    """(U_cpu, U_net) of all groups, weighted by their machines, Eq. 4."""
    total = _exact(sum(machines for _, machines in groups))
    each = [(machines, group_utilisation([jobs[j] for j in members], machines)) for members, machines in groups]
    return sum(m * cpu for m, (cpu, _) in each) / total, sum(m * net for m, (_, net) in each) / total


def score(jobs: Sequence[Job], groups: Sequence[Group], beta: Number = HALF) -> Number:
    """The scalar that stands for U: U_cpu + beta U_net. IV-B2: CPU is "treated more importantly" (beta OURS)."""
    cpu, net = utilisation(jobs, groups)
    return cpu + beta * net


def is_similar(finished: Job, bunch: Sequence[Job]) -> bool:
    """May the jobs of `bunch` replace the finished one (IV-B4)?

    Their summed iteration times, and the ratio of summed COMP to summed COMM times, must lie within 5 % (included) of
    the finished job's. Both arguments are in seconds, (T_cpu, T_net), T_cpu on the machines of the finished job.
    """
    comp, comm = sum(t for t, _ in bunch), sum(t for _, t in bunch)
    whole = sum(finished)
    ratio = finished[0] / _exact(finished[1])
    return abs(comp + comm - whole) <= SIMILAR * whole and abs(comp / _exact(comm) - ratio) <= SIMILAR * ratio


# --- Memory and disk (IV-C) ---


def load_s(spilled: Number, input_bytes: Number, machines: int, bandwidth: Number) -> Number:
    """Seconds to load the share `spilled` (alpha) of the input, every machine its part, `bandwidth` bytes/s each."""
    return spilled * input_bytes / (machines * _exact(bandwidth))


def occupancy(
    input_bytes: Sequence[Number],
    model_bytes: Sequence[Number],
    machines: int,
    ram_bytes: Number,
    *,
    spilled: Sequence[Number],
    expansion: Number = EXPANSION,
) -> Number:
    """Share of the group's memory that its input data in memory and its models fill."""
    kept = sum((1 - alpha) * size for alpha, size in zip(spilled, input_bytes, strict=True))
    return expansion * (kept + sum(model_bytes)) / (machines * _exact(ram_bytes))


# --- Algorithm 1 (IV-B3) ---


def schedule(
    jobs: Sequence[Job],
    machines: int,
    *,
    beta: Number = HALF,
    stop: str = "all",
    balance: str = "job",
    model_bytes: Sequence[Number] | None = None,
    ram_bytes: Number | None = None,
    expansion: Number = EXPANSION,
) -> list[Group]:
    """Group `jobs`, which stand in the order in which prefixes take them; jobs in no group do not run.

    Args:
        jobs: running, paused, profiled ones (line 2), each by submission.
        machines: of the cluster; all are given out.
        beta: weight of U_net in the score.
        stop: "all" tries every prefix and keeps the best; "printed" is the loop as printed: lines 4-5 never take the
            last job, lines 9-14 return the grouping that no longer improved.
        balance: "job" is line 6; "group" balances the sums instead.
        model_bytes, ram_bytes, expansion: a grouping with a group whose models do not fit is passed over.
    """
    assert stop in ("all", "printed")
    taken: list[Group] = []
    best: Number = 0  # line 3
    for length in prefix_lengths(len(jobs), stop):  # lines 4, 5
        count = group_count(jobs[:length], machines, balance)  # line 6
        places = swap(jobs, fill(jobs[:length], machines, count), Fraction(machines, count))  # line 7
        groups = allocate_machines(jobs, places, machines)  # lines 8, 9
        if not fits(groups, model_bytes, ram_bytes, expansion):
            continue
        value = score(jobs, groups, beta)
        if value > best:  # lines 10, 11
            best, taken = value, groups
        elif stop == "printed":  # lines 12 to 14
            return groups
    return taken


def prefix_lengths(jobs: int, stop: str) -> Iterator[int]:
    """How many jobs to try, in turn: each number, or above EACH_PREFIX jobs each number about 1.05 times the last.

    As printed, n_j goes from 2 to |J| and the slice is [0 : n_j - 1], its end excluded; a single job is tried (OURS).
    """
    if stop == "printed" and jobs > 1:
        yield from range(1, jobs)
        return
    length = 1
    while length < jobs:
        yield length
        length = max(length + 1, length * 21 // 20) if jobs > EACH_PREFIX else length + 1
    if jobs:
        yield jobs


def group_count(jobs: Sequence[Job], machines: int, balance: str = "job") -> int:
    """n_G: as many groups as balance COMP and COMM best when each has machines / n_G machines (line 6)."""
    most = min(len(jobs), machines)
    if balance == "group":
        count = math.floor(machines * sum(c for _, c in jobs) / _exact(sum(w for w, _ in jobs)) + HALF)
        return min(max(count, 1), most)
    assert balance == "job"
    return min(range(1, most + 1), key=lambda count: line_6(jobs, machines, count))


def line_6(jobs: Sequence[Job], machines: int, count: int) -> Number:
    """What line 6 minimises: the sum of abs(T_cpu(n_G) - T_net)."""
    return sum(abs(w * count / _exact(machines) - c) for w, c in jobs)


def imbalance(jobs: Sequence[Job], members: Sequence[int], machines: Number) -> Number:
    """Seconds by which the COMPs of a group outlast its COMMs; negative if it is the other way round."""
    return sum(comp_s(jobs[j], machines) for j in members) - sum(jobs[j][1] for j in members)


def fill(jobs: Sequence[Job], machines: int, count: int) -> list[list[int]]:
    """The `count` groups before any swap: long jobs together, each group as balanced as its next few jobs allow.

    IV-B3: "sorts jobs by their job iteration time", then fills the groups "one by one with jobs from the sorted list in
    a greedy manner to balance resource use".
    """
    each = Fraction(machines, count)
    left = sorted(range(len(jobs)), key=lambda j: iteration_s(jobs[j], each), reverse=True)  # stable
    groups = []
    for g in range(count):
        size = len(jobs) // count + (1 if g < len(jobs) % count else 0)
        members = [left.pop(0)]
        while len(members) < size:
            choice = min(left[:size], key=lambda j: abs(imbalance(jobs, [*members, j], each)))
            left.remove(choice)
            members.append(choice)
        groups.append(members)
    return groups


def swap(jobs: Sequence[Job], groups: list[list[int]], each: Number) -> list[list[int]]:
    """Swap jobs between the most imbalanced group and its most complementary one as long as that helps (IV-B3).

    Ties are the rule: a swap leaves the sum of the two imbalances as it is, so that all swaps after which both have one
    sign are equally good. The first of them is taken, and rounding must not choose another: hence LEAST_GAIN here.
    """
    groups = [list(members) for members in groups]
    while len(groups) > 1:
        now = [imbalance(jobs, members, each) for members in groups]
        picked = max(range(len(groups)), key=lambda g: abs(now[g]))
        others = [g for g in range(len(groups)) if g != picked]
        partner = min(others, key=lambda g: now[g]) if now[picked] > 0 else max(others, key=lambda g: now[g])

        present = least = abs(now[picked]) + abs(now[partner])
        chosen = None
        for places in product(range(len(groups[picked])), range(len(groups[partner]))):
            here, there = _swapped(groups[picked], groups[partner], places)
            value = abs(imbalance(jobs, here, each)) + abs(imbalance(jobs, there, each))
            if value < least - LEAST_GAIN * present:
                least, chosen = value, (here, there)
        if chosen is None:
            break
        groups[picked], groups[partner] = chosen
    return groups


def _swapped(here: list[int], there: list[int], places: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Both lists after the members at `places` have changed places."""
    here, there = list(here), list(there)
    here[places[0]], there[places[1]] = there[places[1]], here[places[0]]
    return here, there


def allocate_machines(jobs: Sequence[Job], groups: Sequence[Sequence[int]], machines: int) -> list[Group]:
    """One machine for each group, then one by one to the most computation-intensive one (IV-B3, line 8)."""
    given = [1] * len(groups)
    work = [sum(jobs[j][0] for j in members) for members in groups]
    comm = [sum(jobs[j][1] for j in members) for members in groups]
    while sum(given) < machines:
        neediest = max(range(len(groups)), key=lambda g: work[g] / _exact(given[g]) / _exact(comm[g]))
        given[neediest] += 1
    return [(tuple(members), count) for members, count in zip(groups, given, strict=True)]


def fits(
    groups: Sequence[Group],
    model_bytes: Sequence[Number] | None,
    ram_bytes: Number | None,
    expansion: Number = EXPANSION,
) -> bool:
    """Do the models of every group fit into its memory when all input is spilled? Without sizes they do."""
    if model_bytes is None or ram_bytes is None:
        return True
    return all(expansion * sum(model_bytes[j] for j in members) <= ram_bytes * count for members, count in groups)


# --- What no algorithm can beat ---


def best_grouping(jobs: Sequence[Job], machines: int, beta: Number = HALF) -> tuple[Number, list[Group]]:
    """The best score of all partitions of all jobs and all splits of all machines, and one that has it. Small cases."""
    best: tuple[Number, list[Group]] = (0, [])
    for parts in partitions(list(range(len(jobs)))):
        for counts in splits(machines, len(parts)):
            groups = [(tuple(part), count) for part, count in zip(parts, counts, strict=True)]
            value = score(jobs, groups, beta)
            if value > best[0]:
                best = (value, groups)
    return best


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All ways to part `items` into groups."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for mates in combinations(rest, size):
            for others in partitions([item for item in rest if item not in mates]):
                yield [[first, *mates], *others]


def splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to give each of `parts` groups one or more of `total` machines."""
    for cuts in combinations(range(1, total), parts - 1):
        bounds = (0, *cuts, total)
        yield tuple(after - before for before, after in pairwise(bounds))
