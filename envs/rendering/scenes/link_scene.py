"""Links that jobs share: the load of each, and the jobs on one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....simulator.contention.phase_run import Contender, PhaseRun
from ....simulator.engine.simulator import Simulator
from ....simulator.profiles.phases import Phases
from ...timeshift.shared_links import Component, SharedLinks, shared_links_now, shift_now, turned_now

WARM_UP = 4  # iterations of the slowest job before the shown time
SHOWN = (2, 6)  # least and most iterations of it that are shown,
QUICK = 24  # enough for so many of the quickest job, if possible


@dataclass(frozen=True, eq=False)
class Crossing:
    """The jobs on one link, and their rotations."""

    link: str
    capacity: float  # bytes per second
    jobs: tuple[int, ...]  # ascending
    phases: tuple[Phases, ...]
    flows: tuple[float, ...]
    periods_s: tuple[float, ...]
    iterations: tuple[int, ...]  # of each, once around the circle
    perimeter_s: float  # of their unified circle
    begins_s: tuple[float, ...]  # second of the circle at which an iteration of each begins, at the present rotations
    scores: tuple[float, float]  # compatibility of the link if all begin at once, and at the present rotations
    use: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # by case: s (k,), bytes/s (k, jobs)


@dataclass(frozen=True, eq=False)
class NetworkScene:
    """The network now."""

    load: np.ndarray  # float64 (links,), mean demand of the jobs on each link, of its capacity
    sharers: np.ndarray  # int64 (links,), number of jobs on it
    contending: int  # jobs that share links
    components: int  # groups of them that links join
    crossing: Crossing | None  # the link with the largest excess if all begin at once; None: no link is shared


def has_contention(simulator: Simulator) -> bool:
    """Whether jobs of a simulator share links."""
    return hasattr(simulator.network, "alone") and simulator.topology.links is not None


def read_network(simulator: Simulator) -> NetworkScene:
    """The network of a simulator whose jobs share links."""
    links = simulator.topology.links
    assert links is not None
    meetings = shared_links_now(simulator)
    load, sharers = np.zeros(links.num_links), np.zeros(links.num_links, np.int64)
    for place in meetings.places.values():
        load[place.use.links] += place.use.flows * (place.phases.bytes / place.phases.iteration_s)
        sharers[place.use.links] += 1
    contending, joined = len(meetings.component_of), len(meetings.components)
    return NetworkScene(load / links.capacity, sharers, contending, joined, _crossing(simulator, meetings))


def _crossing(simulator: Simulator, meetings: SharedLinks) -> Crossing | None:
    best: tuple[float, float] = (-1.0, -1.0)
    chosen: tuple[Component, int] | None = None
    for component in meetings.components:
        excess = component.circle.links_at(np.zeros(len(component.jobs), np.int64))
        for number, wanted in enumerate(zip(excess.tolist(), component.load.tolist(), strict=True)):
            if wanted > best:
                best, chosen = wanted, (component, number)
    return None if chosen is None else _describe(simulator, meetings, *chosen)


def _describe(simulator: Simulator, meetings: SharedLinks, component: Component, number: int) -> Crossing:
    links = simulator.topology.links
    assert links is not None
    unified_circle = component.circle
    turned = turned_now(simulator, component)
    on = np.flatnonzero(component.flows[number] > 0)
    jobs = [component.jobs[position] for position in on]
    link = component.links[number]
    seconds = turned * (unified_circle.circle.perimeter_s / unified_circle.demand.shape[1])
    excess = [unified_circle.links_at(at)[number] for at in (np.zeros_like(turned), turned)]
    return Crossing(
        link=links.link_names[link],
        capacity=float(links.capacity[link]),
        jobs=tuple(jobs),
        phases=tuple(component.phases[position] for position in on),
        flows=tuple(component.flows[number, on].tolist()),
        periods_s=tuple(unified_circle.circle.periods_s[position] for position in on),
        iterations=tuple(unified_circle.circle.iterations[position] for position in on),
        perimeter_s=unified_circle.circle.perimeter_s,
        begins_s=tuple(seconds[on].tolist()),
        scores=(1.0 - float(excess[0]), 1.0 - float(excess[1])),
        use=(
            _use(simulator, meetings, component, link, on, None),
            _use(simulator, meetings, component, link, on, (seconds, unified_circle.circle.periods_s)),
        ),
    )


def _use(
    simulator: Simulator,
    meetings: SharedLinks,
    component: Component,
    link: int,
    on: np.ndarray,
    turned: tuple[np.ndarray, tuple[float, ...]] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Use of a link by the jobs at `on` in the long run: all begin at once, or `turned` by (seconds, periods)."""
    links, s = simulator.topology.links, simulator.raw.record
    assert links is not None
    contenders = []
    for position, job in enumerate(component.jobs):
        place = meetings.places[job]
        if turned is None:
            contenders.append(Contender(place.phases, place.use))
            continue
        seconds, periods = float(turned[0][position]), turned[1][position]
        begin_s = seconds % periods
        shift_s, period_s = (begin_s, periods) if shift_now(s, job) is not None else (None, None)
        contenders.append(Contender(place.phases, place.use, shift_s, period_s, begin_s))
    times_s = [phases.iteration_s for phases in component.phases]
    longest_s = max(times_s)
    begin_s = WARM_UP * longest_s
    end_s = begin_s + min(SHOWN[1] * longest_s, max(SHOWN[0] * longest_s, QUICK * min(times_s)))
    run = PhaseRun(links.capacity, contenders, log=True)
    run.play(end_s)
    when, who, rate, _ = run.log()
    steps = np.unique(np.concatenate([[begin_s, end_s], when[(when > begin_s) & (when < end_s)]]))
    sent = np.zeros((len(steps), len(on)))
    for column, position in enumerate(on.tolist()):
        place = contenders[position].use
        flows = float(place.flows[place.links == link].sum())
        own = (who == position) & (rate >= 0)
        at = np.searchsorted(when[own], steps, side="right") - 1
        sent[:, column] = np.where(at >= 0, rate[own][np.maximum(at, 0)], 0.0) * flows if own.any() else 0.0
    return steps - begin_s, sent
