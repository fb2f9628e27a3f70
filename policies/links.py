"""What the jobs of a plan do to the links: routes and phases of every gang, as the network has them."""

from __future__ import annotations

from typing import Any

from ..simulator.errors import InputError
from ..simulator.network.contention import Contention
from ..simulator.network.routes import LinkUse
from ..simulator.plans import Plan
from ..simulator.profiles.phases import Phases
from ..simulator.view import ClusterView


def network_of(view: ClusterView) -> Contention:
    """The network of a simulator whose jobs meet on links.

    Raises:
        InputError: it is another one.
    """
    network: Any = view.simulator.network
    if not isinstance(network, Contention):
        raise InputError("this policy looks at the links that jobs share; expected the network contention")
    return network


def alone(view: ClusterView, plan: Plan) -> dict[int, tuple[Phases, LinkUse]]:
    """Phases alone and links of every job of a plan, jobs ascending."""
    network, topology, workload = network_of(view), view.topology, view.workload
    return {job: network.alone(topology, workload, job, plan.gangs[job]) for job in sorted(plan.gangs)}


def uses(view: ClusterView, plan: Plan) -> dict[int, LinkUse]:
    """The links of every job of a plan, jobs ascending."""
    return {job: use for job, (_, use) in alone(view, plan).items()}
