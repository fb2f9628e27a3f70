"""Metrics of a simulation of regions; see metrics.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..record.raw_record import RawRecord
from .copy_times import BINS
from .spent import SPENT, spend


def type_seconds(s: np.void) -> dict[str, np.ndarray]:
    """Where the unit-seconds of each type went since the first arrival, float64 (types,): all, held, down, free."""
    types = int(s["n_types"])
    whole = s["type_gpus"][:types] * float(s["now_s"] - s["start_s"])
    held, down = s["type_held_s"][:types].copy(), s["type_down_s"][:types].copy()
    return {"all": whole, "held": held, "down": down, "free": whole - held - down}


def copy_seconds(s: np.void, kind: int, shares: Sequence[float]) -> list[float]:
    """Seconds, right to 7 %, that `shares` of complete copies of a kind did not exceed, waits included; nan: none."""
    return seconds_within(s["copy_times"][kind], shares)


def seconds_within(counts: np.ndarray, shares: Sequence[float]) -> list[float]:
    """As `copy_seconds`, from the copies of each bin, perhaps of several runs."""
    if counts.sum() == 0:
        return [math.nan] * len(shares)
    octave, part = np.divmod(np.arange(len(counts) + 1), BINS)
    edges = 2.0**octave * (1.0 + part / BINS)
    reached = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    return [float(np.interp(share, *_risen(reached, edges))) for share in shares]


def _risen(reached: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rises = np.diff(reached) > 0.0
    ends = np.concatenate([[False], rises]) | np.concatenate([rises, [False]])
    return reached[ends], edges[ends]


def in_regions(s: np.void, gpu_compute_s: float, among: np.ndarray | None = None) -> dict[str, float]:
    """The metrics that differ where there are regions, by name; of jobs those of `among`, bool (jobs,), or of all."""
    seconds, cpu = type_seconds(s), int(s["cpu_type"])
    is_gpu = np.arange(int(s["n_types"])) != cpu
    gpu_s = float(seconds["all"][is_gpu].sum())
    arrived = np.ones(int(s["next_arrival"]), bool) if among is None else among[: int(s["next_arrival"])]
    rate, mean_s = _data_waits(s, arrived)
    return {
        "gpu_utilisation": share(gpu_compute_s, gpu_s),
        "allocation_rate": share(float(seconds["held"][is_gpu].sum()), gpu_s),
        "cpu_allocation_rate": share(float(seconds["held"][cpu]), float(seconds["all"][cpu])),
        "fragmentation": share(float(s["fragmented_integral"]), gpu_s),
        "slo_violation_rate": _late_share(s, arrived),
        "bytes_moved": float(s["bytes_moved"]),
        "data_wait_rate": rate,
        "data_wait_mean": mean_s,
    }


def costs(plain: RawRecord) -> dict[str, float]:
    """What a run with prices has cost by now: energy, its $ and kg of CO2, $ for traffic, for storage, and in all."""
    plain.call(spend)
    found = dict(zip(SPENT, plain.record["spent"].tolist(), strict=True))
    return found | {"cost_total": found["energy_cost"] + found["egress_cost"] + found["storage_cost"]}


def _late_share(s: np.void, among: np.ndarray) -> float:
    """Late first starts over arrived jobs with a limit; saving others' state is part of a wait (mast, Sec. 5.5)."""
    n = int(s["next_arrival"])
    limit, first = s["slo_s"][s["job_level"][:n]], s["first_start_s"][:n]
    waited = np.where(first >= 0.0, first + s["first_save_s"][:n], s["now_s"]) - s["arrival_s"][:n]
    limited = np.isfinite(limit) & among
    return share(float((waited > limit)[limited].sum()), float(limited.sum()))


def _data_waits(s: np.void, among: np.ndarray) -> tuple[float, float]:
    n = int(s["next_arrival"])
    lacks = np.where(among, s["lacks_data"][:n], 0)
    waited = np.where(lacks == 1, s["now_s"] - s["arrival_s"][:n], s["data_wait_s"][:n])[lacks > 0]
    return share(float(len(waited)), float(among.sum())), float(waited.mean()) if len(waited) else 0.0


def share(part: float, whole: float) -> float:
    """Part over whole; 0 of nothing."""
    return part / whole if whole > 0.0 else 0.0
