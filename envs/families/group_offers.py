"""Features of candidates' effects on groups, by measured times (paper harmony, Eq. 1).

Memory columns are the group's needs; garbage collection and disks are not predicted.
"""

from collections import namedtuple

from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.numerics.fast_log import log_from_one
from ..window import scaled_time
from .group_sums import alone_of, knows, longest_without, round_of, use_of, weight_of

LOG_HOUR = 8.188966863648876  # log(1 + 3600)
FEW = 4.0  # members of a group that read 0.5

# Scratch of a window, of the considered job: gains of its group without it, and whether they are known; then seconds of
# its iteration alone, the weight of its speed, and features of it.
Own = namedtuple("Own", "speeds use value is_known alone weight left speed loading")
OWN = Own(*range(len(Own._fields)))


@kernel
def share_of(value):
    """A number >= 0 as a feature: 1 reads 0.5."""
    return value / (1.0 + value)


@kernel
def _signed(value):
    """A change as a feature: none reads 0.5."""
    return 0.5 + 0.5 * value / (1.0 + abs(value))


@kernel
def short_time(seconds):
    """Seconds up to an hour, as a feature."""
    return min(1.0, log_from_one(1.0 + seconds) / LOG_HOUR)


@kernel
def speed_now(s, w, job):
    """A job's speed in its future group; 0: in none, or unknown."""
    group = s.goal[job]
    if group < 0 or not knows(w, group) or w.round_s[group] == 0.0:
        return 0.0
    return alone_of(s, job) / w.round_s[group]


@kernel
def consider(s, w, job):
    """Modify `w.own`: a job, and the gain of its future group without it."""
    own = w.own
    left = isolated_left_s(s, job)
    own[OWN.speeds] = own[OWN.use] = own[OWN.value] = 0.0
    own[OWN.alone] = alone_of(s, job)
    own[OWN.weight] = weight_of(s, left)
    own[OWN.left] = scaled_time(w, left)
    own[OWN.speed] = share_of(speed_now(s, w, job))
    own[OWN.loading] = scaled_time(w, s.move_s)
    group = s.goal[job]
    own[OWN.is_known] = group < 0 or knows(w, group)
    if group < 0 or not knows(w, group):
        return
    own[OWN.speeds], own[OWN.use], own[OWN.value] = -w.speed_gain[group], -w.use_gain[group], -w.value_gain[group]
    if s.n_goal[group] > 1:
        comp, comm = w.comp_sum[group] - s.seen_comp[job], w.comm_sum[group] - s.seen_comm[job]
        round_s = round_of(comp, comm, s.group_machines[group], longest_without(w, group, job))
        alone_s = own[OWN.alone]
        own[OWN.speeds] += (w.speed_sum[group] - alone_s) / round_s
        own[OWN.use] += use_of(s, comp, comm, s.group_machines[group], round_s)
        own[OWN.value] += (w.value_sum[group] - alone_s * own[OWN.weight]) / round_s


@kernel
def describe_own(w, offer, to):
    """Modify `offer`: the columns of the considered job."""
    offer[to.time_left] = w.own[OWN.left]
    offer[to.speed_now] = w.own[OWN.speed]


@kernel
def describe_change(offer, to, speeds, use, value):
    """Modify `offer`: changes of all three gains."""
    offer[to.speeds] = _signed(speeds)
    offer[to.use] = _signed(use)
    offer[to.value] = _signed(value)


@kernel
def describe_gain(w, offer, to, speeds, use, value):
    """Modify `offer`: gains where the considered job leaves, and these where it goes."""
    describe_change(offer, to, w.own[OWN.speeds] + speeds, w.own[OWN.use] + use, w.own[OWN.value] + value)


@kernel
def describe_group(s, offer, to, comp, comm, machines, round_s, inputs, models, jobs):
    """Modify `offer`: a group of such sums; `round_s`: 0: unknown."""
    memory = machines * s.ram_bytes / s.expansion
    if round_s > 0.0:
        offer[to.round] = short_time(round_s)
        offer[to.cpu] = min(1.0, comp / (machines * round_s))
        offer[to.net] = min(1.0, comm / round_s)
    offer[to.machines] = machines / s.n_machines
    offer[to.memory_needed] = (inputs + models) / (inputs + models + memory)
    offer[to.memory_spilled] = min(1.0, models / memory)
    offer[to.members] = jobs / (jobs + FEW)
