"""SJF-BSBF and SJF-FFS in plain Python, written from the paper alone (arXiv 2407.13088, Sec. IV and V).

Nothing is remembered between events: every event looks at every job and every GPU anew.

What a pair costs (Theorem 1 and Algorithm 2), and why. Theorem 1 weighs "simultaneously invoking" a new job A beside
a running job B against "sequentially executing them" (schedule (a) of Fig. 1: A waits until B is gone). Sec. V-A says
that this is the same as comparing the fully overlapped with the fully non-overlapped times. Algorithm 2 asks it once
for each sub-batch b. Sec. IV-A4 says what b is for: gradient accumulation is a means against the memory that two jobs
on one GPU lack ("as our model incorporates GPU sharing, the memory footprint frequently imposes constraints"); the
batch that the user asked for is B_k, and a smaller sub-batch only makes the iteration longer (Eq. 7). So

* together: A runs with sub-batch b from now to its end, because it must fit beside B and a job's setting is not changed
  while it runs (Sec. IV-B); its whole work is taken at b, also the part that it does alone once B has gone;
* in sequence: A starts when B has left the GPU. Nothing is beside it then, so it accumulates only as far as an empty
  GPU makes it: its work is taken at its whole batch B_k, or at the largest half of it that fits an empty GPU.

The sequential sum is therefore one number for a pair, the same at every b, and a b that makes A so slow that waiting
and running at the whole batch ends both sooner does not share. Taking the sequential work at b too would charge the job
that waits with an accumulation that it does not do; Line 7 of Algorithm 2 (keep the configuration with the least time)
asks for the least time of the pair over all configurations, and waiting at the whole batch is one of them.

The paper prints 2 xi_B + xi_A - 2 xi_A xi_B > 0 as the condition; that is for its case 2 alone (A ends first), and the
text asks for the direct comparison, which is what is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

TIE = 1e-12  # relative: sums as close as this are a tie, and a tie shares


@dataclass(frozen=True)
class Job:
    """What a user submits; `iteration_s` is of one iteration alone with the whole batch at the best placement."""

    arrival_s: float
    gpus: int
    iterations: float
    iteration_s: float
    model: int
    batch: int  # samples a GPU in one iteration


@dataclass(frozen=True)
class Setting:
    """The cluster (one machine) and the policy; `xi[a][b]` is how many times slower a job of model a is beside b."""

    num_gpus: int
    xi: Sequence[Sequence[float]]
    policy: str  # "first-fit" (SJF-FFS) or "best-benefit" (SJF-BSBF)
    free: str  # "last": free GPUs complete a gang of shared ones; "first": the other way round; "never": neither
    memory: Callable[[int, int], float] | None  # bytes of a model with a sub-batch; None: no limit
    room: float  # bytes of a GPU
    stretch: Callable[[Job, int], float]  # iteration time with a sub-batch over that with the whole batch


@dataclass
class Run:
    """What happened: starts in the order in which they were decided, and the end of every job that ended."""

    decisions: list[tuple[float, int, tuple[int, ...], int]] = field(default_factory=list)
    finish_s: dict[int, float] = field(default_factory=dict)


@dataclass
class Running:
    """A job that holds GPUs: its gang in the order given, its sub-batch, and how many iterations it has left."""

    gang: tuple[int, ...]
    sub_batch: int
    iterations_left: float


def sum_of_jcts(insertion_s, new_s, xi_new, running_s, xi_running, whole_s=None):
    """Both completion times from now, summed, if the new job starts `insertion_s` from now beside the running one.

    `new_s` and `running_s` are seconds of work alone. From `running_s` on the new job has the GPUs to itself, and needs
    `whole_s` (None: as much).
    """
    if insertion_s >= running_s:
        return running_s + insertion_s + (new_s if whole_s is None else whole_s)
    rest_s = running_s - insertion_s
    if new_s * xi_new >= rest_s * xi_running:  # case 1: the running job ends first
        running_end_s = rest_s * xi_running
        new_end_s = running_end_s + new_s - running_end_s / xi_new
    else:  # case 2: the new one does
        new_end_s = new_s * xi_new
        running_end_s = new_end_s + rest_s - new_end_s / xi_running
    return 2 * insertion_s + new_end_s + running_end_s


def sequential_sum(new_s, running_s):
    """Schedule (a) of Fig. 1: the running job to its end, then the new one."""
    return running_s + (running_s + new_s)


def sub_batches(batch):
    """B, B/2, ..., 1 in whole samples."""
    found = [int(batch)]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found


class Cluster:
    """All that is known at one moment."""

    def __init__(self, jobs: Sequence[Job], setting: Setting):
        self.jobs = jobs
        self.setting = setting
        self.now_s = 0.0
        self.waiting: list[int] = []
        self.running: dict[int, Running] = {}

    def holders(self, gpu: int) -> list[int]:
        return [j for j in sorted(self.running) if gpu in self.running[j].gang]

    def free_gpus(self) -> list[int]:
        return [g for g in range(self.setting.num_gpus) if not self.holders(g)]

    def alone_held(self, j: int) -> list[int]:
        return [g for g in self.running[j].gang if self.holders(g) == [j]]

    def fits(self, j: int, sub_batch: int, beside: Sequence[int] = ()) -> bool:
        memory = self.setting.memory
        if memory is None:
            return True
        taken = sum(memory(self.jobs[k].model, self.running[k].sub_batch) for k in beside)
        return taken + memory(self.jobs[j].model, sub_batch) <= self.setting.room

    def largest_fitting(self, j: int, gpus: Sequence[int]) -> int | None:
        """The largest sub-batch with which the job fits on every one of `gpus`."""
        for b in sub_batches(self.jobs[j].batch):
            if all(self.fits(j, b, self.holders(g)) for g in gpus):
                return b
        return None

    def alone_on_empty(self, j: int) -> int | None:
        """The sub-batch that the job has on empty GPUs."""
        for b in sub_batches(self.jobs[j].batch):
            if self.fits(j, b):
                return b
        return None

    def iteration_alone_s(self, j: int, sub_batch: int) -> float:
        return self.jobs[j].iteration_s * self.setting.stretch(self.jobs[j], sub_batch)

    def iteration_now_s(self, j: int) -> float:
        """A gang goes at the pace of its slowest GPU."""
        run = self.running[j]
        row = self.setting.xi[self.jobs[j].model]
        slowest = max(max([row[self.jobs[k].model] for k in self.holders(g) if k != j], default=1.0) for g in run.gang)
        return self.iteration_alone_s(j, run.sub_batch) * slowest

    # Theorem 1 and Algorithm 2

    def pair_at(self, new: int, partner: int, sub_batch: int) -> tuple[float, bool]:
        """Theorem 1: the sum of both JCTs if they share from now with that sub-batch, and whether they should."""
        new_job, held = self.jobs[new], self.running[partner]
        xi = self.setting.xi
        left_s = held.iterations_left * self.iteration_alone_s(partner, held.sub_batch)
        at_b_s = new_job.iterations * self.iteration_alone_s(new, sub_batch)
        whole_s = new_job.iterations * self.iteration_alone_s(new, self.alone_on_empty(new))
        there = self.jobs[partner].model
        together = sum_of_jcts(0.0, at_b_s, xi[new_job.model][there], left_s, xi[there][new_job.model])
        return together, together <= sequential_sum(whole_s, left_s) * (1.0 + TIE)

    def best_setting(self, new: int, partner: int) -> tuple[float, int] | None:
        """Algorithm 2: the least sum of both JCTs and its sub-batch (the larger of a tie); None: do not share."""
        best = None
        for b in sub_batches(self.jobs[new].batch):
            if not self.fits(new, b, [partner]):
                continue
            together, shares = self.pair_at(new, partner, b)
            if shares and (best is None or together < best[0]):
                best = (together, b)
        return best

    # Algorithm 1

    def place(self, j: int) -> tuple[tuple[int, ...], int] | None:
        """GPUs and sub-batch for a waiting job, or None."""
        need = self.jobs[j].gpus
        if self.alone_on_empty(j) is None:
            return None
        free = self.free_gpus()
        if len(free) >= need:
            return tuple(free[:need]), self.alone_on_empty(j)
        if self.setting.policy == "first-fit":
            return self.first_fit(j, free)
        return self.best_benefit(j, free)

    def shared_wanted(self, j: int, free: list[int]) -> int:
        """How many GPUs that hold one job are taken where there are enough of them."""
        return self.jobs[j].gpus - (len(free) if self.setting.free == "first" else 0)

    def completed(self, j: int, shared: list[int], free: list[int]) -> tuple[int, ...] | None:
        need = self.jobs[j].gpus
        gang = shared[: self.shared_wanted(j, free)]
        if self.setting.free != "never":
            gang = gang + free[: need - len(gang)]
        return tuple(gang) if len(gang) == need else None

    def first_fit(self, j: int, free: list[int]) -> tuple[tuple[int, ...], int] | None:
        shared = []
        for g in range(self.setting.num_gpus):
            holders = self.holders(g)
            if len(holders) == 1 and self.fits(j, 1, holders):
                shared.append(g)
        gang = self.completed(j, shared, free)
        return None if gang is None else (gang, self.largest_fitting(j, gang))

    def best_benefit(self, j: int, free: list[int]) -> tuple[tuple[int, ...], int] | None:
        wanted = self.shared_wanted(j, free)
        sharers = []  # (sum of JCTs, partner, sub-batch)
        for k in sorted(self.running):
            found = self.best_setting(j, k) if self.alone_held(k) else None
            if found is not None:
                sharers.append((found[0], k, found[1]))
        sharers.sort()
        while sharers:
            chosen, shared = [], []
            for row in sharers:
                if len(shared) < wanted:
                    chosen.append(row)
                    shared += self.alone_held(row[1])
            common = min(b for _, _, b in chosen)
            refusing = [row for row in chosen if not self.pair_at(j, row[1], common)[1]]
            if not refusing:
                gang = self.completed(j, shared, free)
                return None if gang is None else (gang, common)
            sharers = [row for row in sharers if row not in refusing]
        return None

    def begin_one(self, run: Run, order: list[int]) -> int | None:
        """Start the first job of `order` that gets GPUs; its place in the order."""
        for place, j in enumerate(order):
            found = self.place(j)
            if found is not None:
                gang, b = found
                self.running[j] = Running(gang, b, self.jobs[j].iterations)
                self.waiting.remove(j)
                run.decisions.append((self.now_s, j, gang, b))
                return place
        return None

    def schedule(self, run: Run) -> None:
        """One pass over the waiting jobs, shortest first; under `never` every start makes it begin anew."""

        def isolated_s(j: int) -> tuple[float, int]:
            return self.jobs[j].iterations * self.jobs[j].iteration_s, j

        order = sorted(self.waiting, key=isolated_s)
        while (place := self.begin_one(run, order)) is not None:
            order = sorted(self.waiting, key=isolated_s) if self.setting.free == "never" else order[place + 1 :]

    def advance(self, to_s: float, ending: Sequence[int], run: Run) -> None:
        done = {j: (to_s - self.now_s) / self.iteration_now_s(j) for j in self.running}
        for j, iterations in done.items():
            self.running[j].iterations_left -= iterations
        for j in ending:
            del self.running[j]
            run.finish_s[j] = to_s
        self.now_s = to_s


def simulate(jobs: Sequence[Job], setting: Setting) -> Run:
    """Play all jobs to their ends. A job that can never start has no end and no decision."""
    cluster, run = Cluster(jobs, setting), Run()
    to_come = sorted(range(len(jobs)), key=lambda j: (jobs[j].arrival_s, j))
    while to_come or cluster.running:
        ends = {j: cluster.now_s + r.iterations_left * cluster.iteration_now_s(j) for j, r in cluster.running.items()}
        next_s = min([*ends.values(), *(jobs[j].arrival_s for j in to_come[:1])])
        cluster.advance(next_s, [j for j, end_s in ends.items() if end_s == next_s], run)
        while to_come and jobs[to_come[0]].arrival_s <= next_s:
            cluster.waiting.append(to_come.pop(0))
        cluster.schedule(run)
    return run
