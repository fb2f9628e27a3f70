"""Topologies by name, each with its source.

Presets without links take numbers of their tiers: `bandwidth_gbps`, `latency_us` and `oversubscription`, each a list
SLOT/MACHINE/RACK/NETWORK with `none` for unknown (`dally:bandwidth_gbps=none/none/100/100`). Networks use only these,
no numbers from the preset's paper (`Topology.written`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..base.tiers import TIER_NAMES, TIERS
from .region_network import CPU_TYPE
from .topology import (
    MOST_LATENCY_US,
    NATURAL,
    PRESETS,
    UNKNOWN_TIERS,
    Tier,
    Topology,
    UserNumbers,
    check_gpu_count,
    checked_order,
    preset,
)

PerTier = tuple[float | None, ...] | None
# Least and most of the numbers that a user may write; the least is left out of bandwidths.
LIMITS = {"bandwidth_gbps": (0.0, math.inf), "latency_us": (0.0, MOST_LATENCY_US), "oversubscription": (1.0, math.inf)}

# Bandwidths: paper dally, Sec. III-C and V-B: NVSwitch inside a machine "up to 900 Gb/s", NVIDIA Quantum
# inside a rack "up to 400 Gb/s per port", NVIDIA Spectrum between racks "up to 800 Gb/s". The paper's
# machine has one NVSwitch and names no slots, so slot and machine have the same bandwidth. Latencies: the
# network that the authors' simulator (ArtISt-sim, github.com/aakash-sharma/cluster-sim) builds: 0 ns in a
# slot, 500 ns between slots, 5 us in a rack, 2 hops of 50 us between racks. Oversubscription is given
# nowhere, so it is unknown (nan).
DALLY_TIERS = (
    Tier("slot", bandwidth_gbps=900.0, latency_s=0.0),
    Tier("machine", bandwidth_gbps=900.0, latency_s=500e-9),
    Tier("rack", bandwidth_gbps=400.0, latency_s=5e-6),
    Tier("network", bandwidth_gbps=800.0, latency_s=100e-6),
)

# Paper sjf-bsbf, Sec. VI-A: machines on 10 Gbps; all else unknown.
BSBF_TIERS = (Tier("slot"), Tier("machine"), Tier("rack", bandwidth_gbps=10.0), Tier("network"))

# Paper harmony, Sec. V-B: machines on 1.1 Gbps; all else unknown.
HARMONY_TIERS = (Tier("slot"), Tier("machine"), Tier("rack", bandwidth_gbps=1.1), Tier("network"))


@preset("flat")
def flat(
    machines: int = 8,
    gpus_per_machine: int = 8,
    slots: int = 1,
    machine_order: str = NATURAL,
    bandwidth_gbps: PerTier = None,
    latency_us: PerTier = None,
    oversubscription: PerTier = None,
) -> Topology:
    """Equal machines in one rack, so racks mean nothing; bandwidths and latencies unknown.

    `machine_order`: natural, or the seed of the random order in which first-fit placers scan machines. InputError: a
    number out of range, slots that do not divide a machine's GPUs, or more than a million GPUs.
    """
    given = _written("flat", bandwidth_gbps, latency_us, oversubscription)
    return _uniform("flat", 1, machines, gpus_per_machine, slots, machine_order, given)


@preset("dally")
def dally(
    racks: int = 2,
    machines: int = 8,
    gpus_per_machine: int = 8,
    slots: int = 2,
    machine_order: str = NATURAL,
    bandwidth_gbps: PerTier = None,
    latency_us: PerTier = None,
    oversubscription: PerTier = None,
) -> Topology:
    """Racks of 8 machines of 8 GPUs in 2 slots of 4: the three-tier data centre of paper dally, Sec. V-B.

    The paper evaluates 2, 4, 8 and 16 racks; `machines` is per rack. The slots are those of the authors' simulator.
    `machine_order`: natural, or the seed of a random order; the authors' simulator scans a hash map, which alone moves
    the makespan at 2 racks by tens of percent. Raises as `flat`.
    """
    given = _written("dally", bandwidth_gbps, latency_us, oversubscription)
    return _uniform("dally", racks, machines, gpus_per_machine, slots, machine_order, given, DALLY_TIERS)


@preset("bsbf-physical")
def bsbf_physical(
    machines: int = 4,
    gpus_per_machine: int = 4,
    bandwidth_gbps: PerTier = None,
    latency_us: PerTier = None,
    oversubscription: PerTier = None,
) -> Topology:
    """The testbed of paper sjf-bsbf, Sec. VI-A: 4 machines of 4 RTX 2080 Ti, 10 Gbps each to a 100 Gbps switch.

    The paper names no GPU interconnect and no latencies: unknown. One rack. Raises as `flat`.
    """
    given = _written("bsbf-physical", bandwidth_gbps, latency_us, oversubscription)
    return _uniform("bsbf-physical", 1, machines, gpus_per_machine, 1, NATURAL, given, BSBF_TIERS, "2080ti")


@preset("bsbf-simulation")
def bsbf_simulation(
    machines: int = 16,
    gpus_per_machine: int = 4,
    bandwidth_gbps: PerTier = None,
    latency_us: PerTier = None,
    oversubscription: PerTier = None,
) -> Topology:
    """The simulated cluster of paper sjf-bsbf, Sec. VI-A: 16 machines of 4 GPUs, like its testbed."""
    given = _written("bsbf-simulation", bandwidth_gbps, latency_us, oversubscription)
    return _uniform("bsbf-simulation", 1, machines, gpus_per_machine, 1, NATURAL, given, BSBF_TIERS, "2080ti")


@preset("harmony")
def harmony(machines: int = 100) -> Topology:
    """The cluster of paper harmony, Sec. V-B: m4.2xlarge machines, 8 vCPUs, 32 GB and 1.1 Gbps each, none with a GPU.

    A machine is one unit of type CPU; one rack. groups/group_config.py has its memory, disk and network. InputError: a
    count below 1, or more than a million machines.
    """
    return _uniform("harmony", 1, machines, 1, 1, NATURAL, UNKNOWN_TIERS, HARMONY_TIERS, CPU_TYPE)


def list_topologies() -> list[dict[str, Any]]:
    """One dict per preset: name, summary, parameters (name -> default), gpus (by default; None: a file says it)."""
    return [
        {
            "name": name,
            "summary": (inspect.getdoc(make) or "").splitlines()[0],
            "parameters": {key: value.default for key, value in inspect.signature(make).parameters.items()},
            "gpus": None if default is None else default.num_gpus - default.num_cpu_machines,
        }
        for name, make in PRESETS.items()
        for default in [None if "file" in inspect.signature(make).parameters else make()]
    ]


def _uniform(
    name: str,
    racks: int,
    machines: int,
    gpus_per_machine: int,
    slots: int,
    machine_order: str,
    given: Sequence[Tier],
    known: Sequence[Tier] = UNKNOWN_TIERS,
    gpu_type: str = "",
) -> Topology:
    counts = {"racks": racks, "machines": machines, "gpus_per_machine": gpus_per_machine, "slots": slots}
    for key, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"topology {name}: {key} = {count!r}, expected a whole number of at least 1")
    if gpus_per_machine % slots:
        raise InputError(
            f"topology {name}: slots = {slots} does not divide gpus_per_machine = {gpus_per_machine} evenly"
        )
    check_gpu_count(racks * machines * gpus_per_machine, f"topology {name}")
    order = checked_order(machine_order, f"topology {name}")
    total = racks * machines
    return Topology.from_counts(
        name,
        slot_gpus=np.full(total * slots, gpus_per_machine // slots),
        machine_slots=np.full(total, slots),
        rack_machines=np.full(racks, machines),
        machine_order=order,
        cluster_gpu_type=[gpu_type],
        tiers=[mine.over(theirs) for mine, theirs in zip(given, known, strict=True)],
        written=UserNumbers(tuple(given)),
    )


def _written(name: str, bandwidth_gbps: PerTier, latency_us: PerTier, oversubscription: PerTier) -> list[Tier]:
    bandwidth = _per_tier(name, "bandwidth_gbps", bandwidth_gbps)
    latency = _per_tier(name, "latency_us", latency_us)
    ratio = _per_tier(name, "oversubscription", oversubscription)
    return [
        Tier(tier, gbps, us * 1e-6, over)
        for tier, gbps, us, over in zip(TIER_NAMES, bandwidth, latency, ratio, strict=True)
    ]


def _per_tier(name: str, key: str, values: PerTier) -> list[float]:
    if values is None:
        return [math.nan] * TIERS
    least, most = LIMITS[key]
    for value in values:
        is_in = value is None or (
            least <= value <= most and math.isfinite(value) and (value > 0 or key != "bandwidth_gbps")
        )
        if not is_in:
            bound = "a finite number more than 0" if key == "bandwidth_gbps" else f"at least {least:g}"
            raise InputError(
                f"topology {name}: {key} = {value:g}, expected {bound}"
                + (f" and at most {most:g}" if most < math.inf else "")
            )
    if len(values) != TIERS:
        shown = "/".join("none" if value is None else f"{value:g}" for value in values)
        raise InputError(
            f"topology {name}: {key} = {shown!r}, expected SLOT/MACHINE/RACK/NETWORK, none for unknown ones"
        )
    return [math.nan if value is None else float(value) for value in values]
