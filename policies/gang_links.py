"""Routes and phases of the gangs of a plan, as the network has them."""

from __future__ import annotations

from ..simulator.base.errors import InputError
from ..simulator.cluster.routes import LinkUse
from ..simulator.contention.contention import Contention
from ..simulator.engine.plans import Plan
from ..simulator.engine.view import ClusterView
from ..simulator.profiles.phases import Phases


def network_of(view: ClusterView) -> Contention:
    """The network of a simulator. Raises InputError if it has no links."""
    network = view.network
    if not isinstance(network, Contention):
        raise InputError(f"network {network.describe()!r} knows no links, which this policy looks at; use contention")
    return network


def alone(view: ClusterView, plan: Plan) -> dict[int, tuple[Phases, LinkUse]]:
    """Phases alone and links of every job of a plan, jobs ascending. Raises InputError if the network has no links."""
    network, outage, place = network_of(view), view.outage, (view.topology, view.workload)
    return network.together(*place, {job: plan.gangs[job] for job in sorted(plan.gangs)}, outage)


def uses(view: ClusterView, plan: Plan) -> dict[int, LinkUse]:
    """The links of every job of a plan, jobs ascending."""
    return {job: use for job, (_, use) in alone(view, plan).items()}
