"""`muri`: Muri (Zhao et al., SIGCOMM'22) on the jobs of this paper: groups by matchings, on equal shares of machines.

Its stages are those of deep learning on GPUs; here they are loading, COMP and COMM of an iteration (matching.py), so
this is an analogy and no reproduction. Every group has `dop` machines (all, if there are fewer), machines that are left
over stay idle. At every event the jobs with the least attained service come in, as many as three for each group that
fits (`remaining=hidden`; Muri-L), or those with the least service left (`known`; Muri-S); service is seconds alone on
16 machines. Groups are formed anew, and whoever finds itself in another one moves.

`load=input`: an iteration reads all of its input from disk, as Muri's storage stage does; `none`: nothing. What it
really reads depends on the group's memory, which Muri does not know of.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.groups.group_config import MB
from ...simulator.groups.group_view import GroupView
from .carry_out import Wanted, wanted_of
from .matching import muri
from .problem import REFERENCE_MACHINES
from .profiled import Present, ProfiledPolicy, alone, problem_of


class Muri(ProfiledPolicy):
    """Interleaves jobs whose stages fit together.

    Args:
        dop: machines of every group, >= 1.
        remaining: whether lengths of jobs are known.
        load: what an iteration reads.
    """

    def __init__(
        self,
        dop: int = REFERENCE_MACHINES,
        remaining: Literal["hidden", "known"] = "hidden",
        load: Literal["input", "none"] = "input",
    ) -> None:
        super().__init__("muri")
        if dop < 1:
            raise InputError(f"policy muri: dop = {dop}: expected at least 1 machine")
        self.dop, self.remaining, self.load = dop, remaining, load
        self.knows_run_times = remaining == "known"

    def plan(self, view: GroupView, now: Present) -> list[Wanted]:
        """The groups that Muri forms."""
        jobs = sorted(now.settled + now.fresh + now.waiting)
        if not jobs:
            return []
        iterations = view.remaining_iterations if self.remaining == "known" else view.attained_iterations
        service_s = np.array([iterations(job) for job in jobs]) * problem_of(view, jobs, now.machines).solo_s()
        jobs = [jobs[place] for place in np.argsort(service_s, kind="stable")]
        problem = problem_of(view, jobs, now.machines)
        each = min(self.dop, now.machines)
        loads = None
        if self.load == "input":
            read = view.config.pass_fraction * np.array([view.input_bytes(job) for job in jobs])
            loads = read / (each * view.config.disk_mb_s * MB)
        return wanted_of(muri(problem, loads, each), jobs) or alone(view, now)
