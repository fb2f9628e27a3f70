"""`cheapest` and `greenest`: a workload runs where electricity is cheapest, or has the least carbon, and waits for it.

At every pass of MAST each pending workload, in its turn, goes to the one region, of those with its tables, where it
costs least at the present hour and its parts find free units now; if they do in none, to the cheapest of all, where it
may stop others. Before its first start it is held while a cheaper hour, in any of these regions, begins early enough:
no later than its level lets it wait (its start SLO), and no later than `forecast_h` after its arrival. It is held until
the cheapest of these hours.

What a workload costs in a region is price x watts / speed: the watts by which its units, of all parts, draw more when
held than when free, as free ones draw theirs whoever runs where, and its speed on their types, which says how long they
are held. The types are those that it would get there: the region is chosen by cost, the types in it by `mast`, so the
fastest that are free; where none are, the fastest that the region has. (Where others are stopped `mast` may take a
slower type, by whom that spares.) Only a workload that accepts several types tells them apart; for all others, and
where watts and speeds are alike, the price decides alone. A hold waits for a better price, never for another type: what
it compares are the hours at the types of now.

The forecast is the table of prices itself: it is never wrong, which no real one is. The price of the hour of a start
counts alone, as nobody tells these policies how long a workload runs; traffic and storage do not count, nor do set-up
and checkpoints, which no type shortens. Where no prices are given every hour costs the same: then they are `mast`. They
are baselines of our own, not of paper mast, and so is what a workload costs on a type.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...simulator.base.decisions import Decision, Hold
from ...simulator.base.errors import InputError
from ...simulator.costs.electricity import Electricity
from ...simulator.engine.view import ClusterView
from ...simulator.regions.region_view import regions_in
from ...simulator.warehouse.demands import packs
from ..two_paths import SCAN_S, SLOW, Paths
from .auction import Queue
from .mast import Binding, Passes, paths
from .type_choices import TypeChoices

HOUR_S = 3600.0
FORECAST_H = 24.0


class Way(NamedTuple):
    """Types that a workload may get.

    Attributes:
        parts: types, `A100|H100` if one of both, and units of each part.
        watts: what its units draw more when held, over its speed; 1 where types make no difference.
    """

    parts: list[tuple[str, int]]
    watts: float


class PriceBinding(Binding):
    """Leaves each workload the region that costs least now, or none, if it is to be held.

    Args:
        by_carbon: whether carbon counts, not the price.
        forecast_s: how long after its arrival a workload is held at most, seconds >= 0.
        scan_s: seconds from an hour's beginning to the pass that it is sure of.

    Attributes:
        holds: who is to be held, and until when, as last bound.
    """

    def __init__(self, by_carbon: bool, forecast_s: float, scan_s: float) -> None:
        super().__init__(to_cluster=False)
        self._by_carbon, self._forecast_s, self._scan_s = by_carbon, forecast_s, scan_s
        self._terms: tuple[Any, ...] | None = None
        self._choices: TypeChoices
        self.holds: list[Hold] = []

    def bind(self, view: ClusterView, queue: Queue, pending: int) -> None:
        """See `Binding`."""
        self.holds = []
        table: Electricity | None = view.electricity
        if table is None:
            return
        if not view.has_terms(self._terms):
            self._terms, self._choices = view.terms, TypeChoices.of(view)
        values = table.carbon_g_per_kwh if self._by_carbon else table.price_per_mwh
        hour, free = math.floor(view.now_s / HOUR_S), view.free_by_cluster.copy()
        for job in queue.job[:pending].tolist():
            regions = regions_in(queue.bits[job])
            if not regions:
                continue
            ways = ways_of(view, self._choices, job)
            own = [way_in(view, free, ways, region) for region in regions]
            watts = np.array([way.watts for way in own])
            until_s = self._cheaper_s(view, job, values[regions], watts, hour)
            if until_s is not None:
                self.holds.append(Hold(job, until_s))
                queue.bits[job] = 0
                continue
            costs = values[regions, hour % table.hours] * watts
            order = [regions[place] for place in np.argsort(costs, kind="stable")]
            parts = {region: way.parts for region, way in zip(regions, own, strict=True)}
            found = next((region for region in order if take_free(view, free, parts[region], region)), order[0])
            queue.bits[job] = 1 << found

    def memory(self, simulator: Any) -> None:
        """Nothing: a pass depends on the view alone."""

    def recall(self, simulator: Any, memory: Any) -> None:
        """Nothing."""

    def _cheaper_s(self, view: ClusterView, job: int, values: np.ndarray, watts: np.ndarray, hour: int) -> float | None:
        """When the cheapest hour begins that a workload may wait for; None: there is no cheaper one than the present.

        `values`: float64 (regions, hours), of those where it may run; `watts`: (regions,), what it draws there.
        """
        s = view.record
        if s["starts"][job] > 0:
            return None
        limit_s = float(view.demands.slo_s[view.level(job)])
        last_s = float(s["arrival_s"][job]) + min(limit_s, self._forecast_s) - self._scan_s
        ahead = np.arange(hour + 1, math.floor(last_s / HOUR_S) + 1)
        if len(ahead) == 0:
            return None
        hours = values.shape[1]
        best = (values[:, ahead % hours] * watts[:, None]).min(axis=0)
        if best.min() >= (values[:, hour % hours] * watts).min():
            return None
        return float(ahead[int(best.argmin())]) * HOUR_S


def ways_of(view: ClusterView, choices: TypeChoices, job: int) -> list[Way]:
    """The types that a workload may get, the fastest first; all in one where it draws the same with all of them."""
    found = [Way(view.parts(job), 1.0)]
    if choices.count[job] == 0:
        return found
    names, held_w, units = view.demands.gpu_types, view.record["held_w"], view.demands.part_units[job].tolist()
    parts = [list(zip(kinds, units, strict=False)) for kinds in choices.types(job)]
    draws = [sum(size * float(held_w[kind]) for kind, size in way) for way in parts]
    watts = [draw / speed for draw, speed in zip(draws, choices.speeds(job), strict=True)]
    if len(set(watts)) == 1:
        return found
    return [Way([(names[kind], size) for kind, size in way], w) for way, w in zip(parts, watts, strict=True)]


def way_in(view: ClusterView, free: np.ndarray, ways: list[Way], region: int) -> Way:
    """Which of them a workload gets in a region that can hold it: the fastest that is free, else the fastest there."""
    if len(ways) == 1:
        return ways[0]
    for way in ways:
        if take_free(view, free.copy(), way.parts, region):
            return way
    sizes = view.record["cluster_gpus"][: len(free)].tolist()
    return next(way for way in ways if _holds(view, sizes, way.parts, region))


def _holds(view: ClusterView, sizes: list[int], parts: list[tuple[str, int]], region: int) -> bool:
    """Whether a region's clusters of these sizes, were they empty, have room for parts of one type each."""
    topology = view.topology
    here = np.flatnonzero(np.asarray(topology.cluster_region) == region).tolist()
    return all(
        packs(
            [units for kind, units in parts if kind == own],
            [sizes[one] for one in here if topology.cluster_gpu_type[one] == own],
        )
        for own in {kind for kind, _ in parts}
    )


