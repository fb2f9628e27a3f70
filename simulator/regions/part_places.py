"""Free units for a job of parts, as a policy in Python may ask for them: each part in one cluster, all in one region.

The parts take, one after the other, clusters of a type that they accept, the job's fastest type first, then the one
with the fewest free units; whatever fits all parts is found. Inside a cluster a part takes the machine, or the rack,
with the fewest free units that suffice, else the machines with most free ones.
"""

from __future__ import annotations

import numpy as np

from ..base.tiers import MACHINE, NETWORK
from ..cluster.topology import Topology
from .region_view import RegionView

Part = tuple[list[int], int]  # the clusters that it may take, the best first; its units


def find_parts(view: RegionView, free: np.ndarray, job: int, tier: int) -> list[int] | None:
    """Units of `free`, int64 ascending, part after part, each inside one machine, rack or cluster (`tier`); or None."""
    topology, demands = view.topology, view.demands
    kind, room = demands.cluster_type(topology), view.free_by_cluster
    speed = view.unit_speeds[job]
    cluster = topology.gpu_cluster[free]
    within = {place: free[cluster == place] for place in np.unique(cluster).tolist()}
    for region in view.regions_of(job):
        here = [place for place in within if topology.cluster_region[place] == region and kind[place] >= 0]
        here.sort(key=lambda place: (-speed[kind[place]], room[place], place))
        parts = [
            ([place for place in here if kind[place] in kinds], units)
            for kinds, units in zip(demands.types_of(job), demands.part_units[job].tolist(), strict=False)
        ]
        if (found := _fill(topology, within, parts, tier)) is not None:
            return found
    return None


def _fill(topology: Topology, within: dict[int, np.ndarray], parts: list[Part], tier: int) -> list[int] | None:
    if not parts:
        return []
    places, need = parts[0]
    for place in places:
        taken = choose_units(topology, within[place], need, tier)
        if taken is None:
            continue
        left = {**within, place: np.setdiff1d(within[place], taken)}
        if (rest := _fill(topology, left, parts[1:], tier)) is not None:
            return [*taken.tolist(), *rest]
    return None


def choose_units(topology: Topology, free: np.ndarray, need: int, tier: int) -> np.ndarray | None:
    """`need` of these units, inside the machine or rack with fewest that suffice, or anywhere; None: no room."""
    machine, rack = topology.gpu_machine[free], topology.gpu_rack[free]
    if tier < NETWORK:
        place = machine if tier == MACHINE else rack
        room = np.bincount(place)
        fits = np.flatnonzero(room >= need)
        if len(fits) == 0:
            return None
        chosen = place == fits[room[fits].argmin()]
        free, machine, rack = free[chosen], machine[chosen], rack[chosen]
    order = np.lexsort((free, -np.bincount(machine)[machine], -np.bincount(rack)[rack]))
    return free[order[:need]] if need <= len(free) else None
