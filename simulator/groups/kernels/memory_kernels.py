"""Memory of a group: kept and spilled bytes of its jobs, and the cost of garbage collection and loading.

A job keeps a share 1 - alpha of its input and a share 1 - model_spill of its model; the rest is on the disks of the
group's machines. Kept bytes, times an expansion, over the group's RAM are its occupancy. Above a threshold the
collector stretches every COMP by a factor; spilled input passes the disk once an iteration, a model twice. A round
lasts

    max(sum of COMP x gc, sum of COMM, longest COMP x gc + COMM, sum of loads)          Eq. (1), and the disk

Ratios move in steps of 1/20. They start at the lowest common one with an occupancy of at most the threshold, and climb,
one job and one step at a time, until no step makes the round shorter, nor leaves it as long with fewer bytes on disk;
at once, where the paper takes iterations. A model is spilled only when all input is. `alpha_asked` of a job is kept as
it is; negative: the job climbs.
"""

from ...compiler.jit import entry, kernel

STEPS = 20  # of a ratio, from nothing to all
ROUNDS = 400  # of the climb, a step of every job each; every step is an improvement, so it ends by itself long before
# A JVM that collects for 98 % of its time gives up (GCTimeLimit), so nothing that runs is slower than this.
GC_MOST = 50.0
MODEL_PASSES = 2.0  # a spilled model is read before an iteration and written after it


@kernel
def gc_factor(s, occupancy):
    """By what garbage collection stretches a COMP: 1 up to the threshold, then as live data over free heap grows."""
    if occupancy <= s.gc_threshold or s.gc_slope == 0.0:
        return 1.0
    if occupancy >= 1.0:
        return GC_MOST
    return min(GC_MOST, 1.0 + s.gc_slope * (occupancy - s.gc_threshold) / (1.0 - occupancy))


@kernel
def kept_bytes(s, job):
    """Bytes of input and model that a job has in memory, before expansion."""
    return (1.0 - s.alpha[job]) * s.input_bytes[job] + (1.0 - s.model_spill[job]) * s.model_bytes[job]


@kernel
def spilled_bytes(s, job):
    """Bytes of input and model that a job has on disk."""
    return s.alpha[job] * s.input_bytes[job] + s.model_spill[job] * s.model_bytes[job]


@kernel
def load_s(s, group, job):
    """Seconds that the disks of the group need for one pass over what a job has spilled."""
    passed = s.pass_fraction * s.alpha[job] * s.input_bytes[job]
    passed += MODEL_PASSES * s.model_spill[job] * s.model_bytes[job]
    return passed / (s.group_machines[group] * s.disk_bandwidth)


@kernel
def occupancy_of(s, group):
    """Share of the group's RAM that its jobs fill; above 1: more than there is."""
    kept = 0.0
    job = s.first_member[group]
    while job >= 0:
        kept += kept_bytes(s, job)
        job = s.next_member[job]
    return s.expansion * kept / (s.group_machines[group] * s.ram_bytes)


@kernel
def round_s(s, group, gc):
    """Seconds of one round of the group, Eq. (1) with COMP stretched by `gc`, and not less than its disks need."""
    machines = s.group_machines[group]
    comp = 0.0
    comm = 0.0
    longest = 0.0
    disk = 0.0
    job = s.first_member[group]
    while job >= 0:
        one = gc * s.comp_machine_s[job] / machines
        comp += one
        comm += s.comm_s[job]
        longest = max(longest, one + s.comm_s[job])
        disk += load_s(s, group, job)
        job = s.next_member[job]
    return max(comp, comm, longest, disk)


@kernel
def _worth(s, group):
    """What the climb makes small, the first one first: occupancy above 1, seconds of a round, bytes on disk."""
    occupancy = occupancy_of(s, group)
    spilled = 0.0
    job = s.first_member[group]
    while job >= 0:
        spilled += spilled_bytes(s, job)
        job = s.next_member[job]
    return max(0.0, occupancy - 1.0), round_s(s, group, gc_factor(s, occupancy)), spilled


@kernel
def _set_ratios(s, group, level):
    """Modify ratios: input out up to `level` steps, and what is above `STEPS` of it models."""
    out = min(level, STEPS) / STEPS
    job = s.first_member[group]
    while job >= 0:
        s.alpha[job] = out if s.alpha_asked[job] < 0.0 else s.alpha_asked[job]
        s.model_spill[job] = max(0, level - STEPS) / STEPS if s.alpha[job] >= 1.0 else 0.0
        job = s.next_member[job]


@kernel
def _all_input_out(s, group):
    job = s.first_member[group]
    while job >= 0:
        if s.alpha_asked[job] < 0.0 and s.alpha[job] < 1.0:
            return False
        job = s.next_member[job]
    return True


@kernel
def _no_model_out(s, group):
    job = s.first_member[group]
    while job >= 0:
        if s.model_spill[job] > 0.0:
            return False
        job = s.next_member[job]
    return True


@kernel
def _step(s, group, job, way):
    alpha = int(s.alpha[job] * STEPS + 0.5)
    model = int(s.model_spill[job] * STEPS + 0.5)
    climbs = s.alpha_asked[job] < 0.0
    if s.alpha[job] >= 1.0 and (model > 0 or way > 0):
        if model + way > STEPS or (way > 0 and not _all_input_out(s, group)):
            return False
        s.model_spill[job] = (model + way) / STEPS
        return True
    if not climbs or alpha + way < 0 or (way < 0 and not _no_model_out(s, group)):
        return False
    s.alpha[job] = (alpha + way) / STEPS
    return True


@kernel
def _climb(s, group):
    over, long_s, spilled = _worth(s, group)
    for _ in range(ROUNDS):
        moved = False
        job = s.first_member[group]
        while job >= 0:
            for way in (-1, 1):
                before, model_before = s.alpha[job], s.model_spill[job]
                if not _step(s, group, job, way):
                    continue
                now_over, now_long_s, now_spilled = _worth(s, group)
                if now_over < over or (
                    now_over == over and (now_long_s < long_s or (now_long_s == long_s and now_spilled < spilled))
                ):
                    over, long_s, spilled = now_over, now_long_s, now_spilled
                    moved = True
                    break
                s.alpha[job], s.model_spill[job] = before, model_before
            job = s.next_member[job]
        if not moved:
            return


@kernel
def balance_memory(s, group):
    """Modify ratios, loads, `group_gc` and `group_occupancy` of a group; 1 if it is out of memory, else 0.

    Without spills all stays in memory. With them only asked ratios can keep more than fits.
    """
    if s.first_member[group] < 0:
        s.group_occupancy[group] = 0.0
        s.group_gc[group] = 1.0
        return 0
    if s.spills != 0:
        level = 0
        _set_ratios(s, group, level)
        while level < 2 * STEPS and occupancy_of(s, group) > s.gc_threshold:
            level += 1
            _set_ratios(s, group, level)
        _climb(s, group)
    job = s.first_member[group]
    while job >= 0:
        if s.spills == 0:
            s.alpha[job] = 0.0
            s.model_spill[job] = 0.0
        s.disk_s[job] = load_s(s, group, job)
        job = s.next_member[job]
    occupancy = occupancy_of(s, group)
    s.group_occupancy[group] = occupancy
    s.group_gc[group] = gc_factor(s, occupancy)
    return 1 if occupancy > 1.0 else 0


@entry
def find_memory_balance(s, group):
    """`balance_memory`, called from Python."""
    return balance_memory(s, group)


@entry
def balanced_round_s(s, group):
    """Seconds of one round of a group whose memory is balanced."""
    return round_s(s, group, s.group_gc[group])
