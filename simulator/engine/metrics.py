"""The metrics of a run, one definition each, in the papers' terms: metric_registry.py lists them.

Seconds, bytes, fractions; nan where nothing is to average. Placement metrics of regions are of the tables after all
transfers and the training jobs that the slow path knows; costs count from the first arrival on. In regions
`gpu_utilisation`, `allocation_rate` and `fragmentation` are of GPUs alone; the GPU-seconds below count CPU machines
too, and `type_seconds` tells them apart.

GPU-seconds add up: held = computing + communicating + restoring + lost, and all = held + free + down.

Where jobs share GPUs, `held` has each second once for every job that holds the GPU: held = computing + communicating +
interfering + restoring + lost, and all = busy + free + down, where `busy` has it once. Communicating is then the cost
of placement and gradient accumulation beyond the best, interfering that of the partners. `gpu_utilisation` may exceed
1: two jobs that share a GPU may do more in a second than one alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.codes import DONE, RUNNING
from ..flows.iterations import PER_FOLD, SHORTEST_S
from ..flows.sessions import LEAST_S
from ..jobs.workload import Workload
from ..record.raw_record import RawRecord
from ..regions.region_metrics import costs, in_regions, share
from .finished_jobs import FAIRNESS, JCT, QUEUED, SLOWDOWN, TIMES, FinishedJobs
from .metric_registry import NAMES


def totals(raw: RawRecord, among: np.ndarray | None = None) -> dict[str, float]:
    """All metrics of the run so far, in the order of `NAMES`.

    `among`: bool (jobs,), the jobs whose times count, and give the makespan from arrival to finish; None: all.
    """
    s, jobs = raw.record, FinishedJobs(raw, among)
    jct_mean, queued_mean, comm_mean, slowdown_mean, fairness_mean = jobs.means()
    jct_median, jct_p95, jct_p99 = quantiles(jobs.times[JCT])
    _, queued_p95, queued_p99 = quantiles(jobs.times[QUEUED])
    fairness = jobs.times[FAIRNESS]
    end_s = jobs.last_finish_s if jobs.are_all else float(s["now_s"])
    start_s = float(s["start_s"] if among is None else s["arrival_s"][: s["n_jobs"]][among][0])
    gpu_s = gpu_seconds(s)
    return dict.fromkeys(NAMES, 0.0) | {
        "jct_mean": jct_mean,
        "jct_median": jct_median,
        "jct_p95": jct_p95,
        "jct_p99": jct_p99,
        "makespan": end_s - start_s,
        "queueing_delay_mean": queued_mean,
        "queueing_delay_p95": queued_p95,
        "queueing_delay_p99": queued_p99,
        "comm_time_mean": comm_mean,
        "slowdown_mean": slowdown_mean,
        "finish_time_fairness_mean": fairness_mean,
        "finish_time_fairness_max": float(fairness.max()) if jobs.count else float("nan"),
        "gpu_utilisation": share(gpu_s["compute"], gpu_s["all"]),
        "allocation_rate": share(gpu_s["busy"], gpu_s["all"]),
        "fragmentation": share(float(s["fragmented_integral"]), gpu_s["all"]),
        "jobs_finished": float(jobs.count),
        "preemptions": float(s["preemptions"]),
        "migrations": float(s["migrations"]),
        "failures": float(s["failures"]),
        "gpu_hours_lost": float(s["lost_gpu_s"]) / 3600.0,
        "slo_violation_rate": share(jobs.late, jobs.due),
        **({name: float(s[name]) for name in ("outages", "stopped_for_outages")} if len(s["group_down"]) > 1 else {}),
        **(_network(s) if s["n_links"] else {}),
        **(in_regions(s, gpu_s["gpu_compute"], among) if s["n_regions"] else {}),
        **(costs(raw) if s["n_hours"] else {}),
    }


def gpu_seconds(s: np.void) -> dict[str, float]:
    """Where all GPU-seconds since the first arrival went, by name, unfinished stretches included; see the module.

    all, held, busy, shared (by several), compute, comm, interference, restore, lost, down, free; with regions
    gpu_compute, of GPUs alone.
    """
    is_shared = len(s["gpu_job"]) > len(s["gpu_slot"])
    parts = {
        "all": float(s["n_gpus"] * (s["now_s"] - s["start_s"])),
        "held": float(s["used_gpu_s"]),
        "compute": float(s["compute_gpu_s"]),
        "comm": float(s["comm_gpu_s"]),
        "interference": float(s["interference_gpu_s"]),
        "restore": float(s["restore_gpu_s"]),
        "lost": float(s["lost_gpu_s"]),
        "down": float(s["down_integral"]),
        "shared": float(s["shared_integral"]),
    }
    if s["n_regions"]:
        parts["gpu_compute"] = float(s["gpu_compute_s"])
    if s["running"]:
        for name, seconds in _unbooked(s, is_shared).items():
            parts[name] += float(seconds)
    parts["busy"] = float(s["busy_integral"]) if is_shared else parts["held"]
    parts["free"] = parts["all"] - parts["busy"] - parts["down"]
    return parts


def _unbooked(s: np.void, is_shared: bool) -> dict[str, np.float64]:
    """What the stretches of jobs that still run add to `gpu_seconds`."""
    running = s["runner"][: s["running"]]
    gpus, now = s["gpus"][running], s["now_s"]
    begun = s["booked_s" if is_shared else "started_s"][running]
    held = now - begun
    ran = np.maximum(0.0, now - s["since_s"][running])
    left_s = s["iterations_left"][running] * s["iteration_s"][running]
    over = (
        np.maximum(0.0, ran - left_s) if s["chunk"] > 0.0 else np.zeros(len(running))
    )  # as lifecycle/lifecycle.py books it
    ran = ran - over
    done = ran / s["iteration_s"][running]
    computed = done * s["compute_iteration_s"][running] / _size_ratio(s, running)
    hindered = ran - done * s["solo_s"][running] if is_shared else np.zeros(len(running))
    restoring = np.minimum(held, np.maximum(0.0, s["since_s"][running] - begun))
    idle = np.zeros(len(running))
    if s["auctions"]:
        idle = np.where(s["next_first_gpu"][running] >= 0, now - s["reserved_s"][running], 0.0)  # a gang to move to
    return {
        "held": (gpus * (held + idle)).sum(),
        "compute": (gpus * computed).sum(),
        "comm": (gpus * (ran - hindered - computed)).sum(),
        "interference": (gpus * hindered).sum(),
        "restore": (gpus * (restoring + idle)).sum(),
        "lost": (gpus * over).sum(),
        **({"gpu_compute": (s["gpu_units"][running] * computed).sum()} if s["n_regions"] else {}),
    }


def job_table(raw: RawRecord, workload: Workload) -> dict[str, np.ndarray]:
    """One row a job, in order of arrival; times are nan for what has not happened."""
    s, n = raw.record, int(raw.record["n_jobs"])
    finished = s["status"][:n] == DONE
    times = np.full((TIMES, n), np.nan)
    times[:, finished] = FinishedJobs(raw).times
    interference_s = s["interference_s"][:n] if len(s["gpu_job"]) > len(s["gpu_slot"]) else np.zeros(n)
    return {
        **times_of_jobs(s, workload, s["comm_s"][:n], s["first_start_s"][:n] >= 0.0),
        "interference_s": np.where(finished, interference_s, np.nan),
        "slowdown": times[SLOWDOWN],
        "finish_time_fairness": times[FAIRNESS],
        "preemptions": s["preempted"][:n].copy(),
        "tier": np.where((s["status"][:n] == RUNNING) | finished, s["tier"][:n], -1),
    }


def times_of_jobs(s: np.void, workload: Workload, comm_s: np.ndarray, started: np.ndarray) -> dict[str, np.ndarray]:
    """The first columns of a table of jobs, with `comm_s`, float64 (jobs,), and whether each has `started`."""
    n = int(s["n_jobs"])
    finished = s["status"][:n] == DONE
    finish = np.where(finished, s["finish_s"][:n], np.nan)
    return {
        "job_id": workload.job_id,
        "model": workload.model,
        "gpus": s["gpus"][:n].copy(),
        "arrival_s": s["arrival_s"][:n].copy(),
        "duration_s": np.asarray(workload.duration_s),
        "first_start_s": np.where(started, s["first_start_s"][:n], np.nan),
        "finish_s": finish,
        "jct_s": finish - s["arrival_s"][:n],
        "queueing_delay_s": np.where(finished, s["queued_s"][:n], np.nan),
        "comm_time_s": np.where(finished, comm_s, np.nan),
        "restore_s": np.where(finished, s["restore_s"][:n], np.nan),
    }


def _network(s: np.void) -> dict[str, float]:
    jobs = np.flatnonzero(s["is_sending"][: s["n_jobs"]])
    unmet = s["send_top"][jobs] - s["send_rate"][jobs]
    unbooked = s["held_flows"][jobs] * unmet * (s["phase_now_s"] - s["sent_since_s"][jobs])
    count, total_s, bins = int(s["iteration_count"]), float(s["iteration_sum_s"]), s["iteration_bins"].copy()
    for job in s["runner"][: s["running"]]:
        if s["stays"][job] == 0 or s["averages"]:  # its iterations are counted when it leaves its GPUs
            seconds = float(s["iteration_s"][job] * _size_ratio(s, job))
            rounds = int(max(0.0, s["now_s"] - s["since_s"][job]) / seconds + LEAST_S)
            count, total_s = count + rounds, total_s + rounds * seconds
            bins[max(0, min(len(bins) - 1, int(PER_FOLD * math.log(seconds / SHORTEST_S))))] += rounds
    return {
        "congestion_bytes": float(s["job_congestion"][: s["n_jobs"]].sum() + unbooked.sum() + s["averaged_bytes"]),
        "iteration_time_mean": total_s / count if count else float("nan"),
        "iteration_time_p99": _binned_quantile(bins, 0.99),
        "shift_adjustments": float(s["adjustments"]),
        **(_outages(s, jobs[s["cut_off"][jobs] > 0]) if s["links_change"] else {}),
    }


def _outages(s: np.void, stalled: np.ndarray) -> dict[str, float]:
    unbooked_s = (s["phase_now_s"] - s["sent_since_s"][stalled]).sum()
    return {"link_failures": float(s["link_failures"]), "stalled_s": float(s["stalled_s"] + unbooked_s)}


def _size_ratio(s: np.void, jobs: Any) -> Any:
    return s["gpus"][jobs] / s["own_gpus"][jobs] if int(s["n_links"]) else 1.0


def _binned_quantile(bins: np.ndarray, share: float) -> float:
    """A quantile of durations of which only the logarithmic bins of flows/iterations.py are known: to 0.9 %."""
    below = np.cumsum(bins)
    if below[-1] == 0:
        return float("nan")
    place = int(np.searchsorted(below, share * below[-1]))
    within = 1.0 - (below[place] - share * below[-1]) / bins[place]
    return float(SHORTEST_S * np.exp((place + within) / PER_FOLD))


def quantiles(values: np.ndarray) -> list[float]:
    """Median, 95th and 99th percentile, linear between neighbours: what np.quantile gives, in a tenth of its time."""
    if not len(values):
        return [float("nan")] * 3
    ordered, last = np.sort(values), len(values) - 1
    found = []
    for part in (0.5, 0.95, 0.99):
        place = part * last
        below = int(place)
        low, high = ordered.item(below), ordered.item(min(below + 1, last))
        weight = place - below
        found.append(low + (high - low) * weight if weight < 0.5 else high - (high - low) * (1.0 - weight))
    return found
