"""The circles of jobs that links join: periods, demand at each angle, and the excess that comes of it; compiled.

As simulator/contention/circle.py has them, to the bit.
"""

import math

from ...simulator.base.codes import GONE
from ...simulator.compiler.jit import kernel
from ...simulator.contention.circle import MOST_ITERATIONS
from ...simulator.numerics.instructions import floor, nearest
from .rotations import add, excess_above

NONE = -1
SLACK = 1e-9  # see circle.py
ROUNDING = 1e12
NEAR_S = 1e-9  # periods that are the same
COARSE = 24  # steps of a circle for what is predicted for candidates, 15 degrees
GOLDEN = 0.6180339887498949  # its multiples, modulo 1, are spread evenly
DRAWS = 16  # rotations of all jobs that stand for any


@kernel
def flows_on(m, i, vertex):
    """Flows of the i-th job on a vertex."""
    return m.flows[i, m.vertex_link[vertex]]


@kernel
def component_of(m, vertex):
    """The component of a vertex."""
    for i in range(m.n_placed):
        if flows_on(m, i, vertex) > 0.0:
            return m.component[i]
    return NONE


@kernel
def unify(m, component):
    """Modify `m`: the circle of a component, see `circle.unify`."""
    longest = 0.0
    for i in range(m.n_placed):
        if m.component[i] == component:
            longest = max(longest, m.iteration_s[i])
    good_s, best_s, least = math.inf, math.inf, math.inf
    for i in range(m.n_placed):
        if m.component[i] != component:
            continue
        for times in range(1, MOST_ITERATIONS + 1):
            perimeter_s = times * m.iteration_s[i]
            if perimeter_s < longest:
                continue
            worst = _worst_padding(m, component, perimeter_s)
            if worst <= m.padding + SLACK:
                good_s = min(good_s, perimeter_s)
            worst = nearest(worst * ROUNDING) / ROUNDING
            if worst < least or (worst == least and perimeter_s < best_s):
                least, best_s = worst, perimeter_s
    perimeter_s = good_s if good_s < math.inf else best_s
    for i in range(m.n_placed):
        if m.component[i] == component:
            m.perimeter_s[i], m.iterations[i] = perimeter_s, _count(perimeter_s, m.iteration_s[i])


@kernel
def _count(perimeter_s, iteration_s):
    return min(int(floor(perimeter_s / iteration_s * (1.0 + SLACK))), MOST_ITERATIONS)


@kernel
def _worst_padding(m, component, perimeter_s):
    worst = 0.0
    for i in range(m.n_placed):
        if m.component[i] == component:
            iteration_s = m.iteration_s[i]
            worst = max(worst, perimeter_s / (_count(perimeter_s, iteration_s) * iteration_s))
    return worst - 1.0


@kernel
def period_s(m, i):
    """Seconds from one iteration of the i-th job to the next, if it is shifted."""
    return m.perimeter_s[i] / m.iterations[i]


@kernel
def most_iterations(m, component):
    """Of the jobs of a component, once around their circle."""
    most = 1
    for i in range(m.n_placed):
        if m.component[i] == component:
            most = max(most, m.iterations[i])
    return most


@kernel
def step_angle(m, i, step, most):
    """A rotation of the i-th job, in angles; `most`: see `most_iterations`."""
    return step * most // m.iterations[i]


@kernel
def write_demand(m, component, steps):
    """Modify `m`: what each job of a component wants at each angle; returns how many angles there are."""
    angles = steps * most_iterations(m, component)
    for i in range(m.n_placed):
        if m.component[i] != component:
            continue
        angle_s = m.perimeter_s[i] / angles
        around_s = period_s(m, i)
        for angle in range(angles):
            time_s = (angle + 0.5) * angle_s % around_s
            wanted = 0.0
            for phase in range(m.n_phases[i]):
                if m.start_s[i, phase] <= time_s < m.start_s[i, phase] + m.duration_s[i, phase]:
                    wanted = m.rate[i, phase]
            m.demand[i, angle] = wanted
    return angles


@kernel
def write_excess(m, component, angles):
    """Modify `m.vertex_excess`: of each vertex of a component, with the jobs turned by `turned_by`."""
    total = m.total[:angles]
    for vertex in range(m.n_vertices):
        if component_of(m, vertex) != component:
            continue
        total[:] = 0.0
        for i in range(m.n_placed):
            if flows_on(m, i, vertex) > 0.0:
                add(total, m.demand[i], flows_on(m, i, vertex), m.turned_by[i])
        m.vertex_excess[vertex] = excess_above(total, m.demand[0], 0.0, 0, m.capacity[m.vertex_link[vertex]])


