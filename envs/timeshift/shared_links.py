"""The links that gangs share, and the excess there (affinity graph: policies/cassini/compatibility.py)."""

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
from .rotations import excess_of, turn_one

Gangs = Mapping[int, tuple[int, ...]]  # the GPUs of jobs
COARSE = Grid(degrees=15.0)  # of what is predicted for candidates
FINE = Grid(degrees=5.0)
GOLDEN = 0.6180339887498949  # its multiples, modulo 1, are spread evenly
NEAR_S = 1e-9  # periods that are the same
DRAWS = 16  # rotations of all jobs that stand for any


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
    num_links: int  # that `links` stand for
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

    @cached_property
    def crowded(self) -> np.ndarray:
        """Links whose peak demand exceeds the capacity, bool (links,)."""
        peak = np.array([phases.peak for phases in self.phases])
        return self.flows @ peak > self.capacity

    def outlook(self) -> ExcessEstimate:
        """The excess to expect; cached for similar components."""
        return _excess_estimate(_Key(self))

    @property
    def circle(self) -> UnifiedCircle:
        """Its jobs on one circle; cached for similar components."""
        return _unified_circle(_Key(self))


@dataclass(frozen=True)
class ExcessEstimate:
    """Average excess of a component's links, fractions of their capacities, by link."""

    free: np.ndarray  # at random rotations
    best: np.ndarray  # with each job in turn at its rotation of least excess


class SharedLinks:
    """Gangs, and the links that they share; capacities in bytes per second, `padding` as of `Component`.

    Attributes:
        components: by their first job.
        num_shared: links that several gangs use.
        links_of: number of links that each job shares, by job.
    """

    def __init__(self, places: Mapping[int, Place], capacity: np.ndarray, padding: float = TOLERANCE) -> None:
        self.places = dict(sorted(places.items()))
        uses: dict[Job, LinkUse] = {job: place.use for job, place in self.places.items()}
        met = meetings(uses, {job: place.phases.peak for job, place in self.places.items()}, capacity)
        self.num_shared = sum(len(one.members) for one in met)
        self.links_of = {job: sum(len(one.members) for one in met if job in one.flows) for job in self.places}
        found = [self._component(joined, capacity, padding) for joined in components(met)]
        self.components = tuple(sorted(found, key=lambda component: component.jobs))

    def _component(self, met: Sequence[SharedLinkGroup], capacity: np.ndarray, padding: float) -> Component:
        jobs = tuple(job for job in self.places if any(job in one.flows for one in met))
        flows = np.array([[one.flows.get(job, 0) for job in jobs] for one in met], np.float64)
        links = tuple(one.link for one in met)
        phases = tuple(self.places[job].phases for job in jobs)
        num_links = sum(len(one.members) for one in met)
        return Component(jobs, phases, flows, capacity[list(links)], links, num_links, padding)

    @cached_property
    def component_of(self) -> dict[int, Component]:
        """The component of each job that shares links."""
        return {job: component for component in self.components for job in component.jobs}


class UnifiedCircle:
    """The jobs of a component on one circle of angles `grid`."""

    def __init__(self, component: Component, grid: Grid = FINE) -> None:
        phases = component.phases
        self.component, self.grid = component, grid
        self.circle: Circle = unify([one.iteration_s for one in phases], component.padding)
        self.demand = np.array([demand(one, self.circle, job, grid) for job, one in enumerate(phases)])

    def angle(self, job: int, time_s: float) -> int:
        """The angle of a job whose iterations begin at `time_s` and whole periods later."""
        angles = self.demand.shape[1]
        turn = time_s % self.circle.periods_s[job] / self.circle.perimeter_s
        return round(turn * angles) % angles

    def excess(self, job: int, turned: np.ndarray, among: int | None = None) -> np.ndarray:
        """Mean excess on the job's links at each of its rotations, others turned by int64 (n,) angles; float64."""
        found = np.empty(self.grid.steps)
        steps = self.grid.shifts(self.circle, job)
        among = len(self.demand) if among is None else among
        flows, capacity = self.component.flows, self.component.capacity
        turn_one(self.demand, flows, capacity, turned, among, job, steps, np.empty(self.demand.shape[1]), found)
        return found

    def links_at(self, turned: np.ndarray) -> np.ndarray:
        """Excess of every link, float64 (links,)."""
        flows, capacity = self.component.flows, self.component.capacity
        found = np.empty(len(capacity))
        excess_of(self.demand, flows, capacity, turned, np.empty(self.demand.shape[1]), found)
        return found

    def placed_in_turn(self) -> np.ndarray:
        """Each job in turn at its angle of least excess with those before it: int64 (n,)."""
        turned = np.zeros(len(self.demand), np.int64)
        for job in range(1, len(turned)):
            step = int(self.excess(job, turned, among=job).argmin())
            turned[job] = self.grid.shifts(self.circle, job)[step]
        return turned

    def drawn(self) -> np.ndarray:
        """Average excess of every link over evenly spread rotations, float64 (links,)."""
        jobs = np.arange(len(self.demand))
        angles = self.demand.shape[1]
        total = np.zeros(len(self.component.capacity))
        for draw in range(DRAWS):
            turns = (draw * GOLDEN * (jobs + 1) * (jobs + 1) + jobs / 7) % 1.0
            total += self.links_at((turns * angles).astype(np.int64))
        return total / DRAWS


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


@lru_cache(maxsize=4096)
def _excess_estimate(key: _Key) -> ExcessEstimate:
    component = key.component
    if not component.crowded.any():
        nothing = np.zeros(len(component.capacity))
        return ExcessEstimate(nothing, nothing)
    unified_circle = UnifiedCircle(component, COARSE)
    return ExcessEstimate(unified_circle.drawn(), unified_circle.links_at(unified_circle.placed_in_turn()))


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
