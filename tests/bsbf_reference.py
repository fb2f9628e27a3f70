"""Sharing GPUs in plain Python, to check the kernels against: Algorithms 1 and 2 of paper sjf-bsbf, a search that
stands for its Theorem 1, and a small simulation by events in which two jobs may share a GPU.

Every event looks at every job anew, and nothing is remembered from one pass to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

TIE = 1e-12  # relative; sums of JCTs that differ by rounding only are equal


@dataclass(frozen=True)
class Job:
    """A job as the reference knows it; `batch` is what one GPU takes per iteration."""

    arrival_s: float
    gpus: int
    iterations: float
    iteration_s: float
    model: int = 0
    batch: int = 1


@dataclass(frozen=True)
class Setting:
    """What holds for a whole run.

    Attributes:
        num_gpus: of the cluster, which is flat.
        xi: slowdown of a model (row) beside another (column).
        policy: `first-fit` or `best-benefit`.
        free: `last`: free GPUs complete a gang that shared ones do not fill; `never`.
        memory: bytes of a model with a sub-batch of so many samples; None: nothing is checked.
        room: bytes of a GPU.
        stretch: iteration time of a job with a sub-batch over that with the whole batch, on the same free GPUs.
    """

    num_gpus: int
    xi: Sequence[Sequence[float]]
    policy: str = "best-benefit"
    free: str = "last"
    memory: Callable[[int, int], float] | None = None
    room: float = math.inf
    stretch: Callable[[Job, int], float] = lambda job, b: 1.0


@dataclass
class Running:
    """A job on its GPUs."""

    job: int
    gpus: list[int]
    sub_batch: int
    solo_s: float
    left: float
    since_s: float
    slowdown: float = 1.0

    @property
    def iteration_s(self) -> float:
        """Seconds per iteration as it is shared now."""
        return self.solo_s * self.slowdown

    @property
    def end_s(self) -> float:
        """When it ends if nothing changes."""
        return self.since_s + self.left * self.iteration_s


def sum_of_jcts(insert_s: float, new_s: float, xi_new: float, running_s: float, xi_running: float) -> float:
    """JCT of a new job and remaining JCT of a running one, if the new one starts at `insert_s` on its GPUs.

    Step by step: alone, together, alone. Times of work are those of each job alone.
    """
    if insert_s >= running_s:
        return running_s + insert_s + new_s
    running_left_s = running_s - insert_s
    together_s = min(new_s * xi_new, running_left_s * xi_running)
    new_left_s = max(0.0, new_s - together_s / xi_new)
    running_left_s = max(0.0, running_left_s - together_s / xi_running)
    both_s = insert_s + together_s
    return (both_s + new_left_s) + (both_s + running_left_s)


def theorem_1(new_s: float, xi_new: float, running_s: float, xi_running: float) -> tuple[float, bool]:
    """The best sum of JCTs of a pair, and whether it comes from starting the new job at once."""
    at_once = sum_of_jcts(0.0, new_s, xi_new, running_s, xi_running)
    at_the_end = sum_of_jcts(running_s, new_s, xi_new, running_s, xi_running)
    shares = at_once <= at_the_end * (1.0 + TIE)
    return (at_once if shares else at_the_end), shares


def halvings(batch: int) -> list[int]:
    """B, B/2, ..., 1."""
    found = [batch]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found


@dataclass
class Run:
    """One simulation."""

    jobs: Sequence[Job]
    setting: Setting
    now_s: float = 0.0
    waiting: list[int] = field(default_factory=list)
    running: dict[int, Running] = field(default_factory=dict)
    holders: list[list[int]] = field(default_factory=list)
    finish_s: dict[int, float] = field(default_factory=dict)
    decisions: list[tuple[float, int, tuple[int, ...], int]] = field(default_factory=list)

    def play(self) -> Run:
        """To the end."""
        self.holders = [[] for _ in range(self.setting.num_gpus)]
        coming = sorted(range(len(self.jobs)), key=lambda j: (self.jobs[j].arrival_s, j))
        while coming or self.running:
            arrival_s = self.jobs[coming[0]].arrival_s if coming else math.inf
            self.now_s = min([arrival_s, *(r.end_s for r in self.running.values())])
            while coming and self.jobs[coming[0]].arrival_s <= self.now_s:
                self.waiting.append(coming.pop(0))
            for j in sorted(j for j, r in self.running.items() if r.end_s <= self.now_s):
                self.finish(j)
            self.schedule()
        assert not self.waiting, "jobs wait, and nothing is to come"
        return self

    def schedule(self) -> None:
        """Algorithm 1."""
        for j in sorted(self.waiting, key=lambda j: (self.work_s(j), j)):
            free = [g for g, holders in enumerate(self.holders) if not holders]
            if len(free) >= self.jobs[j].gpus:
                chosen: tuple[list[int], int] | None = (free[: self.jobs[j].gpus], self.largest_alone(j))
            elif self.setting.policy == "first-fit":
                chosen = self.first_fit(j, free)
            else:
                chosen = self.best_benefit(j, free)
            if chosen is not None:
                self.start(j, *chosen)
                if self.setting.free == "never":  # it may be the partner that a job before it was missing
                    return self.schedule()

    def work_s(self, j: int) -> float:
        return self.jobs[j].iterations * self.jobs[j].iteration_s

    def fits(self, j: int, b: int, gpu: int) -> bool:
        """Whether job `j` with sub-batch `b` fits beside those that hold `gpu`."""
        memory = self.setting.memory
        if memory is None:
            return True
        used = sum(memory(self.jobs[k].model, self.running[k].sub_batch) for k in self.holders[gpu])
        return used + memory(self.jobs[j].model, b) <= self.setting.room

    def largest_alone(self, j: int) -> int:
        memory = self.setting.memory
        model, bs = self.jobs[j].model, halvings(self.jobs[j].batch)
        return bs[0] if memory is None else next(b for b in bs if memory(model, b) <= self.setting.room)

    def first_fit(self, j: int, free: list[int]) -> tuple[list[int], int] | None:
        """SJF-FFS: GPUs with one job in index order, then free ones; the largest sub-batch that fits on all of them."""
        bs = halvings(self.jobs[j].batch)
        ones = [g for g, holders in enumerate(self.holders) if len(holders) == 1 and self.fits(j, bs[-1], g)]
        gang = self.completed(j, ones, free)
        return None if gang is None else (gang, next(b for b in bs if all(self.fits(j, b, g) for g in gang)))

    def completed(self, j: int, shared: list[int], free: list[int]) -> list[int] | None:
        gang = shared[: self.jobs[j].gpus]
        short = self.jobs[j].gpus - len(gang)
        if short > 0 and (self.setting.free == "never" or short > len(free)):
            return None
        return gang + free[:short]

    def best_benefit(self, j: int, free: list[int]) -> tuple[list[int], int] | None:
        """Lines 10 to 17 of Algorithm 1: partners by the JCT of the pair, each pair checked at the common sub-batch."""
        offers = []
        for k in self.running:
            if any(len(self.holders[g]) == 1 for g in self.running[k].gpus):
                best = self.algorithm_2(j, k)
                if best is not None:
                    offers.append((best[0], k, best[1]))
        offers.sort()
        while True:
            chosen: list[tuple[float, int, int]] = []
            gpus: list[int] = []
            for offer in offers:
                if len(gpus) < self.jobs[j].gpus:
                    chosen.append(offer)
                    gpus += [g for g in self.running[offer[1]].gpus if len(self.holders[g]) == 1]
            gang = self.completed(j, gpus, free)
            if gang is None:
                return None
            b = min(offer[2] for offer in chosen)
            refusing = [offer for offer in chosen if not self.pair(j, offer[1], b)[1]]
            if not refusing:
                return gang, b
            offers = [offer for offer in offers if offer not in refusing]

    def algorithm_2(self, j: int, k: int) -> tuple[float, int] | None:
        """The best JCT of a pair and its sub-batch; None if they do not share. The larger sub-batch on ties."""
        best: tuple[float, int, bool] | None = None
        gpu = next(g for g in self.running[k].gpus if len(self.holders[g]) == 1)
        for b in halvings(self.jobs[j].batch):
            if not self.fits(j, b, gpu):
                continue
            t_share, shares = self.pair(j, k, b)
            if best is None or t_share < best[0]:
                best = t_share, b, shares
        return best[:2] if best is not None and best[2] else None

    def pair(self, j: int, k: int, b: int) -> tuple[float, bool]:
        new, running = self.jobs[j], self.running[k]
        xi = self.setting.xi
        new_s = self.work_s(j) * self.setting.stretch(new, b)
        running_s = (running.end_s - self.now_s) / running.slowdown
        model = self.jobs[k].model
        return theorem_1(new_s, xi[new.model][model], running_s, xi[model][new.model])

    def start(self, j: int, gang: list[int], b: int) -> None:
        job = self.jobs[j]
        self.waiting.remove(j)
        solo_s = job.iteration_s * self.setting.stretch(job, b)
        self.running[j] = Running(j, gang, b, solo_s, job.iterations, self.now_s)
        for g in gang:
            self.holders[g].append(j)
        self.decisions.append((self.now_s, j, tuple(gang), b))
        self.rerate({k for g in gang for k in self.holders[g]})

    def finish(self, j: int) -> None:
        gone = self.running.pop(j)
        for g in gone.gpus:
            self.holders[g].remove(j)
        self.finish_s[j] = self.now_s
        self.rerate({k for g in gone.gpus for k in self.holders[g]})

    def rerate(self, touched: set[int]) -> None:
        """Book what they have done, and set how fast they run now: a gang at its slowest GPU."""
        for k in sorted(touched):
            running = self.running[k]
            running.left -= (self.now_s - running.since_s) / running.iteration_s
            running.since_s = self.now_s
            xi = self.setting.xi[self.jobs[k].model]
            running.slowdown = max(
                1.0 + sum(xi[self.jobs[other].model] - 1.0 for other in self.holders[g] if other != k)
                for g in running.gpus
            )


def simulate(jobs: Sequence[Job], setting: Setting) -> Run:
    """One run to its end."""
    return Run(jobs, setting).play()
