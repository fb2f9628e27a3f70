"""Random networks as clusters have them, and jobs on them that come, go, and lose their ways: cases of random_fluid.py.

Cables are all equal, or equal on each tier, or all unequal; half of the cases have all their times and rates on a grid,
so that much begins and ends at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from clustergym.tests.support.fluid_reference import FluidJob
from clustergym.tests.support.random_fluid import GBPS, Case, Change, draw_ups

SHAPES = ("tree", "clos", "ring", "path")
CHANGED_S, PLAYED_S = 4.0, 5.0123  # changes come before; a play ends where nothing does
OFF_GRID_S = 0.0137


def draw_case(seed: int, shape: str = "") -> Case:
    """2 to 8 jobs on 2 to 4 hosts each of a network of that shape, or any; they play `PLAYED_S`."""
    rng = np.random.default_rng([seed, 5])
    graph = draw_graph(rng, shape or str(rng.choice(SHAPES)))
    number = rng.permutation(graph.number_of_edges())  # in no order that means something
    for link, (_, _, data) in enumerate(graph.edges(data=True)):
        data["link"] = int(number[link])
    capacity = np.zeros(len(number))
    for _, _, data in graph.edges(data=True):
        capacity[data["link"]] = data["gbps"] * GBPS
    grid, terms = bool(rng.integers(2)), draw_terms(rng)
    jobs = [draw_job(rng, graph, capacity, grid) for _ in range(rng.integers(2, 9))]
    if rng.random() < 0.3:
        jobs = [shifted(rng, job, capacity, grid) for job in jobs]
    changes: list[Change] = []
    if rng.random() < 0.3:
        changes += draw_scales(rng, len(capacity), grid)
    if rng.random() < 0.3:
        changes += draw_ways(rng, graph, jobs, len(capacity), grid)
    if rng.random() < 0.3 and "growth" not in terms:
        jobs, ranks = ranked(rng, jobs, grid)
        changes += ranks
    return Case(capacity, jobs, tuple(sorted(changes, key=lambda change: change[0])), terms)


def draw_terms(rng: np.random.Generator) -> dict[str, Any]:
    """Of the whole play: mostly those of a play without options."""
    terms: dict[str, Any] = {}
    if rng.random() < 0.3:
        terms["carried"] = float(rng.choice([0.88, 0.5]))
    if rng.random() < 0.2:
        terms["growth"] = (0.25, float(rng.choice([1.75, 0.5])))
    if rng.random() < 0.1:
        terms["pacing"] = False
    return terms


def draw_graph(rng: np.random.Generator, shape: str) -> nx.MultiDiGraph:
    """Hosts on switches; the edges have `gbps`, the nodes that are hosts `host`. Cables are links each way."""
    graph, hosts = nx.MultiDiGraph(), 2 if rng.random() < 0.5 else 3
    cables = str(rng.choice(["equal", "tiers", "unequal"]))
    up_gbps = 50.0 if cables == "equal" else float(rng.choice([25.0, 37.0, 75.0, 100.0, 150.0]))

    def cable(a: str, b: str, gbps: float) -> None:
        for edge in ((a, b), (b, a)):
            graph.add_edge(*edge, gbps=float(rng.uniform(25, 100)) if cables == "unequal" else gbps)

    switches = [f"switch {i}" for i in range(int(rng.integers(2, 5)))]
    if shape == "tree":
        for i in range(1, len(switches)):
            cable(switches[i], switches[int(rng.integers(i))], up_gbps)
    elif shape == "clos":
        for spine in range(int(rng.integers(2, 4))):
            for leaf in switches:
                cable(leaf, f"spine {spine}", up_gbps)
    elif shape == "ring":
        switches = [f"switch {i}" for i in range(int(rng.integers(3, 6)))]
        for a, b in zip(switches, switches[1:] + switches[:1], strict=True):
            cable(a, b, up_gbps)
    else:
        for a, b in pairwise(switches):
            for _ in range(int(rng.integers(1, 4))):
                cable(a, b, up_gbps)
    for switch in switches:
        for i in range(hosts):
            graph.add_node(f"host {switch} {i}", host=True)
            cable(f"host {switch} {i}", switch, 50.0)
    return graph


def draw_flows(rng: np.random.Generator, graph: nx.MultiDiGraph, links: int) -> tuple[float, ...]:
    """A ring over 2 to 4 hosts in any order, on any of the shortest ways; a fifth of them not of whole streams."""
    hosts = [node for node, is_host in graph.nodes(data="host") if is_host]
    ring = rng.choice(hosts, min(len(hosts), int(rng.integers(2, 5))), replace=False).tolist()
    streams, each = np.zeros(links), float(rng.choice([2.0, 0.5, 1365 / 4096])) if rng.random() < 0.2 else 1.0
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        ways = list(nx.all_shortest_paths(graph, a, b))
        for edge in pairwise(ways[int(rng.integers(len(ways)))]):
            parallel = list(graph.get_edge_data(*edge).values())
            streams[parallel[int(rng.integers(len(parallel)))]["link"]] += each
    return tuple(streams.tolist())


def draw_job(rng: np.random.Generator, graph: nx.MultiDiGraph, capacity: np.ndarray, grid: bool) -> FluidJob:
    """One that comes within a second, or at once, and leaves after 1 to 9 iterations, or not."""
    flows = draw_flows(rng, graph, len(capacity))
    if grid:
        down_s, up_s = 0.05 * rng.integers(1, 5, 2)
        gbps = float(rng.choice([20.0, 25.0, 40.0, 45.0, 50.0]))
        job = FluidJob(float(down_s + up_s), ((float(down_s), float(up_s), gbps * GBPS),), flows)
        begin_s = float(rng.choice([0.0, 0.0, 0.1, 0.5, 1.0]))
    else:
        iteration_s = float(rng.uniform(0.1, 0.5))
        job = FluidJob(iteration_s, draw_ups(rng, iteration_s), flows)
        begin_s = float(rng.uniform(0, 1))
    return replace(job, begin_s=begin_s, rounds=float(rng.integers(1, 10)) if rng.random() < 0.6 else math.inf)


def shifted(rng: np.random.Generator, job: FluidJob, capacity: np.ndarray, grid: bool) -> FluidJob:
    """The same with slots as far apart as its iteration alone, or a little further."""
    period_s = job.alone(capacity).iteration_s * (1.0 if grid else float(rng.uniform(1.0, 1.1)))
    return replace(job, shift_s=float(rng.uniform(0, period_s)), period_s=period_s)


def instants(rng: np.random.Generator, grid: bool) -> Iterator[float]:
    """1 to 6 of them within the play."""
    for at_s in rng.uniform(0, CHANGED_S, rng.integers(1, 7)).tolist():
        yield round(20 * at_s) / 20 if grid else at_s


def draw_scales(rng: np.random.Generator, links: int, grid: bool) -> list[Change]:
    """Links that carry a quarter, half or .9 of what they can, and some of which are as built again."""
    parts = (0.25, 0.5, 0.9, 1.0)
    return [(at_s, "scale", int(rng.integers(links)), (float(rng.choice(parts)),)) for at_s in instants(rng, grid)]


def draw_ways(
    rng: np.random.Generator, graph: nx.MultiDiGraph, jobs: list[FluidJob], links: int, grid: bool
) -> list[Change]:
    """Jobs that go other ways, or have none for .3 s and then the old ones.

    Not on the grid: whether a job that ends when its way is gone has sent its last byte is a matter of rounding.
    """
    found: list[Change] = []
    for at_s in instants(rng, grid):
        at_s += OFF_GRID_S
        job = int(rng.integers(len(jobs)))
        if rng.random() < 0.5:
            found.append((at_s, "lead", job, (draw_flows(rng, graph, links),)))
        else:
            found.append((at_s, "lead", job, ((0.0,) * links,)))
            found.append((at_s + 0.3, "lead", job, (jobs[job].flows,)))
    return found


def ranked(rng: np.random.Generator, jobs: list[FluidJob], grid: bool) -> tuple[list[FluidJob], list[Change]]:
    """Jobs with weights or with priorities, as Crux has them, and with others from some instant on."""

    def rank() -> tuple[float, int]:
        return (1.0, int(rng.integers(4))) if strict else (float(rng.choice([0.5, 1.0, 3.0])), 0)

    strict = bool(rng.random() < 0.7)
    jobs = [replace(job, weight=weight, priority=priority) for job in jobs for weight, priority in (rank(),)]
    return jobs, [(at_s, "rank", int(rng.integers(len(jobs))), rank()) for at_s in instants(rng, grid)]
