"""What `duration_s` means: the one definition of a job's isolated time, under every network.

`duration=isolated`, the default: `duration_s` is the run time alone on the best placement that a gang of its size can
have on the empty cluster, communication included. `duration=compute`: it is computing alone, as the authors of paper
dally read their traces. `best` being the slowdown of the best placement by this network:

    isolated:  base = as in the workload       compute = base / best
    compute:   compute = as in the workload    base = compute x best

Rates are made of `compute`; orders, predictions, slowdowns, rewards of `base`. In regions the gang of a part are its
GPUs, of a type that it accepts; a workload takes as long as its slowest part (jobs/part_gangs.py).

The best placement is on one machine where one holds the gang, else in one rack, else on the fewest racks; there on the
fewest machines, then slots. It is best by definition: under `allreduce` a gang spread evenly over two racks can be
quicker than on one rack's longer ring; slowdowns below 1 are such placements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from ..base.tiers import SLOT
from ..cluster.unit_types import gpus_of, only

if TYPE_CHECKING:
    from ..cluster.topology import Topology
    from .network_model import Network

Duration = Literal["isolated", "compute"]
ISOLATED: Duration = "isolated"
COMPUTE: Duration = "compute"


@dataclass(frozen=True)
class Shape:
    """The slots, machines and racks of a gang in all; GPUs, slots, machines in the largest slot, machine, rack."""

    slots: int = 1
    machines: int = 1
    racks: int = 1
    most_gpus: int = 1
    most_slots: int = 1
    most_machines: int = 1


_SHAPES: WeakKeyDictionary[Topology, dict[int, Shape]] = WeakKeyDictionary()  # the best ones known, by gang size


def gang_factors(network: Network, workload: Any, topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """What `network.tier_factors` says of the gangs of a workload, `workload.gangs`, on the GPUs of a topology."""
    has_gpus = topology.num_gpus > topology.num_cpu_machines
    return network.tier_factors(workload.gangs, gpus_of(topology) if has_gpus else topology)


def iteration_times_s(
    network: Network, workload: Any, topology: Topology, profile: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds per iteration without the network, and isolated, float64 (n,) each; see the module, `gang_factors`."""
    given_s = workload.iteration_s
    best = best_slowdowns(network, workload, topology, profile, factors)
    if getattr(network, "duration", ISOLATED) == COMPUTE:
        return given_s, given_s * best
    return given_s / best, given_s


def best_slowdowns(
    network: Network, workload: Any, topology: Topology, profile: np.ndarray, factors: np.ndarray
) -> np.ndarray:
    """Slowdown of each job on its best placement, relative to its computing, float64 (n,); arguments as above."""
    gangs = workload.gangs
    if gangs is workload:
        return _best(network, workload, gpus_of(topology), profile, factors)
    best = np.ones(len(gangs))
    for kinds, rows in gangs.by_types:
        best[rows] = _best(network, gangs.take(rows), only(topology, kinds), profile[rows], factors)
    return np.maximum.reduceat(best, gangs.first)


def _best(network: Network, gangs: Any, topology: Topology, profile: np.ndarray, factors: np.ndarray) -> np.ndarray:
    if hasattr(network, "best_factors"):  # a ShapedNetwork: the tier alone does not say it
        best: np.ndarray = network.best_factors(gangs, topology, profile)
        return best
    return factors[profile, innermost_tiers(topology, np.asarray(gangs.gpus))]


def innermost_tiers(topology: Topology | None, gpus: np.ndarray) -> np.ndarray:
    """The innermost tier that holds each gang on the empty cluster, int64 (n,)."""
    if topology is None:
        return np.full(len(gpus), SLOT)
    return topology.largest.searchsorted(gpus)


def best_shape(topology: Topology | None, gpus: int) -> Shape:
    """The shape of the best placement of a gang on the empty cluster; see the module."""
    if topology is None:
        return Shape(most_gpus=gpus)
    shapes = _SHAPES.setdefault(topology, {})
    if gpus not in shapes:
        shapes[gpus] = _best_shape(topology, gpus)
    return shapes[gpus]


def _best_shape(topology: Topology, gpus: int) -> Shape:
    slot, machine, rack = topology.largest.tolist()
    if gpus <= slot:
        return Shape(most_gpus=gpus)
    if gpus <= machine:
        fitting = np.flatnonzero(topology.machine_gpus >= gpus)
        return min((_filled(topology, [one], gpus) for one in fitting.tolist()), key=_size)
    if gpus > rack:
        return _filled(topology, _largest_racks(topology, gpus), gpus)
    fitting = np.flatnonzero(np.bincount(topology.machine_rack, weights=topology.machine_gpus) >= gpus)
    return min((_filled(topology, _machines(topology, [one]), gpus) for one in fitting.tolist()), key=_size)


def _size(shape: Shape) -> tuple[int, int, int]:
    return shape.racks, shape.machines, shape.slots


def _largest_racks(topology: Topology, gpus: int) -> Sequence[int]:
    room = np.bincount(topology.machine_rack, weights=topology.machine_gpus)
    order = np.argsort(-room, kind="stable")
    count = int(room[order].cumsum().searchsorted(gpus)) + 1
    return _machines(topology, order[:count].tolist())


def _machines(topology: Topology, racks: Sequence[int]) -> list[int]:
    found = np.flatnonzero(np.isin(topology.machine_rack, racks))
    return found[np.argsort(-topology.machine_gpus[found], kind="stable")].tolist()


def _filled(topology: Topology, machines: Sequence[int], gpus: int) -> Shape:
    """The shape of a gang that takes these machines one after the other, of each the largest slots first."""
    used_slots: list[int] = []
    in_slot: list[int] = []
    racks: list[int] = []
    for machine in machines:
        slots = topology.slot_gpus[topology.slot_machine == machine]
        sizes = np.sort(slots)[::-1]
        held = np.minimum(sizes, np.maximum(gpus - (sizes.cumsum() - sizes), 0))
        held = held[held > 0]
        used_slots.append(len(held))
        in_slot.append(int(held.max()))
        racks.append(int(topology.machine_rack[machine]))
        gpus -= int(held.sum())
        if gpus == 0:
            break
    in_rack = np.unique(racks, return_counts=True)[1]
    return Shape(sum(used_slots), len(racks), len(in_rack), max(in_slot), max(used_slots), int(in_rack.max()))
