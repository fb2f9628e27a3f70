"""Time of one training step from measured placements: Eq. 3, 4 and 7 of paper sjf-bsbf, as `fit` in a record has them.

    computation    t_comp(b) = a + b_ x b             b samples a GPU in one pass                       (Eq. 3)
    communication  t_comm    = ai + bi (K - 2)        K GPUs in one machine; an + bn (K - 2) over machines   (Eq. 4)
    step           t(B) = (s - 1) t_comp(B / s) + (t_comp(B / s)^d + t_comm^d)^(1 / d)     s passes      (Eq. 7)

The paper's Eq. 4 has one constant a model and tier, a fixed message size; the term in K is measured
(profiles/throughput.py). One GPU has its own line, and nothing to communicate.
"""

import math

from ..base.tiers import RACK
from ..compiler.jit import entry, kernel

A, B, AI, BI, AN, BN, D, ONE_A, ONE_B = 0, 1, 2, 3, 4, 5, 6, 7, 8


@entry
def step_time_s(fit, gpus, nodes, batch, sub_batch):
    """Seconds of a step of `batch` samples a GPU on `nodes` machines in passes <= `sub_batch`; `fit`: Eq. 3, 4, 7."""
    passes = -(-batch // sub_batch)
    size = batch / passes
    if gpus == 1:
        return passes * (fit[ONE_A] + fit[ONE_B] * size)
    computed = fit[A] + fit[B] * size
    exchanged = fit[AN] + fit[BN] * (gpus - 2) if nodes > 1 else fit[AI] + fit[BI] * (gpus - 2)
    # Both over the larger one, so that no power of a small number underflows.
    larger = max(computed, exchanged)
    smaller = min(computed, exchanged)
    d = fit[D]
    last = larger * math.pow(1.0 + math.pow(smaller / larger, d), 1.0 / d)
    return (passes - 1) * computed + last


@kernel
def step_s(s, model, gpus, nodes, batch, sub_batch):
    """`step_time_s` by the fit of a model in the record."""
    return step_time_s(s.fit[model], gpus, nodes, batch, sub_batch)


@kernel
def nodes_of_tier(tier):
    """Machines of a gang, as far as a step's time tells them apart: one, or several."""
    return 2 if tier >= RACK else 1


@kernel
def best_nodes(s, job, batch, sub_batch):
    """One machine, or several: where a job's step takes less time, if one is large enough."""
    model = s.model[job]
    gpus = s.gpus[job]
    if gpus > s.largest_machine:
        return 2
    inside_s = step_s(s, model, gpus, 1, batch, sub_batch)
    return 1 if inside_s <= step_s(s, model, gpus, 2, batch, sub_batch) else 2


@kernel
def write_best_step(s, job):
    """Modify `s.best_step_s`: the time of a step of a job's whole batch, placed best."""
    model = s.model[job]
    if s.fit[model, D] > 0.0:
        nodes = best_nodes(s, job, s.batch[job], s.batch[job])
        s.best_step_s[job] = step_s(s, model, s.gpus[job], nodes, s.batch[job], s.batch[job])


@kernel
def stretch(s, job, tier, sub_batch):
    """Iteration time at a tier in passes of `sub_batch` over the one placed best and in one pass; 1 without a fit.

    Where the network says what the tier costs (`net_steps` 0), only what the passes add counts, at the best placement.
    """
    model = s.model[job]
    if s.fit[model, D] <= 0.0:
        return 1.0
    if s.net_steps:
        nodes = nodes_of_tier(tier)
    elif sub_batch >= s.batch[job]:
        return 1.0
    else:
        nodes = best_nodes(s, job, s.batch[job], s.batch[job])
    return step_s(s, model, s.gpus[job], nodes, s.batch[job], sub_batch) / s.best_step_s[job]
