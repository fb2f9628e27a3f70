"""Making room: running jobs that a waiting job may stop or move to start at the best tier that holds it.

It searches every area of that tier: the machines, if one is large enough; else the racks; else the whole cluster. A job
that finds an area with room takes the free GPUs or waits; a job that lost its GPUs at this instant takes none of
others. A running job that neither started, moved nor stopped at this instant, and has no running lease,

* can be moved, if one machine outside the area has free GPUs for all of it; the cost is that of its new start;
* else can be stopped, if its weighed time left is more than `theta` times that of the waiting job plus the cost of its
  new start; the cost is that plus the time of the waiting job.

Times left are isolated seconds, of the waiting job at the tier of the area (plus its own new start, if it ran before);
weights are GPUs to the power of `exponent`. The cheapest per GPU freed in the area come first, ties by job index, until
there are enough. A mover claims the fullest machine outside that has room after earlier claims; without one it is
stopped, if allowed, else left alone. Then, from last to first, victims that are not needed are spared. The area with
the least sum of costs wins, ties by index. Comparisons ignore rounding. The survey of possible victims is cached per
state and tier.
"""

import math

from ...simulator.base.tiers import MACHINE, NETWORK, RACK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import isolated_left_s
from ...simulator.lifecycle.lifecycle import migrate, preempt
from ...simulator.numerics.rounding import rounded
from ...simulator.record.feature_groups import gpu_of, has_berths
from ...simulator.rules.orders import is_leased, restore_cost_s
from ...simulator.running.placers import find_at, find_in_machine
from ..passes.eviction import pop_pick, push_pick
from ..passes.starts import start

NONE = -1
SLACK = 1e-6  # relative margin of `too_little`, above rounding


@kernel
def starts_for_room(s, job):
    """Modify `s`: True if the rule makes room for a waiting job, which then starts."""
    if has_berths(s):  # refused; nothing below is compiled there
        return False
    if s.preempts == 0 or not find_room(s, job):
        return False
    make_room(s, job)
    return True


@kernel
def find_room(s, job):
    """Modify the plan and the survey of `s` only: True if a waiting job could start if others were stopped or moved.

    Then `victim[:victims]` are these, in order; `victim_moves` is 1 for a move; `victims_stopped` and `victims_moved`
    count them; `victims_left_s` is the sum of their isolated run times left, `room_cost_s` that of the costs, seconds;
    `room_tier` and `room_area` are the area.
    """
    s.victims = 0
    if s.running == 0 or s.stopped_s[job] == s.now_s:
        return False
    need = s.gpus[job]
    tier = _tier_for(s, need)
    _survey(s, tier)
    if _has_room(s, tier, need):
        return False
    isolated_s = isolated_left_s(s, job)
    factor = s.tier_factor[s.profile[job], tier]
    s.mine_s = isolated_s * (s.compute_iteration_s[job] * factor / s.base_iteration_s[job])
    if s.starts[job] > 0:
        s.mine_s += restore_cost_s(s, job)
    s.mine_weighed = s.theta * s.mine_s * s.weight[job]
    area = _cheapest(s, tier, need)
    if area < 0:
        return False
    s.room_tier = tier
    s.room_area = area
    s.victims_moved = 0
    s.victims_left_s = 0.0
    for i in range(s.victims):
        s.victims_moved += s.victim_moves[i]
        s.victims_left_s += isolated_left_s(s, s.victim[i])
    s.victims_stopped = s.victims - s.victims_moved
    return True


@kernel
def make_room(s, job):
    """Modify `s`: carry out the plan of `find_room`: all stops, all moves, and `job` starts.

    A move goes to the fullest machine outside the area that has room then, which may differ from the claimed one. A
    mover without room, as with gangs of odd sizes, is stopped.
    """
    for i in range(s.victims):
        if s.victim_moves[i] == 0:
            preempt(s, s.victim[i])
    for i in range(s.victims):
        if s.victim_moves[i]:
            if _find_outside(s, s.gpus[s.victim[i]]):
                migrate(s, s.victim[i])
            else:
                preempt(s, s.victim[i])
    find_at(s, s.gpus[job], s.room_tier, s.placer)
    start(s, job)


@kernel
def _tier_for(s, need):
    if need <= s.largest_machine:
        return MACHINE
    return RACK if need <= s.largest_rack else NETWORK


@kernel
def _areas(s, tier):
    if tier == MACHINE:
        return s.n_machines
    return s.n_racks if tier == RACK else 1


