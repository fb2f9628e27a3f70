"""The placements that a decision point offers: their features, and how they are carried out; compiled."""

from ...policies.passes.starts import start
from ...simulator.base.codes import FREE, HELD, MIGRATE, PREEMPT, RUNNING, START, WAITING
from ...simulator.compiler.jit import entry, kernel
from ...simulator.lifecycle import lifecycle
from ...simulator.numerics.float_sums import sum_as_numpy
from ...simulator.record.feature_groups import gpu_of, has_berths
from ...simulator.sharing.berths import largest_sub_batch
from ..window import scaled_count
from .columns import CANDIDATES
from .joined_jobs import meet, place_job, sign
from .unified_circles import component_of, estimate, flows_on, is_crowded_there

STARTED, MOVED, STOPPED, USED, NEW = range(5)  # numbers of an offer: jobs, GPUs in use then, GPUs of jobs that start
NUMBERS = 5
MOST_LOOPS = 8.0  # cycles of an affinity graph that read 0.5


@entry
def place_all(states, row, windows, solvers, places, jobs, rows):
    """Modify the record in `solvers`: where the running jobs meet, as they are placed now.

    Args:
        places: rows of `timeshift_record.place_dtype`.
        jobs, rows: int64 (n,), the running jobs, ascending, and where their places are; NONE: it sends nothing.
    """
    s, m = states[row], solvers[0]
    _place_all(m, places, jobs, rows, 0, jobs.size)
    sign(s, m)
    m.n_used = 0
    for gpu in range(s.n_gpus):
        m.n_used += int(s.gpu_load[gpu] > 0 if has_berths(s) else s.gpu_job[gpu] >= 0)


@entry
def describe_offers(states, row, windows, solvers, places, jobs, rows, ends, numbers, plans):
    """Modify the record in `solvers`: the features of its offers.

    Args:
        places, jobs, rows: as of `place_all`, of the jobs that run once an offer is carried out, offer after offer.
        ends: int64 (offers,), where they end.
        numbers: int64 (offers, NUMBERS), see STARTED and so on.
        plans: how many offers there may be.
    """
    s, m = states[row], solvers[0]
    first = 0
    for offer in range(ends.size):
        _place_all(m, places, jobs, rows, first, ends[offer])
        shown = m.offer_features[offer]
        shown[:] = 0.0
        shown[CANDIDATES.rank] = offer / plans
        _describe(s, m, numbers[offer], shown)
        first = ends[offer]


@kernel
def _place_all(m, places, jobs, rows, first, end):
    m.n_placed = end - first
    for i in range(first, end):
        place_job(m, i - first, jobs[i], places, rows[i])
    meet(m)


@kernel
def _describe(s, m, numbers, shown):
    started, stopped = numbers[STARTED], numbers[STOPPED]
    shown[CANDIDATES.started] = scaled_count(started)
    shown[CANDIDATES.moved] = scaled_count(numbers[MOVED])
    shown[CANDIDATES.stopped] = scaled_count(stopped)
    shown[CANDIDATES.used_after] = numbers[USED] / s.n_gpus
    shown[CANDIDATES.started_gpus] = min(1.0, numbers[NEW] / s.n_gpus)
    shown[CANDIDATES.waiting_after] = scaled_count(max(0, s.waiting - started + stopped))
    describe_meetings(s, m, shown)


@kernel
def describe_meetings(s, m, shown):
    """Modify `shown`, the row of a candidate: where jobs meet as they are placed in `m`."""
    if m.n_components == 0:
        return
    running = max(1, m.n_placed)
    contending, largest, cycles, crowded = 0, 0, 0, 0
    load, worst_free, worst_good = 0.0, 0.0, 0.0
    for component in range(m.n_components):
        estimate(m, component)
        jobs, pairs = 0, 0
        for i in range(m.n_placed):
            jobs += int(m.component[i] == component)
        cycles += 1 - jobs
        contending += jobs
        largest = max(largest, jobs)
        for vertex in range(m.n_vertices):
            if component_of(m, vertex) != component:
                continue
            cycles -= 1
            crowded += int(is_crowded_there(m, vertex))
            load = max(load, _mean_load(m, vertex))
            for i in range(m.n_placed):
                pairs += int(flows_on(m, i, vertex) > 0.0)
        cycles += pairs
        worst_free += _worst(m, component, m.vertex_excess)
        worst_good += _worst(m, component, m.vertex_good)
    shown[CANDIDATES.contending] = min(1.0, contending / running)
    shown[CANDIDATES.shared_links] = max(1, m.n_shared) / max(1, s.n_links)
    shown[CANDIDATES.crowded_links] = crowded / m.n_vertices
    shown[CANDIDATES.joined_jobs] = min(1.0, largest / running)
    shown[CANDIDATES.load] = load / (1.0 + load)
    shown[CANDIDATES.excess_any] = min(1.0, _mean(m, m.vertex_excess))
    shown[CANDIDATES.excess_good] = min(1.0, _mean(m, m.vertex_good))
    shown[CANDIDATES.worst_any] = worst_free / (1.0 + worst_free)
    shown[CANDIDATES.worst_good] = worst_good / (1.0 + worst_good)
    shown[CANDIDATES.cycles] = cycles / (cycles + MOST_LOOPS)


