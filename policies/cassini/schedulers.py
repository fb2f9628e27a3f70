"""The schedulers that CASSINI augments: `themis+cassini`, `pollux+cassini`, `dally+cassini`, `sjf-bsbf+cassini`.

Each takes the parameters of CASSINI (augment.py) and the main ones of the scheduler, which mean what they do there.
"""

from __future__ import annotations

from typing import Literal

from ...simulator.rules.semantics import LEASE_S as DALLY_LEASE_S
from ..bsbf import sjf_bsbf
from ..dally import dally
from ..pollux import Pollux
from ..themis import LEASE_S, Themis
from .augment import CANDIDATES, DEGREES, Cassini, Shifts
from .rules import RuleSource

Ranking = Literal["mean", "worst"]


def themis_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    lease: float = LEASE_S,
    preemption_cost: float = 0.0,
) -> Cassini:
    """Themis augmented: paper cassini's Th+CASSINI."""
    source = Themis(lease, preemption_cost)
    return Cassini("themis+cassini", source, source.clock, candidates, ranking, degrees, shifts)


def pollux_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    round: float = 60.0,
    preemption_cost: float = 30.0,
) -> Cassini:
    """Pollux augmented, jobs of the size that they ask: paper cassini's Po+CASSINI."""
    source = Pollux(round, preemption_cost)
    return Cassini("pollux+cassini", source, source.clock, candidates, ranking, degrees, shifts)


def dally_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    lease: float = DALLY_LEASE_S,
    preemption_cost: tuple[float, ...] = (0.0,),
) -> Cassini:
    """Dally augmented."""
    rule = dally(lease=lease, preemption_cost=preemption_cost).rule
    return Cassini("dally+cassini", RuleSource(rule), rule, candidates, ranking, degrees, shifts)


def bsbf_cassini(
    candidates: int = CANDIDATES,
    ranking: Ranking = "mean",
    degrees: float = DEGREES,
    shifts: Shifts = "worth",
    preemption_cost: tuple[float, ...] = (0.0,),
) -> Cassini:
    """SJF-BSBF augmented."""
    rule = sjf_bsbf(preemption_cost=preemption_cost).rule
    return Cassini("sjf-bsbf+cassini", RuleSource(rule), rule, candidates, ranking, degrees, shifts)
