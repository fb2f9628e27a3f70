"""What is known of run times: a setting of the simulator, for policies, rules and observations. Jobs run as they do.

* `exact`: the run time itself;
* `none`: nothing; policies that need run times refuse to play, and columns of run times are 0;
* `lognormal:sigma=S`: the run time times exp(S z), z standard normal, of the seed and the number of the job alone;
* `user`: the column `estimate_s` of the workload, of a job's `duration_s`, scaled as that is.

remaining_time.py says what follows for a job in progress. Estimates that are all right but for rounding are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.codes import TIMES_EXACT, TIMES_GUESSED, TIMES_HIDDEN
from ..base.errors import InputError
from ..base.names import bind, choose, parse_name
from ..numerics.random import draw_seed, fill_uniform
from ..numerics.rounding import NEAR
from .workload import AGREEMENT, Workload

STREAM = 1 << 27  # of random numbers; those below are used elsewhere
MOST_SIGMA = 10.0
KINDS = {"exact": TIMES_EXACT, "none": TIMES_HIDDEN, "lognormal": TIMES_GUESSED, "user": TIMES_GUESSED}


@dataclass(frozen=True)
class Estimates:
    """What is known of run times; see the module.

    Args:
        kind: `exact`, `none`, `lognormal` or `user`.
        sigma: of `lognormal`: deviation of the logarithm of estimate over run time, 0 to 10.

    Raises:
        InputError: another kind, or a number out of range.
    """

    kind: str = "exact"
    sigma: float = 0.0

    def __post_init__(self) -> None:
        choose(self.kind, KINDS, "estimates")
        if not 0.0 <= self.sigma <= MOST_SIGMA:
            raise InputError(f"estimates: sigma = {self.sigma:g}: expected a number from 0 to {MOST_SIGMA:g}")

    @classmethod
    def load(cls, source: Estimates | str) -> Estimates:
        """Estimates from their text, e.g. "lognormal:sigma=1", or themselves; InputError: a bad name or parameter."""
        if isinstance(source, Estimates):
            return source
        name, params = parse_name(source, "estimates")
        return bind(_FACTORIES[choose(name, KINDS, "estimates")], params, f"estimates {name}")

    def describe(self) -> str:
        """Their text."""
        return f"lognormal:sigma={self.sigma:g}" if self.kind == "lognormal" else self.kind

    @property
    def hides(self) -> bool:
        """Nothing is known of run times."""
        return self.kind == "none"

    @property
    def code(self) -> int:
        """As the kernels have it."""
        return KINDS[self.kind]

    def expect_known(self, who: str) -> None:
        """InputError where nothing is known of run times, which `who` needs."""
        if self.hides:
            raise InputError(
                f"{who} needs run times, which estimates=none hides; expected another (clustergym policies says which "
                "do without), or estimates=exact, lognormal:sigma=S or user"
            )

    def check(self, workload: Workload) -> None:
        """InputError where they are its users', and it has none of some job."""
        missing = np.isinf(workload.estimate_s) if self.kind == "user" else np.zeros(1, bool)
        if missing.any():
            first = workload.job_id[int(np.argmax(missing))]
            raise InputError(
                f"workload {workload.name!r}: job {first} has no estimate of its run time; estimates=user expects "
                "seconds > 0 in the column estimate_s of every job"
            )

    def write_into(self, s: np.void, workload: Workload) -> None:
        """Write them into a record that has its jobs; InputError: `user`, and a job without an estimate."""
        n = len(workload)
        s["known_times"] = self.code
        if self.code != TIMES_GUESSED:
            return
        isolated_s = s["iterations"][:n] * s["base_iteration_s"][:n]
        if self.kind == "user":
            self.check(workload)
            scale = isolated_s / workload.duration_s
            estimate_s = workload.estimate_s * np.where(_is_one(scale), 1.0, scale)
        else:
            estimate_s = isolated_s * np.exp(self.sigma * standard_normal(draw_seed(s), n))
        s["estimate_s"][:n] = estimate_s
        if _is_one(estimate_s / isolated_s).all():
            s["known_times"] = TIMES_EXACT


def standard_normal(seed: int, n: int) -> np.ndarray:
    """The draws behind the estimates of n jobs, float64 (n,): of fewer jobs the first ones."""
    draws = np.empty(2 * n)
    fill_uniform(seed, STREAM, draws)
    return np.sqrt(-2.0 * np.log(draws[0::2])) * np.cos(2.0 * math.pi * draws[1::2])


def _is_one(ratio: np.ndarray) -> np.ndarray:
    return np.abs(ratio - 1.0) <= AGREEMENT


def known_left(s: np.void, jobs: np.ndarray, left: np.ndarray) -> np.ndarray:
    """As `rules.estimates.known_left` of several jobs: of `left` iterations in truth as many as are known, float64."""
    if s["known_times"] == TIMES_EXACT:
        return left
    if s["known_times"] == TIMES_HIDDEN:
        return np.zeros(len(left))
    base_s, estimate_s = s["base_iteration_s"][jobs], s["estimate_s"][jobs]
    done_s = (s["iterations"][jobs] - left) * base_s
    return np.where(is_outlived(done_s, estimate_s), done_s, estimate_s - done_s) / base_s


def is_outlived(done_s: Any, estimate_s: Any) -> Any:
    """Whether jobs have done all the work of their estimates, but for rounding; numbers or arrays."""
    return done_s >= estimate_s * (1.0 - NEAR)


def known_whole_s(s: np.void, jobs: np.ndarray) -> np.ndarray:
    """Isolated run times of several whole jobs, seconds, as far as they are known when they arrive, float64."""
    if s["known_times"] == TIMES_EXACT:
        return s["iterations"][jobs] * s["base_iteration_s"][jobs]
    return np.zeros(len(jobs)) if s["known_times"] == TIMES_HIDDEN else s["estimate_s"][jobs]


def _lognormal(sigma: float) -> Estimates:
    return Estimates("lognormal", sigma)


def _plain(kind: str) -> Any:
    def made() -> Estimates:
        return Estimates(kind)

    return made


_FACTORIES = {kind: _lognormal if kind == "lognormal" else _plain(kind) for kind in KINDS}
