"""Excess of the demand of jobs on their links, at every rotation of one of them: compiled."""

from ...simulator.compiler.jit import entry, kernel


@kernel
def add(total, row, rate, angle):
    """Modify `total`: `rate` times the demand `row`, turned by `angle`, is added."""
    angles = total.size
    for i in range(angle):
        total[i] += rate * row[i - angle + angles]
    for i in range(angle, angles):
        total[i] += rate * row[i - angle]


@kernel
def excess_above(total, row, rate, angle, capacity):
    """Mean excess of `total` and `rate` times a turned `row` over the capacity, as a fraction of it."""
    angles = total.size
    sum_ = 0.0
    for i in range(angle):
        sum_ += max(0.0, total[i] + rate * row[i - angle + angles] - capacity)
    for i in range(angle, angles):
        sum_ += max(0.0, total[i] + rate * row[i - angle] - capacity)
    return sum_ / (angles * capacity)


@entry
def excess_of(demand, flows, capacity, turned, total, excess):
    """Modify `excess`, float64 (links,): of each link, on average, as a fraction of its capacity.

    Args:
        demand: float64 (n, A), bytes per second of each job at each angle, per flow, not turned.
        flows: float64 (links, n), flows of each job on each link.
        capacity: float64 (links,), bytes per second.
        turned: int64 (n,), angles by which the jobs are turned.
        total: float64 (A,), scratch.
    """
    for link in range(capacity.size):
        total[:] = 0.0
        for job in range(turned.size):
            if flows[link, job] > 0.0:
                add(total, demand[job], flows[link, job], turned[job])
        excess[link] = excess_above(total, demand[0], 0.0, 0, capacity[link])
