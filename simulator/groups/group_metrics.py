"""Metrics of job groups: those of engine/metric_registry.py that mean something there, and those of groups alone.

Machine-seconds add up: all = in groups + free + down. COMP that is done is that of finished jobs; `gpu_hours_lost` is
what failures undid, in machine-hours.
"""

from __future__ import annotations

import numpy as np

from ..base.codes import DONE
from ..engine.metric_registry import NAMES
from ..engine.metrics import quantiles, times_of_jobs
from ..jobs.workload import Workload
from ..regions.region_metrics import share


def group_totals(s: np.void, among: np.ndarray | None = None) -> dict[str, float]:
    """All metrics of the run so far, in the order of the registry; `among` as in metrics.py."""
    n = int(s["n_jobs"])
    finished = s["status"][:n] == DONE
    chosen = np.ones(n, bool) if among is None else among
    done = finished & chosen
    finish, arrival = s["finish_s"][:n][done], s["arrival_s"][:n][done]
    jct, queued = finish - arrival, s["queued_s"][:n][done]
    whole_s = (float(s["finish_s"][:n].max()) if finished.all() else float(s["now_s"])) - float(s["start_s"])
    end_s = float(finish.max()) if finished[chosen].all() else float(s["now_s"])
    all_s = float(s["n_machines"]) * whole_s
    moving_s = float(s["moving_integral"])
    jct_quantiles, queued_quantiles = quantiles(jct), quantiles(queued)
    isolated_s = (s["iterations"][:n] * s["base_iteration_s"][:n])[done]
    return dict.fromkeys(NAMES, 0.0) | {
        "jct_mean": _mean(jct),
        "jct_median": jct_quantiles[0],
        "jct_p95": jct_quantiles[1],
        "jct_p99": jct_quantiles[2],
        "makespan": end_s - float(s["arrival_s"][:n][chosen][0]),
        "queueing_delay_mean": _mean(queued),
        "queueing_delay_p95": queued_quantiles[1],
        "queueing_delay_p99": queued_quantiles[2],
        "comm_time_mean": _mean(s["exposed_s"][:n][done]),
        "slowdown_mean": _mean(jct / isolated_s),
        "gpu_utilisation": share(float(s["comp_done_s"]), all_s),
        "allocation_rate": share(float(s["held_integral"]), all_s),
        "jobs_finished": float(len(finish)),
        "preemptions": float(s["preemptions"]),
        "migrations": float(s["migrations"]),
        "failures": float(s["failures"]),
        "gpu_hours_lost": float(s["comp_lost_s"]) / 3600.0,
        "slo_violation_rate": _violations(s, chosen),
        "finish_time_fairness_mean": float("nan"),
        "finish_time_fairness_max": float("nan"),
        "cpu_utilisation": share(float(s["cpu_busy_s"]), all_s),
        "network_utilisation": share(float(s["net_busy_s"]) * float(s["busy"]), all_s),
        "jobs_running_mean": share(float(s["executed_integral"]), whole_s),
        "groups_mean": share(float(s["groups_integral"]), whole_s),
        "dop_mean": share(float(s["held_integral"]), float(s["groups_integral"])),
        "out_of_memory": float(s["out_of_memory"]),
        "moves": float(s["moves"]),
        "move_time_share": share(moving_s, moving_s + float(s["executed_integral"])),
    }


def group_job_table(s: np.void, workload: Workload) -> dict[str, np.ndarray]:
    """One row a job, in order of arrival; times are nan for what has not happened."""
    n = int(s["n_jobs"])
    return {
        **times_of_jobs(s, workload, s["exposed_s"][:n], s["starts"][:n] > 0),
        "preemptions": s["preempted"][:n].copy(),
        "moves": s["starts"][:n].copy(),
        "spill": s["alpha"][:n].copy(),
    }


def _violations(s: np.void, chosen: np.ndarray) -> float:
    n = int(s["n_jobs"])
    is_done = s["status"][:n] == DONE
    late = np.where(is_done, s["finish_s"][:n] > s["deadline_s"][:n], s["deadline_s"][:n] <= s["now_s"])
    return share(float(late[chosen].sum()), float(np.isfinite(s["deadline_s"][:n][chosen]).sum()))


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
