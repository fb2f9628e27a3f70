"""Paper cassini, Table 3: the 13 models as they are read: parameters, iteration times and duties.

Table 3 has a "memory requirement" per model, a range for GPTs and DLRM. Read as parameters in fp32, as it fits VGG and
ResNet50, its low ends are the data parallel instances (profiles/cassini_models.py). Of DLRM's memory the paper does not
say what part are embeddings, which lie on one worker each and are not all-reduced: whatever lies between nothing and
all of 1,962 MiB may be replicated. The rows say what that makes of its duty, and what another computing time does.

Duty: the part of an iteration that is Up, alone. Means are over Table 3's batches and over 2 to 12 workers, each alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....simulator.profiles.cassini_models import FP32, GBPS, CassiniModel, cassini_models, constant, phases_of
from ....simulator.profiles.phases import Phases, embeddings
from ..engine import Play
from ..rows import Row, bounded, printed, table

MIB = 2**20
WORKERS = range(2, 13)
BATCHES = 9  # of a range, evenly spread
FITTING = ("VGG11", "VGG16", "VGG19", "ResNet50")  # whose memory in Table 3 is their parameters in fp32
RANGED = ("GPT1", "GPT2", "GPT3", "DLRM")
DLRM, YARDSTICK = "DLRM", "VGG16"
MLPERF_MB = 2_368_897 * FP32 / MIB  # the replicated part of MLPerf's layout: nearly all is embeddings
COMPUTING_S = (0.01, 0.05, 0.1, 0.2)  # of an iteration of DLRM
STEP_MB = 1.0
MEMORY_TOLERANCE = 0.01


def plan(model: CassiniModel) -> str:
    """How the traces of Figures 11 and 13 parallelise it: GPTs data parallel."""
    return "data" if "data" in model.strategies else model.strategies[0]


def batches(model: CassiniModel) -> list[int]:
    """Of Table 3's range, evenly spread."""
    return [int(batch) for batch in np.unique(np.rint(np.linspace(*model.batch, BATCHES)))]


def replicating(replicated_mb: float, computing_s: float | None = None) -> Callable[[int, int], Phases]:
    """DLRM with another replicated part, in MiB, or another computing time: its phases by workers and batch."""
    model = cassini_models()[DLRM]
    looked_up = FP32 * model.numbers["tables"] * model.numbers["dimension"]
    rate = constant("rate_gbps") * GBPS

    def phases(workers: int, batch: int) -> Phases:
        compute_s = phases_of(DLRM, 1, batch).iteration_s if computing_s is None else computing_s
        return embeddings(compute_s, looked_up * batch, replicated_mb * MIB, workers, rate)

    return phases


def mean_duty(phases: Callable[[int, int], Phases], sizes: Sequence[int]) -> float:
    """Mean duty over workers and batches."""
    found = [phases(workers, batch) for workers in WORKERS for batch in sizes]
    return float(np.mean([one.up_s / one.iteration_s for one in found]))


def least_replicated_mb(duty: float) -> float:
    """The smallest replicated part, in whole MiB, with which DLRM's duty is that, or Table 3's upper end."""
    model = cassini_models()[DLRM]
    low, high = 0.0, model.memory_mb[1]
    while high - low > STEP_MB:
        middle = (low + high) / 2.0
        if mean_duty(replicating(middle), batches(model)) < duty:
            low = middle
        else:
            high = middle
    return round(high)


def profiles(play: Play) -> Iterator[Row]:
    """Table 3 as it is read: nothing is played."""
    duty: dict[str, float] = {}
    for name, model in cassini_models().items():

        def phases(workers: int, batch: int, model: CassiniModel = model) -> Phases:
            return phases_of(model.name, workers, batch, plan(model))

        held, what = FP32 * model.parameters(plan(model)) / MIB, f"{name}: parameters in fp32"
        row = table(what, model.memory_mb[0], held, "MiB", MEMORY_TOLERANCE)
        yield row if name in (*FITTING, *RANGED) else Row(what, model.memory_mb[0], held, unit="MiB")
        seconds = [phases(workers, batch).iteration_s for workers in WORKERS for batch in batches(model)]
        duty[name] = mean_duty(phases, batches(model))
        yield printed(f"{name}: iteration alone, mean", float(np.mean(seconds)), "s")
        yield printed(f"{name}: duty", duty[name])
    yield bounded(f"{DLRM}: duty over {YARDSTICK}'s", "at least 1", duty[DLRM] / duty[YARDSTICK], (1.0, np.inf))
    yield from _dlrm(duty[YARDSTICK])


def _dlrm(wanted: float) -> list[Row]:
    """What Table 3 allows of DLRM's duty."""
    model = cassini_models()[DLRM]
    least, most = least_replicated_mb(wanted), model.memory_mb[1]
    rows = [
        printed(f"{DLRM}: replicated part, least with {YARDSTICK}'s duty", least, "MiB"),
        printed(f"{DLRM}: replicated part, most that Table 3 allows", most, "MiB"),
    ]
    for replicated in (MLPERF_MB, model.memory_mb[0], most):
        found = mean_duty(replicating(replicated), batches(model))
        rows.append(printed(f"{DLRM}: duty with {replicated:.0f} MiB replicated", found))
    for seconds in COMPUTING_S:
        found = mean_duty(replicating(model.memory_mb[0], seconds), batches(model))
        rows.append(printed(f"{DLRM}: duty with {1e3 * seconds:g} ms of computing", found))
    return rows
