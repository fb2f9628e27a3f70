"""Deadlines for the jobs of any generator: `deadlines=LOW/HIGH` beside the parameters that are its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..jobs.workload import Workload

STREAM = 0xDEAD  # of a seed's random numbers: the generator's own are a different one, so they stay as they are


def with_deadlines(name: str, generator: Callable[..., Workload]) -> Callable[..., Workload]:
    """The generator, which also takes `deadlines`: (LOW, HIGH), or one number for both; empty: none.

    A job's deadline is then its arrival + its isolated run time x a factor, drawn uniformly from LOW to HIGH, which are
    numbers above 0: below 1 nobody can be in time. Everything else of the workload is as without.

    Args:
        name: how messages call it.
        generator: with a parameter `seed`, which has a default.
    """
    signature = inspect.signature(generator)

    @functools.wraps(generator)
    def drawn(*args: Any, deadlines: tuple[float, ...] = (), **given: Any) -> Workload:
        if not deadlines:
            return generator(*args, **given)
        low, high = _range(name, deadlines)
        workload = generator(*args, **given)
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        seed = np.random.SeedSequence(bound.arguments["seed"], spawn_key=(STREAM,))
        factor = np.random.default_rng(seed).uniform(low, high, len(workload))
        return replace(workload, deadline_s=workload.arrival_s + workload.duration_s * factor)

    added = inspect.Parameter("deadlines", inspect.Parameter.KEYWORD_ONLY, default=(), annotation="tuple[float, ...]")
    drawn.__annotations__ = {**generator.__annotations__, "deadlines": added.annotation}
    parameters = [*signature.parameters.values(), added]
    drawn.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return drawn


def _range(name: str, deadlines: tuple[float, ...]) -> tuple[float, float]:
    low, high = deadlines[0], deadlines[-1]
    if len(deadlines) > 2 or not 0.0 < low <= high < 1e6:
        given = "/".join(f"{value:g}" for value in deadlines)
        raise InputError(
            f"workload {name}: deadlines={given}; expected LOW/HIGH, in isolated run times: 0 < LOW <= HIGH < 1e6"
        )
    return low, high
