"""Reference: strict FIFO and EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001).

A job is a tuple (arrival_s, processors, run_s, estimate_s). The rows are sorted by
arrival; rows with equal arrival keep their order, so queue order is row order.

Rules
1.  Events are job arrivals and real job ends only. Nothing is decided at other times:
    passing an estimate, or reaching a reserved time, is not an event.
2.  All events of one instant (exact float equality) are applied, ends and arrivals
    alike, before any scheduling at that instant. A job with run_s == 0 ends at the
    instant it starts; that end makes a second scheduling round at the same instant.
3.  A job started at s holds its processors until s + run_s, whatever its estimate: an
    early end frees them at once; a job that outlives its estimate is not killed.
4.  FIFO: start the queue's first job while it fits; the first that does not fit blocks
    all later jobs.
5.  EASY does rule 4 first. If the queue is not empty, its head (which does not fit)
    gets the only reservation, computed anew at each scheduling round and not kept:
    - predicted end of a running job = max(now, s + estimate_s). Thus a job past its
      estimate (or exactly at it) is predicted to end at once, at 'now';
    - shadow time = earliest predicted end by which the free processors, plus those of
      all running jobs predicted to end at or before it, are enough for the head. It
      may equal 'now' because of overdue jobs; the head still waits for the real end;
    - extra = that sum (all jobs predicted to end at the shadow time counted) minus the
      head's processors.
6.  Backfill: one pass over the later queue jobs, in queue order. A job starts now if it
    fits in the processors free now and either
    (a) now + estimate_s <= shadow time (extra stays as it is), or else
    (b) it needs at most extra processors (extra is reduced by them).
    Test (a) comes first: a job that meets both does not use up extra.
7.  Planning sees estimates only, never run_s. Comparisons are exact, no tolerance.
8.  Bad input (unsorted, wider than the machine, under one processor, negative times)
    raises ValueError.
"""


def fifo(jobs, processors):
    """Start times, in input order, under strict first-in-first-out (rules 1-4)."""
    return _simulate(jobs, processors, backfill=False)


def easy(jobs, processors):
    """Start times, in input order, under EASY backfilling (rules 1-7)."""
    return _simulate(jobs, processors, backfill=True)


def _simulate(jobs, processors, backfill):
    _check(jobs, processors)
    starts = [None] * len(jobs)
    queue = []  # indices of waiting jobs, in order of arrival
    running = []  # indices of running jobs
    free = processors
    arrived = 0  # jobs[:arrived] have arrived

    def end(i):
        return starts[i] + jobs[i][2]

    while arrived < len(jobs) or running:
        times = [end(i) for i in running]
        if arrived < len(jobs):
            times.append(jobs[arrived][0])
        now = min(times)

        # All ends and all arrivals of this instant (rule 2).
        free += sum(jobs[i][1] for i in running if end(i) == now)
        running = [i for i in running if end(i) != now]
        while arrived < len(jobs) and jobs[arrived][0] == now:
            queue.append(arrived)
            arrived += 1

        # In order while they fit (rule 4), then backfill (rules 5 and 6).
        while queue and jobs[queue[0]][1] <= free:
            i = queue.pop(0)
            free -= jobs[i][1]
            starts[i] = float(now)
            running.append(i)
        if backfill and queue:
            shadow, extra = _reservation(jobs, starts, running, free, queue[0], now)
            for i in queue[1:]:
                width, estimate = jobs[i][1], jobs[i][3]
                ends_in_time = now + estimate <= shadow
                if width <= free and (ends_in_time or width <= extra):
                    if not ends_in_time:
                        extra -= width
                    free -= width
                    starts[i] = float(now)
                    running.append(i)
            queue = [i for i in queue if starts[i] is None]
    return starts


def _reservation(jobs, starts, running, free, head, now):
    """(shadow time, extra processors) for a head that does not fit now (rule 5)."""
    predicted = [(max(now, starts[i] + jobs[i][3]), jobs[i][1]) for i in running]
    for shadow in sorted({when for when, _ in predicted}):
        there = free + sum(width for when, width in predicted if when <= shadow)
        if there >= jobs[head][1]:
            return shadow, there - jobs[head][1]
    raise AssertionError("a job no wider than the machine fits once all jobs have ended")


def _check(jobs, processors):
    for k, (arrival, width, run, estimate) in enumerate(jobs):
        if not 1 <= width <= processors or run < 0 or estimate < 0:
            raise ValueError(f"job {k}: bad processors or time")
        if k and arrival < jobs[k - 1][0]:
            raise ValueError(f"job {k}: rows not sorted by arrival")


if __name__ == "__main__":
    # 1. Job 2 ends by estimate exactly at the shadow time 10, so it is backfilled.
    case = [(0, 2, 10, 10), (1, 4, 5, 5), (2, 2, 8, 8), (3, 1, 20, 20)]
    assert fifo(case, 4) == [0, 10, 15, 15] and easy(case, 4) == [0, 10, 2, 15]
    # 2. Shadow 10, extra 2: job 2 uses both, job 3 finds none, job 4 ends by 10.
    case = [(0, 6, 10, 10), (1, 8, 5, 5), (2, 2, 100, 100), (2, 1, 100, 100), (2, 2, 8, 8)]
    assert fifo(case, 10) == [0, 10, 10, 15, 15] and easy(case, 10) == [0, 10, 2, 15, 2]
    # 3. Early end (job 2, at 4) lets job 3 in; job 0 is overdue at 12: shadow 12, extra 0.
    case = [(0, 3, 20, 10), (1, 4, 5, 30), (2, 1, 2, 8), (3, 1, 4, 6), (12, 1, 3, 3)]
    assert fifo(case, 4) == [0, 20, 25, 25, 25] and easy(case, 4) == [0, 20, 2, 4, 25]
    assert easy([(0, 3, 20, 10), (1, 2, 5, 5), (12, 1, 3, 3)], 4) == [0, 20, 12]  # extra 2
    print("ok")
