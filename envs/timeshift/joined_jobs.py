"""Where jobs meet: the links that they share, and the components that these join; compiled.

As policies/cassini/compatibility.py has them, to the bit.
"""

from ...simulator.base.codes import FREE
from ...simulator.compiler.jit import kernel
from ...simulator.numerics.instructions import bits_of
from ...simulator.numerics.random import MASK32, random_word
from ...simulator.record.feature_groups import gpu_of
from .unified_circles import NONE, component_of, flows_on, unify


@kernel
def place_job(m, i, job, places, row):
    """Modify `m`: the i-th job is placed as a row of `places` says; NONE: it sends nothing."""
    m.job[i] = job
    m.n_links[i] = 0
    m.n_phases[i] = 0
    if row == NONE:
        for link in range(m.capacity.size):
            m.flows[i, link] = 0.0
        return
    place = places[row]
    m.iteration_s[i], m.up_s[i], m.bytes[i], m.peak[i] = place.iteration_s, place.up_s, place.bytes, place.peak
    m.n_phases[i], m.n_links[i] = place.n_phases, place.n_links
    for phase in range(place.n_phases):
        m.start_s[i, phase], m.duration_s[i, phase] = place.start_s[phase], place.duration_s[phase]
        m.rate[i, phase] = place.rate[phase]
    for link in range(place.flows.size):
        m.flows[i, link] = place.flows[link]


@kernel
def meet(m):
    """Modify `m`: vertices, components and circles of the jobs that are placed."""
    _find_vertices(m)
    _join(m)
    for i in range(m.n_placed):
        m.perimeter_s[i], m.iterations[i] = m.iteration_s[i], 1
    for component in range(m.n_components):
        unify(m, component)


@kernel
def _find_vertices(m):
    m.n_shared = 0
    m.n_vertices = 0
    for i in range(m.n_placed):
        m.shared_links[i] = 0
    for link in range(m.capacity.size):
        users = 0
        for i in range(m.n_placed):
            users += int(m.flows[i, link] > 0.0)
        if users < 2:
            continue
        m.n_shared += 1
        load = 0.0
        for i in range(m.n_placed):
            if m.flows[i, link] > 0.0:
                m.shared_links[i] += 1
                load += m.flows[i, link] * m.peak[i]
        load /= m.capacity[link]
        vertex = _vertex_like(m, link)
        if vertex == m.n_vertices:
            m.n_vertices += 1
        elif load <= m.vertex_load[vertex]:
            continue
        m.vertex_link[vertex], m.vertex_load[vertex] = link, load


@kernel
def _vertex_like(m, link):
    """The vertex with the same jobs; a new one if there is none."""
    for vertex in range(m.n_vertices):
        differ = 0
        for i in range(m.n_placed):
            differ += int((m.flows[i, link] > 0.0) != (m.flows[i, m.vertex_link[vertex]] > 0.0))
        if differ == 0:
            return vertex
    return m.n_vertices


@kernel
def _join(m):
    """Modify `m`: the component of each job, by their first jobs."""
    for i in range(m.n_placed):
        m.component[i] = i
    is_joined = False
    while not is_joined:
        is_joined = True
        for vertex in range(m.n_vertices):
            first = m.n_placed
            for i in range(m.n_placed):
                if flows_on(m, i, vertex) > 0.0:
                    first = min(first, m.component[i])
            for i in range(m.n_placed):
                if flows_on(m, i, vertex) > 0.0 and m.component[i] != first:
                    m.component[i] = first
                    is_joined = False
    m.n_components = 0
    for i in range(m.n_placed):
        if m.shared_links[i] == 0:
            m.component[i] = NONE
        elif m.component[i] == i:
            m.component[i] = m.n_components
            m.n_components += 1
        else:
            m.component[i] = m.component[m.component[i]]


@kernel
def sign(s, m):
    """Modify `m.signature`: of each component, from its jobs with their GPUs, flows and capacities."""
    for component in range(m.n_components):
        m.signature[component, 0], m.signature[component, 1] = 0, 1
        for i in range(m.n_placed):
            if m.component[i] == component:
                _note(m, component, m.job[i])
                berth = s.first_gpu[m.job[i]]
                while berth != FREE:
                    _note(m, component, gpu_of(s, berth))
                    berth = s.gpu_next[berth]
        for vertex in range(m.n_vertices):
            if component_of(m, vertex) == component:
                _note(m, component, bits_of(m.capacity[m.vertex_link[vertex]]))
                for i in range(m.n_placed):
                    if m.component[i] == component:
                        _note(m, component, bits_of(flows_on(m, i, vertex)))


@kernel
def _note(m, component, value):
    for half in range(2):
        m.signature[component, half] = random_word(
            m.signature[component, half] + (half << 32), value & MASK32, value >> 32
        )


@kernel
def is_known(m, component):
    """Whether a component was there, as it is now, when the last instant ended."""
    for known in range(m.n_known):
        if m.known[known, 0] == m.signature[component, 0] and m.known[known, 1] == m.signature[component, 1]:
            return True
    return False


@kernel
def know(m):
    """Modify `m`: the instant ends with these components."""
    m.n_known = m.n_components
    for component in range(m.n_components):
        m.known[component, 0], m.known[component, 1] = m.signature[component, 0], m.signature[component, 1]


@kernel
def place_of(m, job):
    """The place of a running job in `m.job`; NONE: it has none."""
    for i in range(m.n_placed):
        if m.job[i] == job:
            return i
    return NONE
