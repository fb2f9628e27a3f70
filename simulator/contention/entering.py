"""Jobs enter the network of a simulator: their phases and links are laid when their rate is asked (codes.ASK)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..base.errors import InputError
from ..cluster.routes import NO_LINKS
from ..jobs.workload import name_of_job
from ..network.simulated import Simulated
from ..numerics.random import uniform
from . import network_calls
from .averages import Averages
from .crux import priorities
from .link_network import LinkNetwork, whole_capacity
from .network_calls import enter_stay
from .phase_run import lay_phases

OFFSETS = 1 << 25  # stream of random numbers; flows/iterations.py has the one below


def lay_network(simulator: Simulated, seed: int) -> None:
    """Write the links and options of network contention into the record of a simulator whose jobs are laid.

    Args:
        seed: of jitter and start offsets.
    """
    network, s, links = simulator.network, simulator.plain.record, simulator.topology.links
    assert isinstance(network, LinkNetwork)
    assert links is not None
    network_calls.clear_links(simulator.records, 0, links.num_links, int(s["n_jobs"]))
    s["link_capacity"][: links.num_links] = whole_capacity(links.capacity)
    s["link_carried"][: links.num_links] = whole_capacity(whole_capacity(links.capacity) * network.carried)
    s["asked_shift_s"][: int(s["n_jobs"])] = -1.0
    s["phase_now_s"] = s["now_s"]
    s["net_seed"], s["jitter"], s["pacing"] = seed, network.jitter, network.pacing
    s["averages"] = network.mode == "averaged"
    s["asks_changes"] = s["averages"] or (network.rates == "crux" and network.mode == "exact")
    if (growth := network.growth) is not None:
        growth.lay(s)
    s["adjust"] = math.inf if network.adjust == "off" else network.adjust


class EnteringPace:
    """How fast jobs run on network contention: a `Pace` (simulated.py). Those that use the network are laid into it."""

    restores_first = False

    def __init__(self, network: LinkNetwork) -> None:
        self.network, self.elastic = network, network.workers == "elastic"
        self.averages = Averages(network)

    def rate(self, simulator: Simulated, job: int) -> tuple[float, float]:
        """Seconds per iteration alone on its GPUs; a job that uses the network is on its links from now on."""
        s, records = simulator.state, simulator.records
        phases, use = self.network.alone(simulator.topology, simulator.workload, job, simulator.view.gpus_of(job))
        if phases.rate and not s.stays[job]:
            if self.network.mode != "exact":
                use = NO_LINKS
            try:
                lay_phases(records, 0, job, phases)
            except InputError as error:
                raise InputError(f"{name_of_job(simulator.workload, job)}: {error}") from None
            if not network_calls.enter_links(records, 0, job, use.links, use.flows):
                raise InputError(
                    f"{name_of_job(simulator.workload, job)}: the jobs that run use more links than one simulator "
                    f"holds, {len(s.use_job)} in all"
                )
            enter_stay(records, 0, job, self._offset_s(simulator, job, phases.iteration_s))
        return phases.iteration_s / _size_ratio(s, job), 0.0

    def may_resize(self, simulator: Simulated, job: int) -> bool:
        """Whether a job may have another number of GPUs than it asks; see `LinkNetwork.may_resize`."""
        return self.network.may_resize(simulator.workload, job)

    def settle(self, simulator: Simulated) -> Iterator[tuple[int, float]]:
        """The jobs that run at another average rate than before, where rates are averages; see simulated.py.

        Where Crux says who goes first, priorities are laid.
        """
        s, network = simulator.state, self.network
        s.net_changed = 0
        if network.mode == "exact" and network.rates == "crux":
            for job, priority in priorities(simulator, network.joined(simulator), network.levels).items():
                if s.stays[job]:
                    network_calls.set_importance(simulator.records, 0, job, 1.0, priority)
        if network.mode == "averaged":
            rates, s.averaged_rate = self.averages.rates(simulator)
            for job, seconds in rates.items():
                rate = seconds / _size_ratio(s, job)
                if rate != s.solo_s[job]:
                    yield job, rate

    def _offset_s(self, simulator: Simulated, job: int, iteration_s: float) -> float:
        if self.network.offsets == "none":
            return 0.0
        s = simulator.state
        return float(uniform(int(s.net_seed), OFFSETS + job, int(s.starts[job]))) * iteration_s


def _size_ratio(s: Any, job: int) -> float:
    """As flows/sessions.py has it."""
    return float(s.gpus[job] / s.own_gpus[job])