@kernel
def _area_of(s, tier, machine):
    if tier == MACHINE:
        return machine
    return s.machine_rack[machine] if tier == RACK else 0


@kernel
def _free_in(s, tier, area):
    if tier == MACHINE:
        return s.machine_free[area]
    return s.rack_free[area] if tier == RACK else s.free_gpus


@kernel
def _survey(s, tier):
    """Modify the survey of `s`, if time, GPUs or ends have changed: possible victims by area, machines by free GPUs."""
    row = tier - MACHINE
    version = s.events + s.changes + 1  # these only increase
    if s.survey_version[row] == version and s.survey_s[row] == s.now_s:
        return
    s.survey_version[row] = version
    s.survey_s[row] = s.now_s
    s.survey_free[: s.largest_machine + 1] = 0
    for machine in range(s.n_machines):
        s.survey_free[s.machine_free[machine]] += 1
    for area in range(_areas(s, tier)):
        s.survey_head[row, area] = NONE
        s.survey_gpus[row, area] = 0
        s.survey_gain[row, area] = -math.inf
    s.survey_most[row] = -math.inf
    items = 0
    for i in range(s.running):
        job = s.runner[i]
        if s.started_s[job] == s.now_s or s.left_s[job] == s.now_s or is_leased(s, job):
            continue
        berth = s.first_gpu[job]
        if s.tier[job] <= tier:
            area = _area_of(s, tier, s.gpu_machine[gpu_of(s, berth)])
            items = _add_item(s, row, items, area, job, s.gpus[job])
            continue
        while berth >= 0:
            area = _area_of(s, tier, s.gpu_machine[gpu_of(s, berth)])
            items = _add_item(s, row, items, area, job, 1)
            berth = s.gpu_next[berth]


@kernel
def _add_item(s, row, items, area, job, gpus):
    """Modify the survey of `s`: `job` holds `gpus` more in an area. Returns the number of items."""
    s.survey_gpus[row, area] += gpus
    head = s.survey_head[row, area]
    if head >= 0 and s.survey_job[row, head] == job:  # jobs come one after the other
        s.survey_inside[row, head] += gpus
        return items
    weighed = isolated_left_s(s, job) * s.weight[job]
    s.survey_job[row, items] = job
    s.survey_inside[row, items] = gpus
    s.survey_weighed[row, items] = weighed
    s.survey_next[row, items] = head
    s.survey_head[row, area] = items
    gain = weighed - restore_cost_s(s, job)
    s.survey_gain[row, area] = max(s.survey_gain[row, area], gain)
    s.survey_most[row] = max(s.survey_most[row], gain)
    return items + 1


@kernel
def _has_room(s, tier, need):
    if tier == MACHINE:
        return _fullest(s, need, s.largest_machine) >= 0
    if tier == RACK:
        for rack in range(s.n_racks):
            if s.rack_free[rack] >= need:
                return True
        return False
    return s.free_gpus >= need


@kernel
def _fullest(s, need, most):
    """The fewest free GPUs, from `need` to `most`, of a machine of the survey; or -1."""
    for free in range(need, most + 1):
        if s.survey_free[free] > 0:
            return free
    return NONE


@kernel
def _cheapest(s, tier, need):
    """Modify the plan of `s`: that of the area with the least sum of costs. Returns the area, or -1."""
    row = tier - MACHINE
    too_little = s.mine_weighed - SLACK * (s.mine_weighed + max(s.cost_small_s, s.cost_large_s))
    scarce = s.free_gpus < need  # moves alone are not enough
    if scarce and s.survey_most[row] <= too_little:
        return NONE
    least_s = min(s.cost_small_s, s.cost_large_s)
    if scarce:
        least_s += s.mine_s
    best = NONE
    last = NONE
    s.room_cost_s = math.inf
    for area in range(_areas(s, tier)):
        if _free_in(s, tier, area) + s.survey_gpus[row, area] < need:
            continue
        if scarce and s.survey_gain[row, area] <= too_little:
            continue
        cost_s = _search(s, tier, area, need)
        last = area
        if cost_s < math.inf and (best < 0 or rounded(cost_s) < rounded(s.room_cost_s)):
            best = area
            s.room_cost_s = cost_s
            if cost_s <= least_s:
                break
    if best != last:
        _search(s, tier, best, need)
    return best


