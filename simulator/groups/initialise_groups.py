"""Writing machines and parameter-server jobs into a record. Plain numpy; the kernels check nothing."""

from __future__ import annotations

import math

import numpy as np

from ..events.initialise import write_due, write_window_order
from ..jobs.workload import Workload
from ..numerics.random import draw_seed, uniform
from .group_codes import CLIMBS, NONE
from .group_config import GroupConfig

ERRORS = 1 << 21  # streams of random numbers: errors of what is measured
COMP_DRAW, COMM_DRAW = 0, 1
NOWHERE = ("goal", "at", "next_member", "queue_next")


def write_machines(s: np.void, machines: int) -> None:
    """Modify a zeroed record: so many machines, all free."""
    s["n_machines"] = s["n_gpus"] = s["free_machines"] = machines
    s["machine_group"][:] = NONE
    s["event_position"][:] = -1


def write_group_jobs(s: np.void, workload: Workload, config: GroupConfig, seed: int) -> None:
    """Modify a record whose machines are written: all jobs are still to come."""
    n, ps = len(workload), workload.ps
    assert ps is not None
    s["n_jobs"], s["seed"] = n, seed
    s["first_group_event"] = n
    s["first_machine_event"] = n + int(s["n_machines"])
    s["start_s"] = s["now_s"] = workload.arrival_s[0]
    for name in ("arrival_s", "gpus", "iterations", "deadline_s"):
        s[name][:n] = getattr(workload, name)
    for name in ("comp_machine_s", "comm_s", "input_bytes", "model_bytes", "epoch_iterations"):
        s[name][:n] = getattr(ps, name)
    s["base_iteration_s"][:n] = ps.comp_machine_s / workload.gpus + ps.comm_s
    s["iterations_left"][:n] = s["saved_left"][:n] = workload.iterations
    s["iteration_s"][:n] = math.inf
    s["first_start_s"][:n] = -1.0
    s["alpha_asked"][:n] = CLIMBS
    s["profile_left"][:n] = config.profile_iterations
    for name in NOWHERE:
        s[name][:n] = NONE
    for name, draw in (("comp_error", COMP_DRAW), ("comm_error", COMM_DRAW)):
        signs = [False] * n
        if config.model_error:
            signs = [uniform(draw_seed(s), ERRORS + job, draw) < 0.5 for job in range(n)]
        s[name][:n] = np.where(signs, 1.0 - config.model_error, 1.0 + config.model_error)
    s["seen_comp"][:n] = ps.comp_machine_s * s["comp_error"][:n]
    s["seen_comm"][:n] = ps.comm_s * s["comm_error"][:n]
    write_due(s, workload.deadline_s)
    write_window_order(s, np.arange(n))


def copy_record(old: np.record, new: np.record) -> None:
    """Modify `new`, a zeroed record of no smaller class: what runs in `old` goes on there."""
    for name in old.dtype.names or ():
        present = old[name]
        if np.ndim(present) == 0:
            new[name] = present
        else:
            new[name][tuple(slice(length) for length in present.shape)] = present
    for name in ("machine_group", "event_position"):
        new[name][len(old[name]) :] = NONE
