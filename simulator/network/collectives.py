"""What a placement costs: per layer a ring all-reduce on every tier that the gang spans. Compiled; times are whole ns.

The mechanism is that of ASTRA-sim 1.0 with its analytical network, as the simulator behind paper dally runs it:
docs/concepts/communication.md. The backward pass, from the last layer on, computes each layer's gradient, which then
passes the tiers in turn, innermost first, with its full size. Each tier carries one collective at a time, the one
issued last first (`net_fifo`: the one issued first).

The shape of a placement is its `units` on each tier: members of that tier's ring, 0 or 1 without one.
"""

import numpy as np

from ..base.tiers import MACHINE, NETWORK, RACK, SLOT, TIERS
from ..compiler.jit import entry, kernel

# kinds of tier
FULLY_CONNECTED = 0
RING = 1
SWITCH = 2

MODEL_BITS = 20  # of a whole number of 64 bits; a tier's units take as many


@entry
def parallel_links(kind, links, units):
    """Links that one message of a ring step has at once; `links` of each member, 0: as many as there are units.

    In a ring, links come in pairs and two members have four; if all are connected, each pair has an equal share.
    """
    if links == 0:
        links = units
        if kind == RING:
            links = 4 if units <= 2 else units + units % 2
    if kind == RING:
        return max(1, links - links % 2)
    if kind == FULLY_CONNECTED:
        return max(1, links // max(1, units - 1))
    return links


@entry
def collective_ns(s, tier, units, size):
    """Duration of a ring all-reduce of `size` bytes among `units` >= 2 members of a tier, ns.

    2 (units - 1) steps send size / units bytes each; in half of them the receiver adds (two reads and a write).
    """
    message = size // units
    bandwidth = s.net_bandwidth[tier] * parallel_links(s.net_kind[tier], s.net_links[tier], units)
    step = int(s.net_latency_ns[tier] + message / bandwidth)
    added = int(message / s.net_memory_bandwidth) * 3
    steps = 2 * (units - 1)
    return (steps + 1) * s.net_endpoint_ns + steps * step + (units - 1) * added


@entry
def issue(s, model):
    """Modify `s`: line up the layers of a model that have gradients, in order of issue; returns their number."""
    count = 0
    for layer in range(s.model_first[model + 1] - 1, s.model_first[model] - 1, -1):
        if s.layer_bytes[layer] > 0:
            s.layer_order[count] = layer
            s.layer_done_ns[layer] = s.layer_ready_ns[layer]
            count += 1
    return count


@entry
def serve(s, tier, count):
    """Modify `s`: the `count` layers in `layer_order` pass a tier: `layer_done_ns` when each leaves, in that order."""
    units = s.units[tier]
    if units <= 1:
        return
    waiting = 0  # sorted, the next one last
    arrived = 0
    now = 0
    for served in range(count):
        if waiting == 0:
            now = max(now, s.layer_done_ns[s.layer_order[arrived]])
        while arrived < count and s.layer_done_ns[s.layer_order[arrived]] <= now:
            layer = s.layer_order[arrived]
            place = waiting
            # Layers are issued from the last to the first, so the number gives the order of issue.
            while place > 0 and (s.layer_waiting[place - 1] > layer) == (s.net_fifo == 1):
                s.layer_waiting[place] = s.layer_waiting[place - 1]
                place -= 1
            s.layer_waiting[place] = layer
            waiting += 1
            arrived += 1
        waiting -= 1
        layer = s.layer_waiting[waiting]
        now += collective_ns(s, tier, units, s.layer_bytes[layer])
        s.layer_done_ns[layer] = now
        s.layer_order[served] = layer


@entry
def is_alone(s):
    """True if the shape `s.units` spans no tier."""
    for tier in range(TIERS):
        if s.units[tier] > 1:
            return False
    return True


@entry
def finish_ns(s, model):
    """Modify scratch space of `s`: duration of an iteration of a model at the shape `s.units`, ns; one GPU sends 0."""
    if is_alone(s):
        return s.model_compute_ns[model]
    count = issue(s, model)
    for tier in range(TIERS):
        serve(s, tier, count)
    finish = s.model_end_ns[model]
    for i in range(count):
        layer = s.layer_order[i]
        finish = max(finish, s.layer_done_ns[layer] + s.layer_update_ns[layer])
    return finish


@kernel
def rounded(s, time_ns):
    """A total as it enters ratios: with `net_single` as the simulator behind paper dally reads it, 32 bits of us."""
    if s.net_single == 1:
        return np.float64(np.float32(time_ns / 1000.0))
    return np.float64(time_ns)


@entry
def fraction_of(s, compute, finish):
    """Compute over the duration of an iteration, both in ns; in (0, 1]."""
    busy = rounded(s, compute)
    return busy / (rounded(s, finish - compute) + busy)


@entry
def fresh_fraction(s, model):
    """Modify scratch space of `s`: what `compute_fraction` says, without its memo."""
    return fraction_of(s, s.model_compute_ns[model], finish_ns(s, model))


@entry
def compute_fraction(s, model):
    """Modify the memo of `s`: compute over duration of an iteration of a model at the shape `s.units`."""
    first = s.units[SLOT] + (s.units[MACHINE] << MODEL_BITS) + (s.units[RACK] << (2 * MODEL_BITS))
    second = s.units[NETWORK] + ((model + 1) << MODEL_BITS)  # never 0, which is an empty place
    mask = s.shape_first.size - 1
    mixed = (((second * 61 + s.units[RACK]) * 67 + s.units[MACHINE]) * 71) + s.units[SLOT]  # without overflow
    place = (mixed ^ (mixed >> 11) ^ (mixed >> 23)) & mask
    while s.shape_second[place] != 0:
        if s.shape_first[place] == first and s.shape_second[place] == second:
            return s.shape_fraction[place]
        place = (place + 1) & mask
    fraction = fresh_fraction(s, model)
    if s.shapes < s.shape_first.size // 4 * 3:
        s.shapes += 1
        s.shape_first[place] = first
        s.shape_second[place] = second
        s.shape_fraction[place] = fraction
    return fraction


@entry
def flatten(s, gpus, slots, machines, racks):
    """Modify `s.units`: the shape of a gang that uses so many slots, machines and racks in all.

    As the simulator behind paper dally counts: each tier divides the GPUs evenly; a remainder, or one GPU each, puts
    all on that tier as a whole, without the tiers below.
    """
    for tier in range(TIERS):
        s.units[tier] = 0
    if racks > 1:
        if gpus % racks != 0:
            s.units[NETWORK] = gpus
            return
        s.units[NETWORK] = racks
        gpus //= racks
    if machines > 1:
        if gpus % machines != 0 or gpus == machines:
            s.units[RACK] = gpus
            return
        s.units[RACK] = machines
        gpus //= machines
    if gpus % slots != 0 or gpus == slots:
        s.units[MACHINE] = gpus
        return
    if slots > 1:
        s.units[MACHINE] = slots
    s.units[SLOT] = gpus // slots


@entry
def best_fraction(states, model, gpus, shapes):
    """Modify the memo of `states[0]`: the largest compute fraction over `shapes` (n, 3): slots, machines, racks."""
    s = states[0]
    best = 0.0
    for i in range(shapes.shape[0]):
        slots = shapes[i, 0]
        machines = shapes[i, 1]
        racks = shapes[i, 2]
        if s.net_flattened == 1:
            flatten(s, gpus, slots, machines, racks)
        else:
            s.units[SLOT] = -(-gpus // slots)
            s.units[MACHINE] = -(-slots // machines)
            s.units[RACK] = -(-machines // racks)
            s.units[NETWORK] = racks
        best = max(best, compute_fraction(s, model))
    return best


@entry
def measure_gang(s):
    """Modify `s.units`: the shape of `s.gang`; its GPUs may lie in any order."""
    _measure_units(s, 0, s.gang_size)


@kernel
def _measure_units(s, begin, end):
    """Modify `s.units`: the shape of `s.gang[begin:end]`."""
    slots = 0
    machines = 0
    racks = 0
    most_gpus = 0
    most_slots = 0
    most_machines = 0
    for i in range(begin, end):
        slot = s.gpu_slot[s.gang[i]]
        s.slot_held[slot] += 1
        most_gpus = max(most_gpus, s.slot_held[slot])
        if s.slot_held[slot] == 1:
            slots += 1
            machine = s.slot_machine[slot]
            s.machine_held[machine] += 1
            most_slots = max(most_slots, s.machine_held[machine])
            if s.machine_held[machine] == 1:
                machines += 1
                rack = s.machine_rack[machine]
                s.rack_held[rack] += 1
                most_machines = max(most_machines, s.rack_held[rack])
                if s.rack_held[rack] == 1:
                    racks += 1
    for i in range(begin, end):  # back to zero for the next gang
        slot = s.gpu_slot[s.gang[i]]
        machine = s.slot_machine[slot]
        s.slot_held[slot] = 0
        s.machine_held[machine] = 0
        s.rack_held[s.machine_rack[machine]] = 0
    if s.net_flattened == 1:
        flatten(s, end - begin, slots, machines, racks)
    else:
        s.units[SLOT] = most_gpus
        s.units[MACHINE] = most_slots
        s.units[RACK] = most_machines
        s.units[NETWORK] = racks


@kernel
def gang_fraction(s, job):
    """Modify scratch space of `s`: compute over duration of an iteration of a job on `s.gang`."""
    return units_fraction(s, s.profile[job], 0, s.gang_size)


@kernel
def units_fraction(s, profile, begin, end):
    """Modify scratch space of `s`: the same of a gang of that profile on `s.gang[begin:end]`."""
    model = s.profile_model[profile]
    if model < 0:  # one GPU
        return 1.0
    _measure_units(s, begin, end)
    return compute_fraction(s, model)