@kernel
def _search(s, tier, area, need):
    """Modify the plan of `s`: victims in one area. Returns the sum of their costs, or infinity."""
    row = tier - MACHINE
    short = need - _free_in(s, tier, area)
    most = 0
    if tier != NETWORK:
        _change_survey(s, tier, area, -1)
        most = s.largest_machine
        while most > 0 and s.survey_free[most] == 0:
            most -= 1
    cost_s = math.inf
    s.victims = 0
    if _rank(s, row, area, most) >= short:
        freed = _take(s, row, short, most)
        if freed >= short:
            cost_s = _prune(s, freed - short)
    s.n_picked = 0
    if tier != NETWORK:
        _change_survey(s, tier, area, 1)
    return cost_s


@kernel
def _change_survey(s, tier, area, by):
    """Modify the survey of `s`: remove (`by` = -1) or add again (1) the machines of an area."""
    if tier == MACHINE:
        s.survey_free[s.machine_free[area]] += by
        return
    first = s.rack_first_machine[area]
    for machine in range(first, first + s.rack_machines[area]):
        s.survey_free[s.machine_free[machine]] += by


@kernel
def _rank(s, row, area, most):
    """Modify `s.pick_*`: a heap of possible victims, the cheapest per GPU first. Returns their GPUs.

    `most`: most free GPUs of a machine outside. The heap has its largest entry on top, so signs are reversed.
    """
    s.n_picked = 0
    gpus = 0
    item = s.survey_head[row, area]
    while item >= 0:
        job = s.survey_job[row, item]
        cost_s = restore_cost_s(s, job)
        moves = s.gpus[job] <= most
        if moves or _may_be_stopped(s, row, item, cost_s):
            if not moves:
                cost_s += s.mine_s
            push_pick(s, -rounded(cost_s / s.survey_inside[row, item]), -job)
            s.item_of[job] = item
            gpus += s.survey_inside[row, item]
        item = s.survey_next[row, item]
    return gpus


@kernel
def _may_be_stopped(s, row, item, cost_s):
    return rounded(s.survey_weighed[row, item]) > rounded(s.mine_weighed + cost_s)


@kernel
def _take(s, row, short, most):
    """Modify the plan of `s`: victims from the heap until `short` GPUs of the area are freed. Returns these GPUs."""
    freed = 0
    count = 0
    while freed < short and s.n_picked > 0:
        job = -s.pick_job[0]
        pop_pick(s)
        item = s.item_of[job]
        cost_s = restore_cost_s(s, job)
        free = _fullest(s, s.gpus[job], most)
        if free >= 0:
            s.survey_free[free] -= 1
            s.survey_free[free - s.gpus[job]] += 1
        elif _may_be_stopped(s, row, item, cost_s):
            cost_s += s.mine_s
        else:
            continue
        s.victim[count] = job
        s.victim_moves[count] = free >= 0
        s.victim_claim[count] = free
        s.victim_inside[count] = s.survey_inside[row, item]
        s.victim_cost_s[count] = cost_s
        freed += s.survey_inside[row, item]
        count += 1
    for i in range(count - 1, -1, -1):
        if s.victim_moves[i]:
            s.survey_free[s.victim_claim[i] - s.gpus[s.victim[i]]] -= 1
            s.survey_free[s.victim_claim[i]] += 1
    s.victims = count
    return freed


@kernel
def _prune(s, spare):
    """Modify the plan of `s`: from the last on, spare victims that are not needed. Returns the sum of costs."""
    for i in range(s.victims - 1, -1, -1):
        if s.victim_inside[i] <= spare:
            spare -= s.victim_inside[i]
            s.victim[i] = NONE
    count = 0
    cost_s = 0.0
    for i in range(s.victims):
        if s.victim[i] >= 0:
            s.victim[count] = s.victim[i]
            s.victim_moves[count] = s.victim_moves[i]
            cost_s += s.victim_cost_s[i]
            count += 1
    s.victims = count
    return cost_s


@kernel
def _find_outside(s, need):
    """Modify `s.gang`: free GPUs of the fullest machine outside the plan's area; False without room."""
    best = NONE
    for machine in range(s.n_machines):
        free = s.machine_free[machine]
        if free >= need and (best < 0 or free < s.machine_free[best]):
            if _area_of(s, s.room_tier, machine) != s.room_area:
                best = machine
    if best >= 0:
        find_in_machine(s, best, need, s.placer)
    return best >= 0
