"""Excess of the demand of jobs on their links, at every rotation of one of them: compiled."""

from ...simulator.compiler.jit import entry, kernel


@kernel
def _add(total, row, rate, angle):
    """Modify `total`: `rate` times the demand `row`, turned by `angle`."""
    angles = total.size
    for i in range(angle):
        total[i] += rate * row[i - angle + angles]
    for i in range(angle, angles):
        total[i] += rate * row[i - angle]


@kernel
def _excess(total, row, rate, angle, capacity):
    """Mean excess of `total` and `rate` times a turned `row` over the capacity, as a fraction of it."""
    angles = total.size
    sum_ = 0.0
    for i in range(angle):
        sum_ += max(0.0, total[i] + rate * row[i - angle + angles] - capacity)
    for i in range(angle, angles):
        sum_ += max(0.0, total[i] + rate * row[i - angle] - capacity)
    return sum_ / (angles * capacity)


@entry
def turn_one(demand, flows, capacity, turned, among, job, steps, total, excess):
    """Modify `excess`: at each rotation of a job, the mean excess over its links.

    Args:
        demand: float64 (n, A), bytes per second of each job at each angle, per flow, not turned.
        flows: float64 (links, n), flows of each job on each link.
        capacity: float64 (links,), bytes per second.
        turned: int64 (n,), angles by which the others are turned.
        among: only jobs before this one count.
        job: the one that is turned.
        steps: int64 (k,), its rotations in angles.
        total: float64 (A,), scratch.
        excess: float64 (k,), fractions of the capacity.
    """
    excess[:] = 0.0
    links = 0
    for link in range(capacity.size):
        rate = flows[link, job]
        if rate == 0.0:
            continue
        links += 1
        total[:] = 0.0
        for other in range(among):
            if other != job and flows[link, other] > 0.0:
                _add(total, demand[other], flows[link, other], turned[other])
        for step in range(steps.size):
            excess[step] += _excess(total, demand[job], rate, steps[step], capacity[link])
    if links > 0:
        for step in range(steps.size):
            excess[step] /= links


@entry
def excess_of(demand, flows, capacity, turned, total, excess):
    """Modify `excess`, float64 (links,): of each link with the jobs turned so; arguments as in `turn_one`."""
    for link in range(capacity.size):
        total[:] = 0.0
        for job in range(turned.size):
            if flows[link, job] > 0.0:
                _add(total, demand[job], flows[link, job], turned[job])
        excess[link] = _excess(total, demand[0], 0.0, 0, capacity[link])
