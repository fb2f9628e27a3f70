"""Memory of a group by numbers: the constants with their sources, and the state in which a group is balanced.

Sources: P the paper (Lee et al., "Harmony", ICDCS'21, section in brackets), D derived from numbers in it, O ours.

The collector's curve: a tracing collector's work for a byte allocated is live data over free heap, o/(1 - o); its
excess over the value at the threshold is (o - threshold)/((1 - o)(1 - threshold)), so

    gc(o) = 1 + slope x (o - threshold)/(1 - o)    above the threshold, else 1

with one constant, fitted to the 52.9 s of Sec. V-G by `reload`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.errors import InputError
from .kernels.memory_kernels import balanced_round_s, find_memory_balance

RAM_BYTES = 32e9  # of a machine: m4.2xlarge, P (V-B)
# Bytes in memory over raw bytes. D: with 16 machines of 32 GB three jobs of 454 GB fail and two of 275 GB do not
# (Figure 4), which leaves 1.13 to 1.86. O within that.
EXPANSION = 1.36
EXPANSION_BOUNDS = (1.13, 1.86)
GC_THRESHOLD = 0.7  # share of RAM, O
# O, fitted: the eight jobs of Sec. V-G need 52.9 s at alpha .3 (`reload.fit_gc_slope`). Nothing else is fitted on.
GC_SLOPE = 8.93
DISK_BANDWIDTH = 125e6  # bytes a second of a machine: the EBS rate of m4.2xlarge as we recall it
# Of the spilled input in an iteration. D: a whole pass at alpha .3 takes 45.6 s, between the 44.3 and 52.9 s of V-G.
PASS_FRACTION = 1.0

COLUMNS = ("comp_machine_s", "comm_s", "input_bytes", "model_bytes", "alpha", "alpha_asked", "model_spill", "disk_s")
TERMS = ("ram_bytes", "expansion", "gc_threshold", "gc_slope", "disk_bandwidth", "pass_fraction")


@dataclass(frozen=True)
class MemoryTerms:
    """Machines and runtime as far as memory goes."""

    ram_bytes: float = RAM_BYTES  # of a machine, above 0
    expansion: float = EXPANSION  # bytes in memory over raw bytes, above 0; the paper leaves `EXPANSION_BOUNDS`
    gc_threshold: float = GC_THRESHOLD  # occupancy from which on the collector costs something, 0 to 1
    gc_slope: float = GC_SLOPE  # of its curve, at least 0; 0: it costs nothing
    disk_bandwidth: float = DISK_BANDWIDTH  # bytes a second of a machine, above 0
    pass_fraction: float = PASS_FRACTION  # of the spilled input that an iteration reads, 0 to 1
    spills: bool = True  # False: all stays in memory, and more than fits is out of memory

    def __post_init__(self) -> None:
        for name in ("ram_bytes", "expansion", "disk_bandwidth"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; a number above 0 is expected")
        if not self.gc_slope >= 0:
            raise InputError(f"gc_slope is {self.gc_slope}; a number of at least 0 is expected")
        for name in ("gc_threshold", "pass_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; a number from 0 to 1 is expected")


@dataclass(frozen=True)
class BalancedMemory:
    """The memory of a group.

    Attributes:
        alpha, model_spill: float64 (n,), shares of input and model on disk.
    """

    alpha: np.ndarray
    model_spill: np.ndarray
    disk_s: np.ndarray  # float64 (n,), seconds for one pass over the spilled bytes
    occupancy: float  # share of the group's RAM that is filled
    gc: float  # factor on every COMP, at least 1
    round_s: float  # seconds of one round of the group, Eq. (1) with the collector, and not less than its disks need
    out_of_memory: bool


def memory_dtype(jobs: int, groups: int = 1) -> np.dtype:
    """A record with room for as many jobs and groups, for `find_memory_balance`."""
    return np.dtype(
        [(name, "f8", (jobs,)) for name in COLUMNS]
        + [("next_member", "i8", (jobs,))]
        + [(name, "i8", (groups,)) for name in ("first_member", "group_machines")]
        + [(name, "f8", (groups,)) for name in ("group_gc", "group_occupancy")]
        + [(name, "f8") for name in TERMS]
        + [("spills", "i8")],
        align=True,
    )


def balanced(
    comp_machine_s: Sequence[float] | np.ndarray,
    comm_s: Sequence[float] | np.ndarray,
    input_bytes: Sequence[float] | np.ndarray,
    model_bytes: Sequence[float] | np.ndarray,
    machines: int,
    asked: Sequence[float] | np.ndarray | None = None,
    terms: MemoryTerms | None = None,
) -> BalancedMemory:
    """The state in which a group of jobs on `machines` machines is balanced.

    Args:
        comp_machine_s, comm_s: of an iteration, (n,), n >= 1: machine-seconds of COMP, seconds of COMM.
        input_bytes, model_bytes: (n,), raw.
        asked: (n,) shares of input on disk, 0 to 1; negative: that job climbs. None: all do.
    """
    terms = terms or MemoryTerms()
    jobs = len(comp_machine_s)
    if jobs < 1 or machines < 1:
        raise InputError(f"a group of {jobs} jobs on {machines} machines: at least one of each is expected")
    room = max(64, 1 << (jobs - 1).bit_length())  # of few sizes: each is compiled for
    s = np.zeros(1, memory_dtype(room)).view(np.recarray)[0]
    columns = {"comp_machine_s": comp_machine_s, "comm_s": comm_s, "input_bytes": input_bytes}
    columns |= {"model_bytes": model_bytes, "alpha_asked": np.full(jobs, -1.0) if asked is None else asked}
    for name, values in columns.items():
        if len(values) != jobs:
            raise InputError(f"{name} has {len(values)} values; one for each of {jobs} jobs is expected")
        if (name != "alpha_asked" and not np.min(values) >= 0) or not np.max(values) < np.inf:
            raise InputError(f"{name} has {min(values)} to {max(values)}; finite numbers of at least 0 are expected")
        s[name][:jobs] = values
    if np.max(s["alpha_asked"]) > 1:
        raise InputError(f"a share of {np.max(s['alpha_asked'])} is asked for; at most 1 is expected")
    for name in (*TERMS, "spills"):
        s[name] = getattr(terms, name)
    s["next_member"][:jobs] = [*range(1, jobs), -1]
    s["group_machines"] = machines
    out_of_memory = find_memory_balance(s, 0)
    gc = float(s["group_gc"][0])
    return BalancedMemory(
        alpha=s["alpha"][:jobs].copy(),
        model_spill=s["model_spill"][:jobs].copy(),
        disk_s=s["disk_s"][:jobs].copy(),
        occupancy=float(s["group_occupancy"][0]),
        gc=gc,
        round_s=balanced_round_s(s, 0),
        out_of_memory=bool(out_of_memory),
    )
