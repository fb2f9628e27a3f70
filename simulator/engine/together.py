"""What goes together: a cluster, a network, a rule and a workload. What does not is refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import InputError
from ..checks.check_regions import INSTEAD
from ..cluster.topology import Topology
from ..cluster.unit_types import gpus_of
from ..configuration.network_choice import Contention
from ..jobs.workload import Workload
from ..record.state import Capacity
from ..rules.rule import Rule

Simulator = Any  # simulator.py has it, and asks what is here


def expect_kinds(simulator: Simulator) -> None:
    """InputError where the parts of a simulator's config do not go together."""
    simulator.config.check()
    if simulator.semantics.auctions and simulator.berths > 1:
        raise InputError(
            f"semantics {simulator.semantics.name}: GPU sharing and rates that are asked for need semantics=events"
        )
    if isinstance(simulator.network, Contention):
        if simulator.topology.links is None:
            raise InputError(
                f"network contention: topology {simulator.topology.name!r} has no links between its machines; expected "
                "cassini-testbed, cassini-two-gpu, fat-tree, leaf-spine, hosts or a graph of links"
            )
        simulator.network.changes(simulator.topology)
        if simulator.rate_provider is not simulator.network.rate_provider:
            raise InputError("network contention says itself how fast jobs run; expected no rate provider beside it")


def expect_rule(simulator: Simulator, rule: Rule) -> None:
    """InputError where a rule cannot be played, or not all that it says."""
    if rule.needs_run_times:
        simulator.estimates.expect_known(f"the rule {rule.describe()}")
    simulator.semantics.expect_played(rule, f"the rule {rule.describe()}")
    if simulator.semantics.auctions:
        rule.expect_alone(f"with auctions; leave semantics={simulator.semantics.name} out")
    if isinstance(simulator.network, Contention):
        rule.expect_alone("on a network whose speeds depend on links; give another than contention")
    if simulator.berths > 1:
        rule.expect_alone("where GPUs are shared, or rates asked for; leave them out")


def ground_of(topology: Topology, workload: Workload) -> Topology:
    """The part of a topology for a workload: over regions all, else its GPUs; InputError: other jobs, or no GPUs."""
    if workload.ps is not None:
        raise InputError(
            f"workload {workload.name!r} holds parameter-server jobs, which run in groups of machines alone "
            "(Grouping-v0); expected one without"
        )
    if workload.geo is not None:
        return topology
    return gpus_of(topology)


def capacity_for(simulator: Simulator) -> Capacity:
    """The room that its workload needs in a record, and solvers beside it for the jobs that the slow path knows.

    InputError: workload, cluster and rule do not go together.
    """
    workload, topology, config = simulator.workload, simulator.topology, simulator.config
    geo = workload.geo
    if geo is None:
        config.expect_no_regions(workload.name)
        if simulator.outages is not None and topology is not config.topology:
            raise InputError(
                f"outages and fault_groups number the machines of topology {topology.name!r} with its CPU machines, "
                f"which workload {workload.name!r} does without; expected a topology that has none"
            )
        sizes = len(workload), topology.num_gpus, simulator.berths, simulator.link_room
        return Capacity.fitting(*sizes, layered=simulator.is_layered)
    simulator.rule.expect_alone(f"in regions, which workload {workload.name!r} is for")
    if simulator.berths > 1 or simulator.semantics.auctions:
        raise InputError(
            f"workload {workload.name!r} is for regions: there GPUs are not shared, rates are not asked for, and "
            "semantics are events"
        )
    geo.check_fits(topology)
    jobs, uses = max(len(workload), len(geo.history)), max(len(geo.table), len(geo.history.table))
    sizes, read = (jobs, topology.num_gpus, topology.num_regions, topology.num_clusters), (len(geo.tables), uses)
    return Capacity.with_regions(*sizes, *read, layered=simulator.is_layered, priced=config.tariff is not None)


def write_apart(s: np.void, simulator: Simulator) -> None:
    """Write where the regions end that no gang may span: links join them, and the jobs ask nothing of regions."""
    if not _is_apart(simulator):
        return
    topology = simulator.topology
    region = topology.cluster_region[topology.gpu_cluster]
    s["n_apart"] = topology.num_regions
    s["apart_end"][: topology.num_regions] = np.searchsorted(region, np.arange(topology.num_regions), "right")


def expect_no_spans(simulator: Simulator) -> None:
    """InputError where a gang could come to span regions: for players in kernels, which cannot refuse it then."""
    if _is_apart(simulator) and simulator.workload.largest_gang > 1:
        raise _spans(simulator, "gangs of several GPUs could span them")


def spanning(simulator: Simulator, job: int) -> InputError:
    """What is said where a compiled rule gave a job GPUs in several regions."""
    return _spans(simulator, f"job {simulator.workload.job_id[job]} got GPUs in several, which no gang may span")


def _is_apart(simulator: Simulator) -> bool:
    whole = Topology.load(simulator.config.topology)
    return whole.region_network is not None and simulator.topology.num_regions > 1 and simulator.workload.geo is None


def _spans(simulator: Simulator, why: str) -> InputError:
    topology = simulator.topology
    return InputError(
        f"workload {simulator.workload.name!r} asks nothing of regions, of which topology {topology.name!r} has "
        f"{topology.num_regions}: {why}; expected {INSTEAD}"
    )
