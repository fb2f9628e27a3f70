"""Paper sjf-bsbf: what Algorithm 2 predicts of every shared start, in random runs on one machine.

The paper decides pair by pair. With one partner the two of them are then predicted to do no worse than one after the
other. A gang that needs several partners is more: it goes at its slowest GPU beside all of them at once, and each pair
is weighed as if the others were not there. Here such a start is weighed as a whole, against waiting for the last of
the partners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ....policies import make
from ....simulator.base.decisions import Start
from ....simulator.engine.simulator import Simulator
from ....simulator.engine.view import ClusterView
from ....simulator.sharing.sharing_model import Sharing
from ....simulator.workloads import Workload

MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
LARGEST_BATCH = {"bert": 12, "cifar10": 1024, "deepspeech2": 80, "imagenet": 200, "ncf": 32768, "yolov3": 8}
SAME = 1e-9  # relative: sums closer than this do not differ


@dataclass(frozen=True)
class XiTable:
    """Interference of `MODELS` as a matrix: `xi[i, j]` is how many times slower model i is beside model j."""

    xi: np.ndarray

    def matrix(self, models: Sequence[str]) -> np.ndarray:
        """(n, n) of those models."""
        known = [MODELS.index(model) for model in models]
        return self.xi[np.ix_(known, known)]


def random_run(seed: int, policy: str, free: str = "last") -> tuple[Workload, Simulator]:
    """A workload, and a simulator with its rule: 2 to 24 GPUs of one machine, 5 to 40 jobs at a load of 0.5 to 3.

    xi goes up to 4, or is one constant up to 2; memory is 11, 13 or 20 GiB or has no limit; batches are the largest
    measured ones on a 2080 Ti, a half or a quarter.
    """
    rng = np.random.default_rng(seed)
    num_gpus, n = int(rng.integers(2, 25)), int(rng.integers(5, 41))
    gpus = np.minimum(2 ** rng.integers(0, 5, n), num_gpus)
    gpus = np.where(rng.random(n) < 0.2, rng.integers(1, num_gpus + 1, n), gpus)
    duration_s = rng.lognormal(6, 1.2, n)
    arrival_s = np.sort(rng.uniform(0.0, (gpus * duration_s).sum() / num_gpus / rng.uniform(0.5, 3.0), n))
    names = rng.choice(MODELS[: rng.integers(1, 7)], n)
    per_gpu = np.array([LARGEST_BATCH[name] for name in names]) >> rng.integers(0, 3, n)
    xi = 1.0 + rng.uniform(0.0, rng.choice([0.2, 1.0, 3.0]), (6, 6))
    if rng.random() < 0.3:
        xi[:] = rng.choice([1.0, 1.25, 1.5, 1.6, 2.0])
    memory_gb = [None, 11.0, 13.0, 20.0][rng.integers(4)]
    workload = Workload.from_arrays(
        "random",
        arrival_s,
        gpus,
        duration_s,
        model=names,
        iterations=duration_s / rng.choice([0.1, 0.25, 1.0], n),
        batch_size=np.maximum(1, per_gpu) * gpus,
    )
    rule = make(policy, placer="count", free=free).rule
    sharing = Sharing(interference=XiTable(xi), memory_gb=memory_gb)
    return workload, Simulator(f"flat:machines=1,gpus_per_machine={num_gpus}", rule=rule, sharing=sharing)


@dataclass(frozen=True)
class Partner:
    """A running job beside which another one starts.

    Attributes:
        left_s: seconds of work that it has left alone, with its sub-batch.
        xi_new: times that the new job is slower beside it.
        xi: times that it is slower beside the new one.
    """

    left_s: float
    xi_new: float
    xi: float


@dataclass(frozen=True)
class SharedStart:
    """A start beside running jobs; sums of the completion times of all of them, seconds from then.

    Attributes:
        job: index.
        partners: how many.
        free: GPUs of its gang that hold no other job.
        together_s: it starts now, at the sub-batch that it got.
        apart_s: it starts when the last partner has ended, at the sub-batch of an empty GPU.
    """

    job: int
    partners: int
    free: int
    together_s: float
    apart_s: float

    @property
    def worse(self) -> bool:
        """True if waiting for all partners is predicted to give the smaller sum."""
        return self.together_s > self.apart_s * (1.0 + SAME)


def together_sum_s(new_s: float, partners: Sequence[Partner]) -> float:
    """Completion times of a new job and all its partners, summed, if it starts now: the gang goes at its slowest GPU.

    Args:
        new_s: seconds of work that it brings, alone with its sub-batch.
        partners: at least one; among each other they share nothing.
    """
    left = {place: partner.left_s for place, partner in enumerate(partners)}
    now_s = total_s = 0.0
    while left:
        pace = max(partners[place].xi_new for place in left)
        stretch_s = min([new_s * pace, *(left_s * partners[place].xi for place, left_s in left.items())])
        now_s += stretch_s
        if stretch_s == new_s * pace:
            return total_s + now_s + sum(now_s + left_s - stretch_s / partners[k].xi for k, left_s in left.items())
        new_s -= stretch_s / pace
        for place in list(left):
            if stretch_s == left[place] * partners[place].xi:
                total_s += now_s
                del left[place]
            else:
                left[place] -= stretch_s / partners[place].xi
    return total_s + now_s + new_s


def apart_sum_s(whole_s: float, partners: Sequence[Partner]) -> float:
    """The same if it starts when the last of them has ended; `whole_s`: its seconds at an empty GPU's sub-batch."""
    left_s = [partner.left_s for partner in partners]
    return sum(left_s) + max(left_s) + whole_s