@kernel
def write_rotations(m, turned, among, steps, angles):
    """Modify `m.excess`: at each rotation of a job, the mean excess over its vertices; only jobs before `among` count.

    `turned`: the job, by its place.
    """
    total, excess = m.total[:angles], m.excess[:steps]
    excess[:] = 0.0
    most = angles // steps
    vertices = 0
    for vertex in range(m.n_vertices):
        rate = flows_on(m, turned, vertex)
        if rate == 0.0:
            continue
        vertices += 1
        total[:] = 0.0
        for i in range(among):
            if i != turned and flows_on(m, i, vertex) > 0.0:
                add(total, m.demand[i], flows_on(m, i, vertex), m.turned_by[i])
        for step in range(steps):
            angle = step_angle(m, turned, step, most)
            excess[step] += excess_above(total, m.demand[turned], rate, angle, m.capacity[m.vertex_link[vertex]])
    if vertices > 0:
        for step in range(steps):
            excess[step] /= vertices


@kernel
def estimate(m, component):
    """Modify `m`: the excess of each vertex to expect.

    `vertex_excess`: at any rotations. `vertex_good`: with each job in turn at its rotation of least excess.
    """
    if not is_crowded(m, component):
        for vertex in range(m.n_vertices):
            if component_of(m, vertex) == component:
                m.vertex_excess[vertex] = m.vertex_good[vertex] = 0.0
        return
    angles = write_demand(m, component, COARSE)
    _turn_in_order(m, component, angles)
    write_excess(m, component, angles)
    for vertex in range(m.n_vertices):
        if component_of(m, vertex) == component:
            m.vertex_good[vertex] = m.vertex_excess[vertex]
            m.gathered[vertex] = 0.0
    for draw in range(DRAWS):
        number = 0
        for i in range(m.n_placed):
            if m.component[i] == component:
                turn = (draw * GOLDEN * (number + 1) * (number + 1) + number / 7) % 1.0
                m.turned_by[i] = int(turn * angles)
                number += 1
        write_excess(m, component, angles)
        for vertex in range(m.n_vertices):
            if component_of(m, vertex) == component:
                m.gathered[vertex] += m.vertex_excess[vertex]
    for vertex in range(m.n_vertices):
        if component_of(m, vertex) == component:
            m.vertex_excess[vertex] = m.gathered[vertex] / DRAWS


@kernel
def _turn_in_order(m, component, angles):
    first = True
    for i in range(m.n_placed):
        if m.component[i] != component:
            continue
        m.turned_by[i] = 0
        if not first:
            write_rotations(m, i, i, COARSE, angles)
            best = 0
            for step in range(1, COARSE):
                if m.excess[step] < m.excess[best]:
                    best = step
            m.turned_by[i] = step_angle(m, i, best, angles // COARSE)
        first = False


@kernel
def is_crowded_there(m, vertex):
    """Whether the jobs of a vertex can want more than there is."""
    wanted = 0.0
    for i in range(m.n_placed):
        wanted += flows_on(m, i, vertex) * m.peak[i] if flows_on(m, i, vertex) > 0.0 else 0.0
    return wanted > m.capacity[m.vertex_link[vertex]]


@kernel
def is_crowded(m, component):
    """Whether any vertex of a component is."""
    crowded = 0
    for vertex in range(m.n_vertices):
        crowded += int(component_of(m, vertex) == component and is_crowded_there(m, vertex))
    return crowded > 0


@kernel
def turn_now(s, m, component, angles):
    """Modify `m.turned_by`: of the jobs of a component, by shifts in this period, else by begins of iterations."""
    for i in range(m.n_placed):
        if m.component[i] != component:
            continue
        job, around_s = m.job[i], period_s(m, i)
        begins_s = s.round_began_s[job] if is_on_network(s, job) else s.now_s
        if has_shift(s, job) and abs(shift_period_s(s, job) - around_s) < NEAR_S:
            begins_s = shift_s(s, job)
        turn = begins_s % around_s / m.perimeter_s[i]
        m.turned_by[i] = int(nearest(turn * angles)) % angles


@kernel
def is_on_network(s, job):
    """Whether a job sends, or is about to."""
    return s.stays[job] != 0 and s.is_leaver[job] != GONE


@kernel
def has_shift(s, job):
    """Whether a running job has a time-shift; one that starts at this instant may be about to get it."""
    return s.asked_shift_s[job] >= 0.0 or (is_on_network(s, job) and s.shift_s[job] >= 0.0)


@kernel
def shift_s(s, job):
    """The time-shift of a job that has one, seconds."""
    return s.asked_shift_s[job] if s.asked_shift_s[job] >= 0.0 else s.shift_s[job]


@kernel
def shift_period_s(s, job):
    """And its period, seconds."""
    return s.asked_period_s[job] if s.asked_shift_s[job] >= 0.0 else s.period_s[job]
