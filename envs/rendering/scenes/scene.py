"""A plain description of a cluster at one instant, read from the state record; the workload gives names only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, starmap

import numpy as np

from ....simulator.base.codes import DOWN, FREE, HELD
from ....simulator.base.tiers import UNPLACED
from ....simulator.engine.simulator import Simulator
from ....simulator.jobs.workload import Workload
from ....simulator.numerics.bitset import next_member
from .seen import mean_jct_s

SHOWN_JOBS = 64  # waiting and held jobs that a scene describes one by one, each
LABEL_LENGTH = 5


@dataclass(frozen=True)
class Machine:
    """One machine: the GPUs of each slot, side by side."""

    slots: tuple[range, ...]

    @property
    def gpus(self) -> range:
        """Its GPUs."""
        return range(self.slots[0].start, self.slots[-1].stop)


@dataclass(frozen=True)
class Rack:
    """One rack and its machines."""

    index: int
    machines: tuple[Machine, ...]

    @property
    def gpus(self) -> range:
        """Its GPUs."""
        return range(self.machines[0].gpus.start, self.machines[-1].gpus.stop)


@dataclass(frozen=True)
class ClusterShape:
    """GPUs of each slot, slots of each machine, machines of each rack; hashable, as a key of layouts."""

    slot_gpus: tuple[int, ...]
    machine_slots: tuple[int, ...]
    rack_machines: tuple[int, ...]

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return sum(self.slot_gpus)

    def racks(self) -> tuple[Rack, ...]:
        """Racks with their machines, slots and GPUs, in index order."""
        return _racks(self)


@dataclass(frozen=True)
class RunningJob:
    """A job on GPUs."""

    job: int  # its index, in order of arrival
    label: str  # at most 5 characters: its id, or "#" and its index
    name: str
    model: str
    gpus: int
    tier: int  # code of its placement's tier
    progress: float  # share of its iterations that is done, 0 to 1
    remaining_s: float  # until it ends at its present speed, a restore included
    beside: tuple[str, ...] = ()  # labels of the jobs that it shares a GPU with


@dataclass(frozen=True)
class WaitingJob:
    """A job without GPUs: `waited_s` since it arrived or lost them; `is_held`: it is not offered now."""

    job: int
    label: str
    name: str
    model: str
    gpus: int
    waited_s: float
    is_held: bool


@dataclass(frozen=True)
class Scene:
    """The content of a picture."""

    name: str  # of the topology
    now_s: float
    shape: ClusterShape
    owner: np.ndarray  # int64 (GPUs,), the first job on each GPU, or `codes.FREE`, or `codes.DOWN`
    partners: np.ndarray  # int64 (k, GPUs), the other jobs on each GPU, then `codes.FREE`; k = 0 without shared GPUs
    tier: np.ndarray  # int64 (GPUs,), widest tier code of the placements of a GPU's jobs; -1: none
    running: tuple[RunningJob, ...]  # all, in order of arrival
    queue: tuple[WaitingJob, ...]  # the first waiting jobs in window order
    held: tuple[WaitingJob, ...]  # the first held ones in order of arrival
    free: int  # GPUs
    down: int
    waiting: int  # this and the next three: counts of all jobs
    held_jobs: int
    done: int
    jobs: int
    largest_gang: int  # GPUs of the workload's largest job
    jct_s: float  # mean JCT of finished jobs, seconds; nan: none is

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return len(self.owner)

    @property
    def used(self) -> int:
        """GPUs that jobs hold."""
        return self.gpus - self.free - self.down

    @property
    def shared(self) -> int:
        """GPUs that several jobs hold."""
        return int(np.count_nonzero((self.partners >= 0).any(axis=0))) if len(self.partners) else 0

    def racks(self) -> tuple[Rack, ...]:
        """Racks with their machines, slots and GPUs, in index order."""
        return self.shape.racks()


def read_scene(simulator: Simulator, shown_jobs: int = SHOWN_JOBS) -> Scene:
    """The scene at the present instant, with at most `shown_jobs` waiting and as many held jobs."""
    s, workload = simulator.state, simulator.workload
    owner, *others = _holders(s, simulator.view.jobs_per_gpu)
    partners = np.array(others, np.int64).reshape(-1, len(owner))
    holders = np.vstack([owner, partners])
    tier = np.where(holders >= 0, s.tier[np.maximum(holders, 0)], UNPLACED).max(axis=0)
    held = np.flatnonzero(s.status[: s.next_arrival] == HELD)[:shown_jobs] if s.held else ()
    return Scene(
        name=simulator.topology.name,
        now_s=float(s.now_s),
        shape=_shape(s),
        owner=owner,
        partners=partners,
        tier=tier,
        running=_running(s, workload, holders),
        queue=tuple(_waiting(s, workload, job, False) for job in _window(s, shown_jobs)),
        held=tuple(_waiting(s, workload, int(job), True) for job in held),
        free=int(np.count_nonzero(owner == FREE)),
        down=int(np.count_nonzero(owner == DOWN)),
        waiting=int(s.waiting),
        held_jobs=int(s.held),
        done=int(s.done),
        jobs=int(s.n_jobs),
        largest_gang=int(s.gpus[: s.n_jobs].max()),
        jct_s=mean_jct_s(s),
    )


def _holders(s: np.record, layers: int) -> np.ndarray:
    """int64 (layers, GPUs): the jobs on each GPU, in ascending order, then `FREE`; or `DOWN`."""
    room = len(s.gpu_slot)
    berths = np.stack([s.gpu_job[layer * room :][: s.n_gpus] for layer in range(layers)]).astype(np.int64)
    down = berths[0] == DOWN
    late = np.iinfo(np.int64).max  # sorts empty places last
    held = np.sort(np.where(berths >= 0, berths, late), axis=0)
    held[held == late] = FREE
    held[0, down] = DOWN
    return held


def _shape(s: np.record) -> ClusterShape:
    counts = s.slot_gpus[: s.n_slots], s.machine_slots[: s.n_machines], s.rack_machines[: s.n_racks]
    return ClusterShape(*(tuple(each.tolist()) for each in counts))


@lru_cache(maxsize=8)
def _racks(shape: ClusterShape) -> tuple[Rack, ...]:
    bounds = np.concatenate([[0], np.cumsum(shape.slot_gpus)]).tolist()
    slots = starmap(range, pairwise(bounds))
    machines = (Machine(tuple(islice(slots, count))) for count in shape.machine_slots)
    return tuple(Rack(i, tuple(islice(machines, count))) for i, count in enumerate(shape.rack_machines))


def _running(s: np.record, workload: Workload, holders: np.ndarray) -> tuple[RunningJob, ...]:
    jobs = np.sort(s.runner[: s.running])
    ran_s = np.maximum(0.0, s.now_s - s.since_s[jobs])
    left = s.iterations_left[jobs] - ran_s / s.iteration_s[jobs]
    progress = np.clip(1.0 - left / s.iterations[jobs], 0.0, 1.0)
    remaining_s = np.maximum(0.0, s.planned_finish_s[jobs] - s.now_s)
    beside = _beside(holders)
    labels = [tuple(_names(workload, other)[0] for other in beside.get(int(job), ())) for job in jobs]
    columns = [column.tolist() for column in (jobs, s.gpus[jobs], s.tier[jobs], progress, remaining_s)]
    return tuple(RunningJob(job, *_names(workload, job), *rest) for job, *rest in zip(*columns, labels, strict=True))


def _beside(holders: np.ndarray) -> dict[int, list[int]]:
    found: dict[int, set[int]] = {}
    for gpu in np.flatnonzero((holders[1:] >= 0).any(axis=0)).tolist():
        jobs = [int(job) for job in holders[:, gpu] if job >= 0]
        for job in jobs:
            found.setdefault(job, set()).update(jobs)
    return {job: sorted(others - {job}) for job, others in found.items()}


def _window(s: np.record, most: int) -> Iterator[int]:
    low, mid, top = s.window_low, s.window_mid, s.window_top
    rank = next_member(low, mid, top, 0)
    for _ in range(most):
        if rank < 0:
            return
        yield int(s.job_at_rank[rank])
        rank = next_member(low, mid, top, rank + 1)


def _waiting(s: np.record, workload: Workload, job: int, is_held: bool) -> WaitingJob:
    waited_s = float(s.now_s - s.waiting_since_s[job])
    return WaitingJob(job, *_names(workload, job), int(s.gpus[job]), waited_s, is_held)


def _names(workload: Workload, job: int) -> tuple[str, str, str]:
    texts = str(workload.job_id[job]), str(workload.model[job])
    name, model = ("".join(c if c.isprintable() else "?" for c in text) for text in texts)
    return (name if len(name) <= LABEL_LENGTH else f"#{job}"), name, model
