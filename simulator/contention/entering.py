"""Jobs enter the network of a simulator: their phases and links are written when their rate is asked (codes.ASK)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..base.errors import InputError
from ..cluster.links import whole_capacity
from ..cluster.routes import NO_LINKS, LinkUse
from ..jobs.workload import name_of_job
from ..network.simulated import Simulated
from ..numerics.random import draw_seed, uniform
from ..profiles.phases import Phases
from . import network_calls
from .averages import Averages
from .crux import priorities
from .link_network import LinkNetwork
from .phase_run import write_phases

OFFSETS = 1 << 25  # stream of random numbers; flows/iterations.py has the one below


def write_network(simulator: Simulated) -> None:
    """Write the links and options of network contention into the record of a simulator whose jobs are written."""
    network, s, links = simulator.network, simulator.raw.record, simulator.topology.links
    assert isinstance(network, LinkNetwork)
    assert links is not None
    network_calls.clear_links(simulator.records, 0, links.num_links, int(s["n_jobs"]))
    s["link_capacity"][: links.num_links] = s["link_whole"][: links.num_links] = whole_capacity(links.capacity)
    s["link_overload_capacity"][: links.num_links] = whole_capacity(whole_capacity(links.capacity) * network.carried)
    s["asked_shift_s"][: int(s["n_jobs"])] = -1.0
    s["phase_now_s"] = s["now_s"]
    s["jitter"], s["pacing"] = network.jitter, network.pacing
    s["averages"] = network.mode == "averaged"
    is_anew = network.rates == "crux" or network.routes == "least"  # with every job that comes or goes
    s["asks_changes"] = s["averages"] or (is_anew and network.mode == "exact")
    if (growth := network.growth) is not None:
        growth.write_into(s)
    s["adjust"] = math.inf if network.adjust == "off" else network.adjust
    if network.fails:
        s["links_change"] = 1
        if network.link_mtbf_s < math.inf:
            s["link_mtbf_s"], s["link_mttr_s"] = network.link_mtbf_s, network.link_mttr_s
            network_calls.draw_cable_failures(simulator.records, 0, np.unique(links.cable))
        relink(simulator)


def relink(simulator: Simulated) -> None:
    """Write capacities, ways and the next change; a job with a changed way keeps the bytes that it has sent."""
    network, s, records = simulator.network, simulator.state, simulator.records
    assert isinstance(network, LinkNetwork)
    s.links_changed = 0
    take_ways(simulator)
    scales = network.scales(simulator)
    whole = s.link_whole[: len(scales)]
    capacity = np.where(scales < 1.0, whole_capacity(whole * scales), whole) * (scales > 0.0)
    carried = whole_capacity(capacity * network.carried)
    for link in np.flatnonzero(capacity != s.link_capacity[: len(scales)]).tolist():
        network_calls.set_capacity(records, 0, link, float(capacity[link]), float(carried[link]))
    if (changes := network.changes(simulator.topology)) is not None:
        network_calls.schedule_change(records, 0, changes.next_s(float(s.now_s)))


def take_ways(simulator: Simulated) -> None:
    """Put all running jobs on the links that they have now."""
    network = simulator.network
    assert isinstance(network, LinkNetwork)
    for job, (phases, use) in network.running(simulator).items():
        if simulator.state.stays[job]:
            take_way(simulator, job, phases, use)


def take_way(simulator: Simulated, job: int, phases: Phases, use: LinkUse) -> None:
    """Put a job in the network on these links, if it is on others; on none it is cut off."""
    records = simulator.records
    if network_calls.is_on(records, 0, job, use.links, use.flows):
        return
    if len(use.links):
        write_phases(simulator.raw.record, job, phases)
    if not network_calls.reroute(records, 0, job, use.links, use.flows):
        raise _too_many(simulator, job)


def _too_many(simulator: Simulated, job: int) -> InputError:
    return InputError(
        f"{name_of_job(simulator.workload, job)}: the jobs that run use more links than one simulator holds, "
        f"{len(simulator.state.use_job)} in all"
    )


class NetworkRates:
    """How fast jobs run on network contention: a `RateProvider` (simulated.py). It enters those that use it."""

    restores_first = False

    def __init__(self, network: LinkNetwork) -> None:
        self.network, self.elastic = network, network.workers == "elastic"
        self.averages = Averages(network)

    def rate(self, simulator: Simulated, job: int) -> tuple[float, float]:
        """Seconds per iteration alone on its GPUs; a job that uses the network is on its links from now on."""
        raw, network = simulator.raw, self.network
        s = raw.record
        phases, use = network.own(simulator, job)
        if phases.rate and not s["stays"][job]:
            if network.mode != "exact":
                use = NO_LINKS
            try:
                write_phases(s, job, phases)
            except InputError as error:
                raise InputError(f"{name_of_job(simulator.workload, job)}: {error}") from None
            if not raw.call(network_calls.enter_links, job, use.links, use.flows):
                raise _too_many(simulator, job)
            raw.call(network_calls.enter_session, job, self._offset_s(simulator, job, phases.iteration_s))
            if not len(use.links) and network.outage(simulator) is not None:
                raw.call(network_calls.reroute, job, use.links, use.flows)  # it is cut off
        return phases.iteration_s / _size_ratio(s, job), 0.0

    def may_resize(self, simulator: Simulated, job: int) -> bool:
        """Whether a job may have another number of GPUs than it asks; see `LinkNetwork.may_resize`."""
        return self.network.may_resize(simulator.workload, job)

    def changed_rates(self, simulator: Simulated) -> Iterator[tuple[int, float]]:
        """The jobs with a new average rate, if rates are averages (simulated.py); writes chosen paths, priorities."""
        s, network = simulator.raw.record, self.network
        s["net_changed"] = 0
        if s["links_changed"]:
            relink(simulator)
        elif network.routes == "least" and network.mode == "exact":
            take_ways(simulator)
        if network.mode == "exact" and network.rates == "crux":
            for job, priority in priorities(simulator, network.joined(simulator), network.levels).items():
                if s["stays"][job]:
                    simulator.raw.call(network_calls.set_importance, job, 1.0, priority)
        if network.mode == "averaged":
            rates, s["averaged_rate"] = self.averages.rates(simulator)
            for job, seconds in rates.items():
                rate = seconds / _size_ratio(s, job)
                if rate != s["solo_s"][job]:
                    yield job, rate

    def _offset_s(self, simulator: Simulated, job: int, iteration_s: float) -> float:
        if self.network.offsets == "none":
            return 0.0
        s = simulator.raw.record
        return float(uniform(draw_seed(s), OFFSETS + job, int(s["starts"][job]))) * iteration_s


def _size_ratio(s: np.void, job: int) -> float:
    return float(s["gpus"][job] / s["own_gpus"][job])
