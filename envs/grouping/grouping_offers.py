"""Features of candidates' effects by measured times (paper harmony, Eq. 1).

Memory columns are the group's needs; garbage collection and disks are not predicted.
"""

from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.numerics.fast_log import log_from_one
from ..window import scaled_time
from .action_parts import default_group_machines, default_opened_machines
from .columns import OFFER
from .sums import alone_of, is_measured, knows, round_on, round_swapped, round_with, round_without, use_of, weight_of

LOG_HOUR = 8.188966863648876  # log(1 + 3600)
FEW = 4.0  # members of a group that read 0.5

# Scratch of a window: gains of the considered job's group without it; then seconds of its iteration alone, the weight
# of its speed, and features of it.
OWN_SPEEDS, OWN_USE, OWN_VALUE, OWN_ALONE, OWN_WEIGHT, OWN_LEFT, OWN_SPEED, OWN_LOADING = range(8)


@kernel
def share_of(value):
    """A number >= 0 as a feature: 1 reads 0.5."""
    return value / (1.0 + value)


@kernel
def signed(value):
    """A change as a feature: none reads 0.5."""
    return 0.5 + 0.5 * value / (1.0 + abs(value))


@kernel
def short_time(seconds):
    """Seconds up to an hour, as a feature."""
    return min(1.0, log_from_one(1.0 + seconds) / LOG_HOUR)


@kernel
def describe_own(w, offer):
    """Modify `offer`: the columns of the considered job."""
    offer[OFFER.time_left] = w.own[OWN_LEFT]
    offer[OFFER.speed_now] = w.own[OWN_SPEED]


@kernel
def speed_now(s, w, job):
    """A job's speed in its future group; 0: in none, or unknown."""
    group = s.goal[job]
    if group < 0 or not knows(w, group) or w.round_s[group] == 0.0:
        return 0.0
    return alone_of(s, job) / w.round_s[group]


@kernel
def consider(s, w, job):
    """Modify `w.own`: a job, and the gain of its future group without it; False: that is unknown."""
    own = w.own
    left = isolated_left_s(s, job)
    own[OWN_SPEEDS] = own[OWN_USE] = own[OWN_VALUE] = 0.0
    own[OWN_ALONE] = alone_of(s, job)
    own[OWN_WEIGHT] = weight_of(s, left)
    own[OWN_LEFT] = scaled_time(w, left)
    own[OWN_SPEED] = share_of(speed_now(s, w, job))
    own[OWN_LOADING] = scaled_time(w, s.move_s)
    group = s.goal[job]
    if group < 0:
        return True
    if not knows(w, group):
        return False
    own[OWN_SPEEDS], own[OWN_USE], own[OWN_VALUE] = -w.speed_gain[group], -w.use_gain[group], -w.value_gain[group]
    if s.n_goal[group] > 1:
        round_s = round_without(s, w, group, job)
        comp, comm = w.comp_sum[group] - s.seen_comp[job], w.comm_sum[group] - s.seen_comm[job]
        alone_s = own[OWN_ALONE]
        own[OWN_SPEEDS] += (w.speed_sum[group] - alone_s) / round_s
        own[OWN_USE] += use_of(s, comp, comm, s.group_machines[group], round_s)
        own[OWN_VALUE] += (w.value_sum[group] - alone_s * own[OWN_WEIGHT]) / round_s
    return True


@kernel
def describe_gain(w, speeds, use, value, offer):
    """Modify `offer`: gains where the considered job leaves, and these where it goes."""
    offer[OFFER.speeds] = signed(w.own[OWN_SPEEDS] + speeds)
    offer[OFFER.use] = signed(w.own[OWN_USE] + use)
    offer[OFFER.value] = signed(w.own[OWN_VALUE] + value)


@kernel
def describe_nothing(offer):
    """Modify `offer`: no known change."""
    offer[OFFER.speeds] = offer[OFFER.use] = offer[OFFER.value] = 0.5


@kernel
def _describe_group(s, comp, comm, machines, round_s, inputs, models, jobs, offer):
    """Modify `offer`: a group of such sums."""
    memory = machines * s.ram_bytes / s.expansion
    if round_s > 0.0:
        offer[OFFER.round] = short_time(round_s)
        offer[OFFER.cpu] = min(1.0, comp / (machines * round_s))
        offer[OFFER.net] = min(1.0, comm / round_s)
    offer[OFFER.machines] = machines / s.n_machines
    offer[OFFER.memory_needed] = (inputs + models) / (inputs + models + memory)
    offer[OFFER.memory_spilled] = min(1.0, models / memory)
    offer[OFFER.members] = jobs / (jobs + FEW)


@kernel
def describe_open(s, w, job, known, offer):
    """Modify `offer`: the considered job in a group of its own, of the balanced number of machines."""
    machines = default_opened_machines(s, w, job)
    offer[OFFER.loading] = w.own[OWN_LOADING]
    describe_own(w, offer)
    if not (known and is_measured(s, job)):
        describe_nothing(offer)
        _describe_group(s, 0.0, 0.0, machines, 0.0, s.input_bytes[job], s.model_bytes[job], 1, offer)
        return
    comp, comm = s.seen_comp[job], s.seen_comm[job]
    round_s = comp / machines + comm
    speed = w.own[OWN_ALONE] / round_s
    offer[OFFER.speed] = share_of(speed)
    describe_gain(w, speed, use_of(s, comp, comm, machines, round_s), speed * w.own[OWN_WEIGHT], offer)
    _describe_group(s, comp, comm, machines, round_s, s.input_bytes[job], s.model_bytes[job], 1, offer)