@kernel
def _mean_load(m, vertex):
    """What jobs offer on average, as a fraction of the capacity."""
    load = 0.0
    for i in range(m.n_placed):
        if flows_on(m, i, vertex) > 0.0:
            load += flows_on(m, i, vertex) * (m.bytes[i] / m.iteration_s[i])
    return load / m.capacity[m.vertex_link[vertex]]


@kernel
def _mean(m, excess):
    """The mean over all vertices, component by component."""
    found = 0
    for component in range(m.n_components):
        for vertex in range(m.n_vertices):
            if component_of(m, vertex) == component:
                m.gathered[found] = excess[vertex]
                found += 1
    return sum_as_numpy(m.gathered[:found]) / found


@kernel
def _worst(m, component, excess):
    """Sum over the jobs of a component of the excess on their worst vertex."""
    jobs = 0
    for i in range(m.n_placed):
        if m.component[i] != component:
            continue
        m.worst[jobs] = 0.0
        for vertex in range(m.n_vertices):
            if flows_on(m, i, vertex) > 0.0:
                m.worst[jobs] = max(m.worst[jobs], excess[vertex])
        jobs += 1
    return sum_as_numpy(m.worst[:jobs])


@kernel
def carry_out_offer(s, m, offer):
    """Modify `s`: carry out the decisions of an offer, up to the first that the simulator has to check.

    Modify `m.left_to_python`: which that is.
    """
    for decision in range(m.offer_first[offer], m.offer_first[offer + 1]):
        if not _carry_out(s, m, decision):
            m.left_to_python = decision
            return


@kernel
def _carry_out(s, m, decision):
    job, kind = m.decision_job[decision], m.decision_kind[decision]
    if kind == PREEMPT and s.status[job] == RUNNING and not _is_leased(s, job):
        lifecycle.preempt(s, job)
        return True
    if m.decision_sub_batch[decision] >= 0 or m.decision_batch[decision] >= 0 or not _takes(s, m, decision):
        return False
    if kind == START and (s.status[job] == WAITING or s.status[job] == HELD):
        if has_berths(s):
            sub_batch = largest_sub_batch(s, job)
            if sub_batch == 0:
                return False
            s.sub_batch[job] = sub_batch
        start(s, job)
        return True
    if kind == MIGRATE and s.status[job] == RUNNING and not _is_leased(s, job):
        lifecycle.migrate(s, job)
        return True
    return False


@kernel
def _is_leased(s, job):
    began_s = min(s.started_s[job], s.begun_s[job])
    return s.lease_s > 0.0 and began_s < s.now_s and s.now_s < s.lease_end_s[job]


@kernel
def _takes(s, m, decision):
    """Modify `s.gang`: the GPUs of a decision; whether they are free, or the job's, and as many as it has to have."""
    first, end = m.decision_first[decision], m.decision_first[decision + 1]
    job = m.decision_job[decision]
    is_start = m.decision_kind[decision] == START
    if end - first != s.gpus[job] or s.closing_machines > 0 or s.auctions > 0:
        return False
    stays = 0
    for i in range(first, end):
        gpu = m.decision_gpu[i]
        if gpu < 0 or gpu >= s.n_gpus or (i > first and gpu <= m.decision_gpu[i - 1]):
            return False
        is_own = not is_start and _holds(s, job, gpu)
        if not is_own and (s.gpu_job[gpu] != FREE or (has_berths(s) and s.gpu_load[gpu] > 0)):
            return False
        stays += int(is_own)
        s.gang[i - first] = gpu
    s.gang_size = end - first
    return stays < end - first


@kernel
def _holds(s, job, gpu):
    berth = s.first_gpu[job]
    while berth != FREE:
        if gpu_of(s, berth) == gpu:
            return True
        berth = s.gpu_next[berth]
    return False
