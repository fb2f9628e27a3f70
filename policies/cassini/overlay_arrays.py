"""An `Overlay` as the arrays that compiled code searches, and what each rotation of one job costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...simulator.contention.circle import MOST_ITERATIONS
from .compatibility_score import Overlay
from .overlap import Laid, lay_levels, lay_turns
from .rotation_costs import ABREAST, PADDED, SEEN, Lines, lay_amounts, lay_runs

MOST_BITS = 40  # of a link's capacity in units: one unit is 1e-12 of it
LINE_BITS = 30  # of numbers in `Lines`, of which there is one at each end of the runs of a job
SUM_BITS = 60  # that the largest sum of units may take


def lay(overlay: Overlay) -> Laid:
    """The overlay in arrays, nobody put anywhere yet. Demands are rounded to 1e-12 of a capacity, or a little more."""
    jobs, angles = overlay.demand.shape
    turns = np.array([len(shifts) for shifts in overlay.shifts], np.int64)
    shift = np.zeros((jobs, int(turns.max())), np.int64)
    for job, shifts in enumerate(overlay.shifts):
        shift[job, : len(shifts)] = shifts
    flows = np.zeros((len(overlay.links), jobs), np.int64)
    for position, link in enumerate(overlay.links):
        flows[position, list(link.jobs)] = link.flows
    capacity = np.array([link.capacity for link in overlay.links], np.float64)
    runs = 1 + int(np.count_nonzero(np.diff(overlay.demand, axis=1), axis=1).max())
    shapes = {
        "folds": (jobs,),
        "levels": (jobs,),
        "first": (jobs, runs + 1),
        "start": (jobs, runs),
        "end": (jobs, runs),
        "amount": (len(flows), jobs, runs),
        "whole": (len(flows), jobs),
        "spent": (1,),
        "rest": (len(flows), angles),
        "sums": (2 * angles + 1,),
        "cost": (shift.shape[1],),
    }
    wanted = float((flows @ overlay.demand.max(axis=1) / capacity).sum())
    bits = SUM_BITS - math.ceil(math.log2((wanted + len(flows) + 1) * angles))
    room = np.array([1 << min(MOST_BITS, bits)], np.int64)
    zeros = {name: np.zeros(shape, np.int64) for name, shape in shapes.items()}
    laid = Laid(shift=shift, turns=turns, flows=flows, room=room, **zeros)
    lay_levels(laid, overlay.demand, capacity, np.array(overlay.circle.iterations, np.int64))
    return laid


def lay_lines(overlay: Overlay, laid: Laid) -> Lines:
    """What a descent over an overlay needs besides."""
    links, jobs, _ = laid.amount.shape
    angles = laid.rest.shape[1]
    most = max(int(laid.amount.max(initial=0)) * MOST_ITERATIONS, int(laid.amount.max(axis=2).sum(axis=1).max()))
    coarse = max(0, most.bit_length() - LINE_BITS)
    levels, runs = int(laid.levels.max()), int((laid.folds * laid.first.max(axis=1)).max())
    runs += -runs % ABREAST
    whole = {
        "reach": (jobs,),
        "runs": (jobs, levels),
        "start": (jobs, levels, runs),
        "end": (jobs, levels, runs),
        "sums": (angles + PADDED,),
        "cost": (laid.shift.shape[1],),
        "seen": (SEEN,),
    }
    short = {
        "amount": (links, jobs, levels),
        "own": (links, jobs, 2 * angles),
        "total": (links, angles),
        "more": (2 * angles + PADDED,),
        "slope": (angles + PADDED,),
    }
    lines = Lines(
        coarse=np.array([coarse], np.int64),
        iterations=np.array(overlay.circle.iterations, np.int64),
        **{name: np.zeros(size, np.int64) for name, size in whole.items()},
        **{name: np.zeros(size, np.int32) for name, size in short.items()},
    )
    lay_runs(laid, lines)
    lay_amounts(laid, lines)
    return lines


def excess_by_rotation(overlay: Overlay, rotation: Sequence[int], job: int) -> np.ndarray:
    """What each rotation of one job costs, the others as they are: float64 (rotations of the job,).

    The sum over the overlay's links of the average excess demand, as a fraction of the capacity: 1 - Eq. 2 of paper
    cassini, summed.
    """
    laid = lay(overlay)
    lay_turns(laid, np.asarray(rotation, np.int64), job)
    return laid.cost[: laid.turns[job]] / float(laid.room[0] * overlay.demand.shape[1])
