"""The excess that TimeShift-v0 shows is that of the paper's circles, worked out by numpy from the placements alone."""

from __future__ import annotations

from collections.abc import Mapping

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.timeshift.columns import CANDIDATES, CLUSTER, RUNNING
from clustergym.envs.timeshift.offered_decisions import gangs_after, way_of
from clustergym.envs.timeshift.shared_links import Component, Place, SharedLinks, shared_links_of, turned_now
from clustergym.policies.cassini.compatibility import BUCKETS
from clustergym.simulator.contention.circle import Grid, demand, unify

GOLDEN, DRAWS = 0.6180339887498949, 16
NEAR = {"abs": 1e-5}


def circle(component: Component, degrees: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """What each job of a component wants at each angle, and the angles of its rotations."""
    found, grid = unify([one.iteration_s for one in component.phases], component.padding), Grid(degrees)
    rows = [demand(one, found, job, grid) for job, one in enumerate(component.phases)]
    return np.array(rows), [grid.shifts(found, job) for job in range(len(rows))]


def excess(component: Component, wanted: np.ndarray, turned: np.ndarray) -> np.ndarray:
    """Mean excess of each link, as a fraction of its capacity, with the jobs turned so."""
    rows = np.array([np.roll(row, by) for row, by in zip(wanted, turned, strict=True)])
    above = np.maximum(component.flows @ rows - component.capacity[:, None], 0.0)
    return above.mean(axis=1) / component.capacity


def rotations(component: Component, job: int, turned: np.ndarray) -> list[float]:
    """Mean excess on the links of a job at each of its rotations, the others turned so."""
    wanted, shifts = circle(component, 5.0)
    on, found = component.flows[:, job] > 0, []
    for shift in shifts[job]:
        at = turned.copy()
        at[job] = shift
        found.append(excess(component, wanted, at)[on].mean())
    return found


def at_any_rotations(component: Component) -> np.ndarray:
    """The mean excess of each link over rotations that are evenly spread."""
    wanted, _ = circle(component, 15.0)
    jobs, found = np.arange(len(wanted)), np.zeros(len(component.capacity))
    for draw in range(DRAWS):
        turns = (draw * GOLDEN * (jobs + 1) * (jobs + 1) + jobs / 7) % 1.0
        found += excess(component, wanted, (turns * wanted.shape[1]).astype(np.int64)) / DRAWS
    return found


def placed(env, gangs: Mapping[int, tuple[int, ...]]) -> SharedLinks:
    """Where these gangs meet."""
    simulator = env.simulator
    own = simulator.network.together(simulator.topology, simulator.workload, gangs)
    return shared_links_of({job: Place(*one) for job, one in own.items()}, env.view.link_capacity, 0.01)


def check_candidate(shown: np.ndarray, met: SharedLinks, running: int) -> None:
    """The row of a placement says where jobs meet then."""
    if not met.components:
        assert shown[CANDIDATES.contending] == shown[CANDIDATES.excess_any] == 0.0
        return
    free = np.concatenate([at_any_rotations(component) for component in met.components])
    assert shown[CANDIDATES.contending] == pytest.approx(len(met.component_of) / running, **NEAR)
    assert shown[CANDIDATES.excess_any] == pytest.approx(min(1.0, free.mean()), **NEAR)
    assert 0.0 <= shown[CANDIDATES.excess_good] <= shown[CANDIDATES.excess_any]
    load = max(component.load.max() for component in met.components)
    assert shown[CANDIDATES.load] == pytest.approx(load / (1.0 + load), **NEAR)


def test_excess_is_that_of_the_circles_of_the_placements():
    env = gymnasium.make(
        "clustergym/TimeShift-v0", workload="cassini-poisson:jobs=24,load=1.4,iteration_s=0.8"
    ).unwrapped
    policy, seen = policies.make("random"), {"offers": 0, "turns": 0, "excess": 0}
    observation, _ = env.reset(seed=1)
    ended = False
    while not ended:
        m, gangs = env.interface.memory, env.view.gangs
        met, rows = placed(env, gangs), observation["candidates"].reshape(-1, len(CANDIDATES))
        links = np.concatenate([np.zeros(0, np.int64), *(place.use.links for place in met.places.values())])
        users = np.bincount(links, minlength=env.simulator.topology.links.num_links)
        assert observation["cluster"][CLUSTER.shared_links] == pytest.approx((users > 1).mean(), **NEAR)
        turned = {component.jobs: turned_now(env.simulator, component) for component in met.components}
        shown = observation["running"].reshape(-1, len(RUNNING))
        for job, row in zip(env.interface.raw["running_job"].tolist(), shown, strict=False):
            component = met.component_of.get(job)
            if job in met.places:
                shared = users[met.places[job].use.links] > 1
                assert row[RUNNING.shared_links] == pytest.approx(shared.mean(), **NEAR)
            if component is not None:
                on = component.flows[:, component.jobs.index(job)] > 0
                now = excess(component, circle(component, 5.0)[0], turned[component.jobs])[on].mean()
                assert row[RUNNING.excess] == pytest.approx(min(1.0, now), **NEAR)
                seen["excess"] += bool(now > 0.0)
        if observation["cluster"][CLUSTER.placing]:
            for candidate in range(1 + int(m["n_offers"])):
                after = gangs_after(gangs, way_of(m, candidate))
                if rows[candidate, CANDIDATES.legal]:
                    check_candidate(rows[candidate], placed(env, after), max(1, len(after)))
                    seen["offers"] += 1
        elif met.component_of.get(job := int(m["turning"][0])) is not None:
            component = met.component_of[job]
            found = rotations(component, component.jobs.index(job), turned[component.jobs])
            assert len(found) == BUCKETS
            assert observation["rotations"] == pytest.approx(np.minimum(1.0, found), **NEAR)
            seen["turns"] += 1
        observation, _, terminated, truncated, _ = env.step(policy.act(env))
        ended = terminated or truncated
    assert min(seen.values()) > 10