def shared_starts(simulator: Simulator) -> Iterator[SharedStart | None]:
    """Play a run that was just reset by its rule's decisions; each of its starts, None for one on free GPUs alone.

    The cluster has one machine: any of its GPUs are then a job's best placement, which Algorithm 2 counts with.
    """
    while not simulator.ended:
        decision = simulator.next_decision()
        if isinstance(decision, Start):
            yield _predicted(simulator.view, decision)
        simulator.apply(decision)


def _predicted(view: ClusterView, start: Start) -> SharedStart | None:
    job, gpus = start.job, start.gpus
    names = sorted({other for gpu in gpus for other in view.jobs_on(gpu)})
    if not names:
        return None
    iterations = _iterations_left(view, job)
    partners = [Partner(_alone_left_s(view, other), view.interference(job, other), view.interference(other, job))
                for other in names]  # fmt: skip
    sub_batch = view.sub_batch(job) if start.sub_batch is None else start.sub_batch
    return SharedStart(
        job,
        len(partners),
        sum(not view.jobs_on(gpu) for gpu in gpus),
        together_sum_s(iterations * view.solo_s(job, gpus, sub_batch), partners),
        apart_sum_s(iterations * view.solo_s(job, gpus, view.sub_batch(job)), partners),
    )


def _iterations_left(view: ClusterView, job: int) -> float:
    return view.remaining_s(job) / view.isolated_s(job) * float(view.workload.iterations[job])


def _alone_left_s(view: ClusterView, job: int) -> float:
    return _iterations_left(view, job) * view.solo_s(job, view.gpus_of(job), view.sub_batch(job))


@dataclass(frozen=True)
class StartCounts:
    """Starts of random runs, by how many partners they had; `*_worse`: predicted worse than waiting for all of them."""

    runs: int
    alone: int
    one: int
    one_worse: int
    several: int
    several_worse: int

    @property
    def several_worse_share(self) -> float:
        """Of the starts with several partners, 0 to 1; nan: there are none."""
        return self.several_worse / self.several if self.several else float("nan")


def count_starts(seeds: Iterable[int], policy: str = "sjf-bsbf", free: str = "last") -> StartCounts:
    """Play `random_run` of every seed, and count what is predicted of its starts."""
    runs = 0
    found: list[SharedStart | None] = []
    for seed in seeds:
        workload, simulator = random_run(seed, policy, free)
        simulator.reset(workload)
        found += shared_starts(simulator)
        runs += 1
    one = [start for start in found if start is not None and start.partners == 1]
    several = [start for start in found if start is not None and start.partners > 1]
    return StartCounts(
        runs,
        len(found) - len(one) - len(several),
        len(one),
        sum(start.worse for start in one),
        len(several),
        sum(start.worse for start in several),
    )
