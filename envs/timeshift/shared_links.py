"""The links that gangs share, as pictures show them (affinity graph: policies/cassini/compatibility.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ...policies.cassini.compatibility import Job, SharedLinkGroup, components, meetings
from ...simulator.base.codes import GONE
from ...simulator.cluster.routes import LinkUse
from ...simulator.contention.circle import TOLERANCE, Circle, Grid, demand, unify
from ...simulator.engine.simulator import Simulator
from ...simulator.profiles.phases import Phases
from .rotations import excess_of

GRID = Grid(degrees=5.0)
NEAR_S = 1e-9  # periods that are the same


@dataclass(frozen=True)
class Place:
    """A gang's phases alone on its GPUs, and the links that it uses."""

    phases: Phases
    use: LinkUse


@dataclass(frozen=True, eq=False)
class Component:
    """Gangs that are joined by links which several of them use."""

    jobs: tuple[int, ...]  # ascending
    phases: tuple[Phases, ...]
    flows: np.ndarray  # float64 (links, jobs), flows of each job on each shared link
    capacity: np.ndarray  # float64 (links,), bytes per second
    links: tuple[int, ...]
    padding: float  # most by which a period may exceed an iteration, a fraction; see circle.py

    @cached_property
    def key(self) -> tuple[object, ...]:
        """See the class."""
        return self.phases, self.flows.tobytes(), self.capacity.tobytes(), self.padding

    @cached_property
    def load(self) -> np.ndarray:
        """Average load that the jobs offer on each link, as a fraction of its capacity, float64 (links,)."""
        mean = np.array([phases.bytes / phases.iteration_s for phases in self.phases])
        return self.flows @ mean / self.capacity

    @property
    def circle(self) -> UnifiedCircle:
        """Its jobs on one circle; cached for similar components."""
        return _unified_circle(_Key(self))


class SharedLinks:
    """Gangs, and the links that they share; capacities in bytes per second, `padding` as of `Component`.

    Attributes:
        components: by their first job.
    """

    def __init__(self, places: Mapping[int, Place], capacity: np.ndarray, padding: float = TOLERANCE) -> None:
        self.places = dict(sorted(places.items()))
        uses: dict[Job, LinkUse] = {job: place.use for job, place in self.places.items()}
        met = meetings(uses, {job: place.phases.peak for job, place in self.places.items()}, capacity)
        found = [self._component(joined, capacity, padding) for joined in components(met)]
        self.components = tuple(sorted(found, key=lambda component: component.jobs))

    def _component(self, met: Sequence[SharedLinkGroup], capacity: np.ndarray, padding: float) -> Component:
        jobs = tuple(job for job in self.places if any(job in one.flows for one in met))
        flows = np.array([[one.flows.get(job, 0) for job in jobs] for one in met], np.float64)
        links = tuple(one.link for one in met)
        phases = tuple(self.places[job].phases for job in jobs)
        return Component(jobs, phases, flows, capacity[list(links)], links, padding)

    @cached_property
    def component_of(self) -> dict[int, Component]:
        """The component of each job that shares links."""
        return {job: component for component in self.components for job in component.jobs}


class UnifiedCircle:
    """The jobs of a component on one circle."""

    def __init__(self, component: Component) -> None:
        phases, self.component = component.phases, component
        self.circle: Circle = unify([one.iteration_s for one in phases], component.padding)
        self.demand = np.array([demand(one, self.circle, job, GRID) for job, one in enumerate(phases)])

    def angle(self, job: int, time_s: float) -> int:
        """The angle of a job whose iterations begin at `time_s` and whole periods later."""
        angles = self.demand.shape[1]
        turn = time_s % self.circle.periods_s[job] / self.circle.perimeter_s
        return round(turn * angles) % angles

    def links_at(self, turned: np.ndarray) -> np.ndarray:
        """Excess of every link, float64 (links,)."""
        flows, capacity = self.component.flows, self.component.capacity
        found = np.empty(len(capacity))
        excess_of(self.demand, flows, capacity, turned, np.empty(self.demand.shape[1]), found)
        return found


def shift_now(s: np.void, job: int) -> tuple[float, float] | None:
    """The time-shift of a running job and its period, seconds; None: it has none."""
    if s["asked_shift_s"][job] >= 0.0:  # it starts at this instant
        return float(s["asked_shift_s"][job]), float(s["asked_period_s"][job])
    if _is_on_network(s, job) and s["shift_s"][job] >= 0.0:
        return float(s["shift_s"][job]), float(s["period_s"][job])
    return None


def _is_on_network(s: np.void, job: int) -> bool:
    return bool(s["stays"][job]) and s["is_leaver"][job] != GONE


def turned_now(simulator: Simulator, component: Component) -> np.ndarray:
    """The angles of a component's jobs, int64 (n,): by shifts in this period, else by begins of iterations."""
    s, unified_circle = simulator.raw.record, component.circle
    angles = []
    for position, job in enumerate(component.jobs):
        begins_s = float(s["round_began_s"][job]) if _is_on_network(s, job) else float(s["now_s"])
        shift = shift_now(s, job)
        if shift is not None and abs(shift[1] - unified_circle.circle.periods_s[position]) < NEAR_S:
            begins_s = shift[0]
        angles.append(unified_circle.angle(position, begins_s))
    return np.array(angles, np.int64)


class _Key:
    """A component as a key of caches, equal for similar ones."""

    def __init__(self, component: Component) -> None:
        self.component = component

    def __hash__(self) -> int:
        return hash(self.component.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.component.key == self.component.key


@lru_cache(maxsize=256)
def _unified_circle(key: _Key) -> UnifiedCircle:
    return UnifiedCircle(key.component)


def shared_links_of(places: Mapping[int, Place], capacity: np.ndarray, padding: float) -> SharedLinks:
    """The shared links of gangs, by job."""
    return SharedLinks({job: place for job, place in places.items() if len(place.use.links)}, capacity, padding)


def shared_links_now(simulator: Simulator) -> SharedLinks:
    """The shared links of the running jobs of a simulator with contention."""
    links, network = simulator.topology.links, simulator.network
    if links is None or not hasattr(network, "alone") or getattr(network, "mode", "") == "dedicated":
        return SharedLinks({}, np.zeros(0))

    places = {job: Place(*own) for job, own in network.running(simulator).items()}  # type: ignore[attr-defined]
    return shared_links_of(places, network.capacity(simulator), network.padding)  # type: ignore[attr-defined]
