"""Pairs of a model and a gang size, numbered: what slowdowns depend on where the placement does not matter."""

from ..compiler.jit import entry, kernel
from ..numerics.bisection import lower_place

MOST_GPUS = 1 << 31  # of a gang, and more


@kernel
def _pair(code, gpus):
    """A number for the pair, ascending with the model and then the gang size; all gangs of one GPU are one pair."""
    return 1 if gpus == 1 else code * MOST_GPUS + gpus


@entry
def number_pairs(codes, gpus, pairs, first_job, profiles):
    """Number the pairs of model and gang size of jobs, in their order (`_pair`); returns how many, at most room + 1.

    Modify `pairs`: int64 (room,), the different ones; `first_job`: the first job of each; `profiles`: int64 (jobs,),
    each job's. `codes`, `gpus`: int64 (jobs,), numbers of the models, and gang sizes.
    """
    count = 0
    for job in range(gpus.size):
        pair = _pair(codes[job], gpus[job])
        place = lower_place(pairs, count, pair)
        if place < count and pairs[place] == pair:
            continue
        if count == pairs.size:
            return count + 1
        for other in range(count, place, -1):
            pairs[other], first_job[other] = pairs[other - 1], first_job[other - 1]
        pairs[place], first_job[place] = pair, job
        count += 1
    for job in range(gpus.size):
        profiles[job] = lower_place(pairs, count, _pair(codes[job], gpus[job]))
    return count
