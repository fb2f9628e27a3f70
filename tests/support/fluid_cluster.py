"""Random clusters whose jobs share links, played by the simulator as a user calls it, and by the reference."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from clustergym import Advance, Shift, Simulator, Start, Topology, Workload
from clustergym.tests.support.fluid_reference import FluidJob, FluidPlay, Played
from clustergym.tests.support.random_fluid import GBPS, draw_ups


@dataclass
class Scripted:
    """Starts every job where it is told to; shifts some of those that run, drawn anew, whenever it is asked.

    Attributes:
        gpus: of each job. rng, often: which is shifted, how often, to where.
        given: the shifts: at, job, seconds, period.
    """

    gpus: list[list[int]]
    rng: np.random.Generator
    often: float
    given: list[tuple[float, int, float, float]] = field(default_factory=list)
    instant: int = -1
    due: list[int] = field(default_factory=list)

    def decide(self, view: Any) -> Any:
        for job in view.queue.tolist():
            return Start(job, self.gpus[job])
        if self.instant != view.instant:
            self.instant = view.instant
            self.due = [job for job in view.running.tolist() if self.rng.random() < self.often]
        while self.due:
            job = self.due.pop(0)
            period_s = view.period_s(job)
            if period_s is not None:
                self.given.append((view.now_s, job, float(self.rng.uniform(0, 1)), period_s))
                return Shift(job, self.given[-1][2])
        return Advance()


@dataclass
class FluidCluster:
    """Machines on 2 or 3 leaf switches, which hang on each other; cables of 25 to 100 Gbps each way, or all of 50.

    Jobs lie anywhere, 2 to 4 GPUs each; each has phases of its own, whose iterations the workload makes longer or
    shorter. There is one way from machine to machine.
    """

    seed: int
    gpus_per_machine: int
    graph: nx.DiGraph = field(default_factory=nx.DiGraph)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        leaves = int(self.rng.integers(2, 4))
        self.equal = bool(self.seed % 2)
        self.machines = [f"{leaf}.{number}" for leaf in range(leaves) for number in range(3)]
        self.graph.add_nodes_from(f"leaf {leaf}" for leaf in range(leaves))
        self.graph.add_nodes_from(self.machines, gpus=self.gpus_per_machine)
        for machine in self.machines:
            self.cable(machine, f"leaf {machine[0]}")
        for leaf in range(1, leaves):
            self.cable("leaf 0", f"leaf {leaf}")
        self.topology = Topology.from_graph(self.graph)
        self.capacity = self.topology.links.capacity
        places = self.rng.permutation(self.gpus_per_machine * len(self.machines)).tolist()
        sizes = self.rng.integers(2, 5, self.rng.integers(2, 6)).tolist()
        gangs = [sorted(places[sum(sizes[:job]) : sum(sizes[: job + 1])]) for job in range(len(sizes))]
        self.gpus = [gang for gang in gangs if len(gang) > 1]
        self.arrival_s = np.sort(self.rng.uniform(0, 2, len(self.gpus)))
        self.rounds = self.rng.integers(15, 50, len(self.gpus))
        self.stretch = self.rng.uniform(0.5, 2, len(self.gpus))
        self.iteration_s = self.rng.uniform(0.1, 0.5, len(self.gpus))
        self.ups = [draw_ups(self.rng, float(seconds)) for seconds in self.iteration_s]
        self.local_s = [t - sum(up[1] for up in ups) for t, ups in zip(self.iteration_s, self.ups, strict=True)]

    def cable(self, a: str, b: str) -> None:
        """Link two nodes, each way."""
        for edge in ((a, b), (b, a)):
            self.graph.add_edge(*edge, capacity_gbps=50.0 if self.equal else float(self.rng.uniform(25, 100)))

    def best_s(self, job: int) -> float:
        """An iteration placed best, before it is stretched: on one machine where one is large enough."""
        return self.local_s[job] if len(self.gpus[job]) <= self.gpus_per_machine else float(self.iteration_s[job])

    def play(self, folder: Path, options: str, often: float) -> tuple[Simulator, Scripted]:
        """Play it by our simulator; the phases are written into the folder."""
        phases = [[{"start_s": a, "duration_s": b, "gbps": rate / GBPS} for a, b, rate in ups] for ups in self.ups]
        models = {
            f"model{job}": [{"iteration_s": float(self.iteration_s[job]), "phases": phases[job]}]
            for job in range(len(self.gpus))
        }
        path = folder / f"phases {self.seed}.json"
        path.write_text(json.dumps({"models": models}))
        sizes = np.array([len(gang) for gang in self.gpus])
        iteration_s = np.array([self.best_s(job) for job in range(len(sizes))]) * self.stretch
        workload = Workload.from_arrays(
            "fluid",
            self.arrival_s,
            sizes,
            iteration_s * self.rounds,
            iterations=self.rounds.astype(float),
            iteration_s=iteration_s,
            model=list(models),
            batch_size=sizes * 32,
        )
        simulator = Simulator(self.topology, f"contention:models={path}{options}")
        simulator.reset(workload)
        policy = Scripted(self.gpus, np.random.default_rng(self.seed), often)
        simulator.run(policy)
        return simulator, policy

    def flows(self, job: int) -> tuple[int, ...]:
        """A ring over the machines of a job, in their order."""
        number = {(a, b): data["link"] for a, b, data in self.topology.links.graph().edges(data=True)}
        machines = sorted({gpu // self.gpus_per_machine for gpu in self.gpus[job]})
        flows = [0] * len(self.capacity)
        for a, b in zip(machines, machines[1:] + machines[:1], strict=True):
            way = nx.shortest_path(self.graph, self.machines[a], self.machines[b])
            for link in pairwise(way):
                flows[number[link]] += 1
        return tuple(flows)

    def reference(self, given: list[tuple[float, int, float, float]], **terms: Any) -> Played:
        """Play it by the reference, with the shifts that were decided; those of a job's first instant hold at once."""
        jobs = []
        for job, longer in enumerate(self.stretch.tolist()):
            flows = self.flows(job)
            ups = tuple((a * longer, b * longer, rate) for a, b, rate in self.ups[job]) if any(flows) else ()
            takes = float(self.iteration_s[job]) if any(flows) else self.local_s[job]
            first = [shift[2:] for shift in given if shift[:2] == (self.arrival_s[job], job)]
            begins = {"begin_s": float(self.arrival_s[job]), "rounds": float(self.rounds[job])}
            jobs.append(replace(FluidJob(takes * longer, ups, flows, *(first[-1] if first else ())), **begins))
        play = FluidPlay(self.capacity, jobs, **terms)
        for at_s, job, seconds, period_s in given:
            if at_s > self.arrival_s[job]:
                play.play(at_s)
                play.shift(job, seconds, period_s)
        return play.play(1e6)