@kernel
def describe_join(s, w, job, group, known, offer):
    """Modify `offer`: the considered job in another group."""
    offer[OFFER.loading] = w.own[OWN_LOADING]
    describe_own(w, offer)
    inputs, models = s.input_bytes[job], s.model_bytes[job]
    if knows(w, group):
        inputs += w.input_sum[group]
        models += w.model_sum[group]
    machines, jobs = s.group_machines[group], s.n_goal[group] + 1
    if not (known and is_measured(s, job) and knows(w, group)):
        describe_nothing(offer)
        _describe_group(s, 0.0, 0.0, machines, 0.0, inputs, models, jobs, offer)
        return
    comp, comm = w.comp_sum[group] + s.seen_comp[job], w.comm_sum[group] + s.seen_comm[job]
    round_s = round_with(s, w, group, job)
    alone_s = w.own[OWN_ALONE]
    each = 1.0 / round_s
    offer[OFFER.speed] = alone_s / (alone_s + round_s)
    speeds = (w.speed_sum[group] + alone_s) * each - w.speed_gain[group]
    use = use_of(s, comp, comm, machines, round_s) - w.use_gain[group]
    value = (w.value_sum[group] + alone_s * w.own[OWN_WEIGHT]) * each - w.value_gain[group]
    describe_gain(w, speeds, use, value, offer)
    _describe_group(s, comp, comm, machines, round_s, inputs, models, jobs, offer)


@kernel
def describe_swap(s, w, job, other, offer):
    """Modify `offer`: another job in the place of the considered one, which waits. The time left is the other's."""
    group = s.goal[job]
    left = isolated_left_s(s, other)
    offer[OFFER.loading] = w.own[OWN_LOADING]
    offer[OFFER.time_left] = scaled_time(w, left)
    machines, jobs = s.group_machines[group], s.n_goal[group]
    if not (is_measured(s, other) and knows(w, group)):
        describe_nothing(offer)
        _describe_group(s, 0.0, 0.0, machines, 0.0, 0.0, 0.0, jobs, offer)
        return
    comp = w.comp_sum[group] - s.seen_comp[job] + s.seen_comp[other]
    comm = w.comm_sum[group] - s.seen_comm[job] + s.seen_comm[other]
    round_s = round_swapped(s, w, group, job, other)
    own_s, alone_s = w.own[OWN_ALONE], alone_of(s, other)
    value = w.value_sum[group] - own_s * w.own[OWN_WEIGHT] + alone_s * weight_of(s, left)
    offer[OFFER.speed] = share_of(alone_s / round_s)
    offer[OFFER.speeds] = signed((w.speed_sum[group] - own_s + alone_s) / round_s - w.speed_gain[group])
    offer[OFFER.use] = signed(use_of(s, comp, comm, machines, round_s) - w.use_gain[group])
    offer[OFFER.value] = signed(value / round_s - w.value_gain[group])
    inputs = w.input_sum[group] - s.input_bytes[job] + s.input_bytes[other]
    models = w.model_sum[group] - s.model_bytes[job] + s.model_bytes[other]
    _describe_group(s, comp, comm, machines, round_s, inputs, models, jobs, offer)


@kernel
def describe_present(s, w, group, offer):
    """Modify `offer`: a group as it is."""
    describe_nothing(offer)
    if knows(w, group):
        comp, comm, round_s = w.comp_sum[group], w.comm_sum[group], w.round_s[group]
        machines, jobs = s.group_machines[group], s.n_goal[group]
        _describe_group(s, comp, comm, machines, round_s, w.input_sum[group], w.model_sum[group], jobs, offer)


@kernel
def describe_size(s, w, group, offer):
    """Modify `offer`: a group on its balanced number of machines, or the nearest possible one."""
    machines = default_group_machines(s, w, group)
    present = s.group_machines[group]
    moved = abs(machines - present) / max(machines, present)
    offer[OFFER.loading] = scaled_time(w, s.move_s * moved * s.n_goal[group])
    describe_nothing(offer)
    if not knows(w, group):
        return
    comp, comm = w.comp_sum[group], w.comm_sum[group]
    round_s = 0.0
    if w.round_s[group] > 0.0:
        round_s = round_on(s, w, group, machines)
        offer[OFFER.speeds] = signed(w.speed_sum[group] / round_s - w.speed_gain[group])
        offer[OFFER.use] = signed(use_of(s, comp, comm, machines, round_s) - w.use_gain[group])
        offer[OFFER.value] = signed(w.value_sum[group] / round_s - w.value_gain[group])
    _describe_group(s, comp, comm, machines, round_s, w.input_sum[group], w.model_sum[group], s.n_goal[group], offer)
