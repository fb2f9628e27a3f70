"""What a job of some model does on the network: phases by name, workers and batch.

A workload names a model as NAME[/STRATEGY[/HIDDEN]]: `VGG16`, `GPT2/pipeline`, `GPT2/data/1184`. The 13 models of paper
cassini come from profiles/cassini_models.py; a user's own from a file (own_patterns.py), which is looked at first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..base.errors import InputError
from ..base.names import choose
from ..cluster.traffic import HYBRID_SERVERS
from ..profiles.cassini_models import cassini_models, phases_and_traffic, phases_of
from ..profiles.phases import Phases
from .own_patterns import NO_PATTERNS, OwnPatterns


@dataclass(frozen=True)
class Pattern:
    """One iteration of a job.

    Attributes:
        phases: on several machines, alone on its links.
        local_s: seconds on one machine, where nothing goes over the network, > 0.
        traffic: the traffic patterns (cluster/traffic.py) and their parts of the bytes, > 0, together 1.
    """

    phases: Phases
    local_s: float
    traffic: tuple[tuple[str, float], ...] = (("ring", 1.0),)


@functools.lru_cache(maxsize=4096)
def pattern_of(
    model: str,
    workers: int,
    batch: int,
    gbps: float = 45.0,
    collective: str = "ring",
    models: OwnPatterns = NO_PATTERNS,
) -> Pattern:
    """The pattern of a model.

    Args:
        model: NAME[/STRATEGY[/HIDDEN]]. workers: GPUs. batch: samples per GPU.
        gbps: top rate of a flow, gigabits per second; the user's own phases have their own rates.
        collective: `tree`: data parallel training and the user's own phases all-reduce over a tree, which sends the
            gradients once over each link, not 2 (n - 1) / n times as a ring does.

    Raises:
        InputError: no such model, strategy or hidden size, or own patterns without these workers and batch.
    """
    if model in models:
        return Pattern(*models.models[model].of(workers, batch), ((collective, 1.0),))
    name, strategy, hidden = _parts(model, models)
    known = cassini_models()[name]
    plan = known.strategies[0] if strategy is None else choose(strategy, known.strategies, f"strategy of {name}")
    phases, sent = phases_and_traffic(name, workers, batch, plan, hidden, gbps)
    traffic = tuple((who, count / phases.bytes) for who, count in sent.items() if count > 0.0)
    alone_s = phases_of(name, 1, batch, plan, hidden, gbps).iteration_s
    if plan == "data" and collective == "tree" and workers > 1:
        phases, traffic = _stretched_up(phases, workers / (2.0 * (workers - 1))), (("tree", 1.0),)
    # Stages and tensor halves split the model, replicas do not.
    split = {"pipeline": workers, "tensor": workers, "hybrid": HYBRID_SERVERS}.get(plan, 1)
    return Pattern(phases, alone_s / split, traffic)


def has_pattern(model: str, models: OwnPatterns = NO_PATTERNS) -> bool:
    """Whether a model's phases are known, by its name; `models` as for `pattern_of`."""
    return model.partition("/")[0] in cassini_models() or model in models


def is_data_parallel(model: str, models: OwnPatterns = NO_PATTERNS) -> bool:
    """Whether a model is trained by replicas alone; not known of a user's own. `models` as for `pattern_of`."""
    if model in models or not has_pattern(model):
        return False
    name, strategy, _ = _parts(model, models)
    return (strategy or cassini_models()[name].strategies[0]) == "data"


def _parts(model: str, models: OwnPatterns) -> tuple[str, str | None, int | None]:
    name, *rest = model.split("/")
    if name not in cassini_models():
        known = [*cassini_models(), *models.models]
        try:
            choose(name, known, "model of network contention:")
        except InputError as error:
            said = "or play on network contention:default=silent, where models that are not known send nothing"
            raise InputError(f"{error}; {said}") from None
        raise InputError(f"model {model!r}: own patterns are named whole, without a strategy behind them")
    if len(rest) > 2 or (len(rest) == 2 and not rest[1].isdecimal()):
        raise InputError(f"model {model!r}: expected NAME, NAME/STRATEGY or NAME/STRATEGY/HIDDEN with a whole number")
    return name, rest[0] if rest else None, int(rest[1]) if len(rest) == 2 else None


def _stretched_up(phases: Phases, factor: float) -> Phases:
    starts, later = [], 0.0
    for start, duration in zip(phases.start_s, phases.duration_s, strict=True):
        starts.append(start + later)
        later += duration * (factor - 1.0)
    durations = tuple(duration * factor for duration in phases.duration_s)
    return Phases(phases.iteration_s + later, tuple(starts), durations, phases.rate)


def scaled(phases: Phases, factor: float, rings: int = 1) -> Phases:
    """The same iteration, `factor` times as long in Down phases and bytes; a stream has 1 / `rings` of the rate."""
    if factor == 1.0 and rings == 1:
        return phases
    return Phases(
        phases.iteration_s * factor,
        tuple(start * factor for start in phases.start_s),
        tuple(duration * factor for duration in phases.duration_s),
        tuple(rate / rings for rate in phases.rate),
    )


def throttled(phases: Phases, most: float) -> Phases:
    """The iteration where a flow gets at most `most` bytes per second, in whole bytes: faster Up phases take longer."""
    starts, durations, rates, later = [], [], [], 0.0
    for start, duration, rate in zip(phases.start_s, phases.duration_s, phases.rate, strict=True):
        starts.append(start + later)
        whole = max(float(round(rate)), 1.0)
        rates.append(min(whole, most))
        durations.append(duration * max(1.0, whole / most))
        later += durations[-1] - duration
    return Phases(phases.iteration_s + later, tuple(starts), tuple(durations), tuple(rates))