def take_free(view: ClusterView, free: np.ndarray, parts: list[tuple[str, int]], region: int) -> bool:
    """Modify `free`, int64 (clusters,): parts take the first clusters of a region with room; False: none have.

    `parts`: types, of several `A100|H100`, and units of each.
    """
    topology, left = view.topology, free.copy()
    here = np.flatnonzero(np.asarray(topology.cluster_region) == region).tolist()
    for words, units in sorted(parts, key=lambda part: -part[1]):
        kinds = words.split("|")
        found = [one for one in here if topology.cluster_gpu_type[one] in kinds and left[one] >= units]
        if not found:
            return False
        left[found[0]] -= units
    free[:] = left
    return True


class PricedPasses(Passes):
    """MAST's passes, in which workloads are held for cheaper hours; the arguments are those of `Passes`."""

    _binding: PriceBinding

    def why(self, view: ClusterView, decision: Decision) -> str:
        """See `Passes`; of a hold what is waited for."""
        if isinstance(decision, Hold):
            return "a cheaper hour comes early enough"
        return super().why(view, decision)

    def _place(self, view: ClusterView) -> list[Decision]:
        return [*super()._place(view), *self._binding.holds] if self._pending else []


def priced_scheduler(name: str, slow: str = SLOW, scan_s: float = SCAN_S, forecast_h: float = FORECAST_H) -> Paths:
    """`cheapest`, or `greenest`.

    Args:
        name: which.
        slow: the policy that places tables, or `none`.
        scan_s: seconds from one pass over the queue to the next; 0: at every event.
        forecast_h: hours after its arrival that a workload is held at most, 0 (never) to 8,760.

    Raises:
        InputError: a number out of range.
    """
    if not 0.0 <= forecast_h <= 8760.0:
        raise InputError(f"policy {name}: forecast_h = {forecast_h:g}: expected hours from 0 to 8,760")
    binding = PriceBinding(name == "greenest", forecast_h * HOUR_S, scan_s)
    return paths(name, PricedPasses(name, binding=binding, scan_s=scan_s), slow)
