"""Jobs that iterate on shared links and nothing else: no queue, no GPUs, no end unless they have one.

What the simulator does with `contention`, on a record of those fields alone: for pictures, for closed forms, and for
the averages over a steady state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..contention_state import MOST_PHASES, contention_fields
from ..errors import InputError
from ..profiles.phases import Phases
from .routes import LinkUse

# (jobs, links, uses): every shape compiles once.
SIZES = ((40, 264, 2056), (520, 4104, 32_776), (8200, 65_544, 524_296))
TRACE = 8192
WARM_UP, AVERAGED = 10, 200  # iterations: 200 longest ones give means to 0.3 % where jobs run free


@dataclass(frozen=True)
class Contender:
    """A job on a network.

    Attributes:
        phases: what it does alone, at the top rate of a flow.
        use: its links and flows.
        shift_s: its iterations begin at this, modulo `period_s`; None: as soon as they can.
        period_s: seconds, > 0; None: its iteration time alone on its links.
        begin_s: when its first iteration may begin, >= 0.
        rounds: iterations until it leaves, > 0.
    """

    phases: Phases
    use: LinkUse
    shift_s: float | None = None
    period_s: float | None = None
    begin_s: float = 0.0
    rounds: float = math.inf


@cache
def _dtype(size: tuple[int, int, int]) -> np.dtype:
    return np.dtype(contention_fields(*size, trace=TRACE), align=True)


def lay_phases(records: np.ndarray, row: int, job: int, phases: Phases) -> None:
    """Modify the record: the phases of a job; rates become whole bytes per second, and durations stay what they are.

    Raises:
        InputError: more than MOST_PHASES Up phases, or an iteration below a microsecond.
    """
    count = len(phases.rate)
    if count > MOST_PHASES:
        raise InputError(f"{phases}: {count} Up phases, expected at most {MOST_PHASES}")
    if phases.iteration_s < 1e-6:
        raise InputError(f"{phases}: expected an iteration of at least a microsecond")
    starts, durations = np.array(phases.start_s, float), np.array(phases.duration_s, float)
    ends = starts + durations
    rates = np.maximum(1.0, np.rint(np.array(phases.rate, float)))
    records["n_phases"][row, job] = count
    records["phase_down_s"][row, job, :count] = np.maximum(0.0, starts - np.concatenate([[0.0], ends])[:count])
    records["phase_rate"][row, job, :count] = rates
    records["phase_bytes"][row, job, :count] = rates * durations
    records["tail_s"][row, job] = max(0.0, phases.iteration_s - (ends[-1] if count else 0.0))
