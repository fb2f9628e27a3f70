"""Published measures of a warehouse as it lies (paper mast, Sec. 5.3 and 5.6), and the cost of its Figure 4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..regions.region_view import RegionView
from ..warehouse.warehouse import Warehouse
from . import replicas as kernels
from .placement import Objective, Placement


@dataclass(frozen=True)
class PlacementState:
    """As tables lie; rates are percentages, of recurring jobs unless all training jobs are named.

    Attributes:
        worst, deviation: demand over supply of GPU-hours of high-priority jobs, largest and standard deviation over the
            regions (0 without GPUs); a job counts at its tables' home, else where replicas let it run, with most GPUs
            of its types (Sec. 3.5), the lowest number among equals.
        least: that of the same jobs over all regions together, a lower bound of `worst`.
        home: training jobs that train at home.
        collocated, collocated_at_home: GPU-hours of high-priority jobs with tables and GPUs in a region; replicas
            count, or not.
        extra: bytes of replicas over those of all tables.
        waiting: all training jobs, first-time ones too, that no region has tables and GPUs for.
        two, four: of all training jobs, those with so many candidate regions or more.
    """

    worst: float
    deviation: float
    least: float  # that of the same jobs over all regions together, a lower bound of `worst`
    home: float  # training jobs that train at home
    collocated: float
    collocated_at_home: float
    extra: float  # bytes of replicas over those of all tables
    waiting: float  # all training jobs, first-time ones too, that no region has tables and GPUs for
    two: float
    four: float


def runs_in(warehouse: Warehouse, copies: np.ndarray | None = None) -> np.ndarray:
    """Which regions have all tables of a job, and its GPUs: bool (jobs, regions)."""
    jobs = warehouse.jobs
    found = np.zeros((len(jobs), len(warehouse.world)), bool)
    lies = warehouse.tables.copies if copies is None else copies
    sets = jobs.type_sets
    kernels.runs_in(jobs.first, jobs.table, sets.row, warehouse.offered(sets), lies, found)
    return found


def placement_state_of(warehouse: Warehouse) -> PlacementState:
    """What is published of a warehouse, as it lies. Setting: tetris, Sec. 5.3 and 5.6."""
    jobs, world = warehouse.jobs, warehouse.world
    rows = np.arange(len(warehouse.tables))
    at_home = np.zeros_like(warehouse.tables.copies)
    at_home[rows, warehouse.tables.home] = True
    first, some = runs_in(warehouse, at_home), runs_in(warehouse)
    known, high = jobs.training & jobs.recurring, jobs.high & jobs.recurring
    gpus = world.gpus.sum(axis=1)
    offered = np.abs(warehouse.offered(jobs.type_sets))[jobs.type_sets.row]
    region = np.where(first.any(axis=1), first.argmax(axis=1), np.where(some, offered, -1).argmax(axis=1))
    counted = high & (some.any(axis=1) | first.any(axis=1))
    demand = np.bincount(region[counted], jobs.gpu_hours[counted], len(world))
    load = demand / np.maximum(24.0 * gpus, 1e-9)
    hours = jobs.gpu_hours * high
    tables = warehouse.tables
    further = tables.held_bytes.astype(np.float64).sum(axis=1) - tables.size_bytes
    return PlacementState(
        worst=float(load.max()),
        deviation=float(load.std()),
        least=float(demand.sum() / max(24.0 * gpus.sum(), 1e-9)),
        home=_percent(first[known].any(axis=1)),
        collocated=_percent(np.asarray(some.any(axis=1)), hours),
        collocated_at_home=_percent(np.asarray(first.any(axis=1)), hours),
        extra=100.0 * float(further.sum() / tables.size_bytes.astype(np.float64).sum()),
        waiting=_percent(~some[jobs.training].any(axis=1)),
        two=_percent(some[jobs.training].sum(axis=1) >= 2),
        four=_percent(some[jobs.training].sum(axis=1) >= 4),
    )


def _percent(those: np.ndarray, weight: np.ndarray | None = None) -> float:
    weights = np.ones(len(those)) if weight is None else weight
    whole = float(weights.sum())
    return 100.0 * float(weights[those].sum()) / whole if whole > 0.0 else 0.0


TABLE_METRICS = ("placement_cost", "worst_region_load", "home_rate", "collocated_rate", "home_start_rate")


def table_metrics(view: RegionView) -> dict[str, float]:
    """How the tables stand once everything that is on the way has arrived, by name; see metrics.py. None: all 0."""
    if not len(view.demands.tables):
        return dict.fromkeys(TABLE_METRICS, 0.0)
    warehouse = view.projected_warehouse()
    state = placement_state_of(warehouse)
    cost = Placement(warehouse, Objective()).cost
    shares = state.home / 100.0, state.collocated / 100.0, _home_starts(view.record)
    return dict(zip(TABLE_METRICS, (cost, state.worst, *shares), strict=True))


def _home_starts(s: np.void) -> float:
    """Jobs that started first where all their tables had their home, of those that started and read any."""
    n = int(s["next_arrival"])
    started = (s["first_start_s"][:n] >= 0.0) & (s["n_reads"][:n] > 0)
    return float(s["home_start"][:n][started].sum()) / max(1, int(started.sum()))
