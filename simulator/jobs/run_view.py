"""What every view of jobs has: the cluster, the workload, and run times as far as they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.codes import TIMES_EXACT
from ..record.record_view import RecordView
from .estimates import is_outlived, known_left

if TYPE_CHECKING:
    from ..cluster.topology import Topology
    from .estimates import Estimates
    from .workload import Workload


class RunView(RecordView):
    """The part of a view that is the same for GPUs, regions and job groups."""

    _simulator: Any

    @property
    def topology(self) -> Topology:
        """The cluster."""
        found: Topology = self._simulator.topology
        return found

    @property
    def workload(self) -> Workload:
        """All jobs, future ones included, with their true run times.

        A policy that looks ahead, or reads run times here rather than from the methods below, is clairvoyant, whatever
        the simulator's `estimates`.
        """
        found: Workload = self._simulator.workload
        return found

    @property
    def estimates(self) -> Estimates:
        """What is known of run times."""
        found: Estimates = self._simulator.estimates
        return found

    def isolated_s(self, job: int) -> float:
        """Isolated run time of the whole job, seconds: alone on its best placement, or on the machines that it asks.

        With inexact `estimates` it is work done plus `remaining_s`. A job that has outlived its estimate is taken to
        need as long again as it has run.

        Raises:
            InputError: nothing is known of run times (`estimates=none`).
        """
        s = self._simulator.raw.record
        if s["known_times"] == TIMES_EXACT:
            return float(s["iterations"][job] * s["base_iteration_s"][job])
        self._expect_known()
        done_s = float((s["iterations"][job] - self._left(job)) * s["base_iteration_s"][job])
        return 2.0 * done_s if is_outlived(done_s, s["estimate_s"][job]) else float(s["estimate_s"][job])

    def remaining_iterations(self, job: int) -> float:
        """Iterations left, as far as they are known; see `isolated_s`."""
        self._expect_known()
        left = np.array([max(0.0, self._left(job))])  # its last chunk may go on past its work
        return float(known_left(self._simulator.raw.record, np.array([job]), left)[0])

    def remaining_s(self, job: int) -> float:
        """Isolated run time that is left, seconds; see `isolated_s`."""
        return self.remaining_iterations(job) * float(self._simulator.raw.record["base_iteration_s"][job])

    def _left(self, job: int) -> float:
        return float(self._simulator.raw.record["iterations_left"][job])

    def _expect_known(self) -> None:
        self.estimates.expect_known("a policy that asks for isolated_s or remaining_s")
