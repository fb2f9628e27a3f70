"""Time-shifts as decisions: checked before anything happens, then laid with the period of the job's circle."""

from __future__ import annotations

import math

from ..base.decisions import Shift, Start
from ..base.errors import InvalidDecision
from ..contention.link_network import LinkNetwork
from ..events.clock_calls import shift
from ..network.simulated import Simulated


def apply_shift(simulator: Simulated, decision: Shift) -> None:
    """Shift a running job; its period is that of its component as jobs lie now.

    Raises:
        InvalidDecision: see `Shift`; nothing is written.
    """
    job = decision.job
    what = f"shift job {job} ({simulator.workload.job_id[job]})"
    network = _network(simulator, what)
    if decision.seconds is not None:
        _check_seconds(decision.seconds, what)
    period_s = network.joined(simulator).period_s.get(job)
    if period_s is None:
        raise InvalidDecision(f"{what}: it sends nothing over the network on its GPUs")
    seconds = -1.0 if decision.seconds is None else float(decision.seconds)
    shift(simulator.records, 0, job, seconds, period_s)


def check_time_shift(simulator: Simulated, decision: Start) -> None:
    """Check the time-shift of a start, if it has one.

    Raises:
        InvalidDecision: the job could not be shifted on these GPUs.
    """
    if decision.time_shift is None:
        return
    job = decision.job
    what = f"start job {job} ({simulator.workload.job_id[job]})"
    network = _network(simulator, what)
    _check_seconds(decision.time_shift, what)
    topology, gpus = simulator.topology, set(decision.gpus)
    if len(gpus) != simulator.view.gpus(job) or not all(0 <= gpu < topology.num_gpus for gpu in gpus):
        return  # the gang is refused anyway
    if not network.alone(topology, simulator.workload, job, decision.gpus)[0].rate:
        raise InvalidDecision(f"{what}: with a time_shift, but it sends nothing over the network on these GPUs")


def _network(simulator: Simulated, what: str) -> LinkNetwork:
    if not isinstance(simulator.network, LinkNetwork):
        raise InvalidDecision(f"{what}: time-shifts need network contention, not {simulator.network.describe()!r}")
    return simulator.network


def _check_seconds(seconds: float, what: str) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.0 <= seconds < math.inf:
        raise InvalidDecision(f"{what} by {seconds!r} seconds: expected a finite number of at least 0, or None")
