"""Elastic jobs: how fast a job trains on the GPUs it holds, with the batch that it picks for them.

The semantics are those of Pollux's simulator (OSDI'21 artifact). A job's work is progress (goodput.py), in proportion
to its iterations: those of a whole training at the workload's batch are the whole progress of the application; a job
with more goes on in the last epoch.

A job runs at one pace until an interval or one of its epochs ends (rounded to whole seconds). Then its step and
synchronisation times and gradient noise enter its throughput fit, and it picks the batch with the best predicted
goodput. So a scheduler knows of a job what it has measured. With `tunes=False` every job keeps its GPUs and batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..base.errors import InputError
from ..events.initialise import gpus_of
from ..network.simulated import Simulated
from ..profiles.goodput import Application, Goodput, gain, split_batch
from .online_fit import fit_throughput

# Applications that neither scale nor take another batch in the artifact: batch.
PINNED = {"ncf": 32768}
MOST_GPUS = 64  # nothing is known of larger gangs
BEFORE = 1e-6  # seconds: phases end so much before a round, at which a scheduler then sees them over
SAME = 1e-3  # seconds: instants that are nearer are one
WHOLE = 1e-9  # relative: progress that is nearer to the end of an epoch, or of a training, has reached it

Configuration = tuple[tuple[int, ...], int, int]  # GPUs on each node, samples per GPU and pass, further passes


@dataclass
class Turn:
    """What a job does until its next look: in which stretch on its GPUs, from when, how, and what it will see."""

    stretch: int
    since_s: float
    configuration: Configuration
    seen: tuple[float, float]
    noise: tuple[float, float]


@dataclass(frozen=True)
class Work:
    """The work of a job: the progress of an iteration of the workload, and at each epoch's end, float64."""

    per_iteration: float
    ends: np.ndarray

    @classmethod
    def of(cls, application: Application, iterations: float, batch: int) -> Work:
        """The work of a job that asks so many iterations of a batch over all its GPUs."""
        progress = application.progress
        share = iterations / application.steps_of(batch)
        end = float(progress[-1]) * (1.0 if abs(share - 1.0) <= WHOLE else share)
        before = progress[:-1][progress[:-1] < end * (1.0 - WHOLE)]
        return cls(end / iterations, np.append(before, end))


@dataclass
class Trainee:
    """The knowledge of a running job about itself.

    Args:
        goodput: of what it trains, on up to MOST_GPUS.
        batch: the batch that it must keep; None: it picks one.
        gpus: the most GPUs that it may get; None: as many as its application allows.

    Attributes:
        seen: (nodes, GPUs, samples per GPU) -> (step s, synchronisation s).
        fit: throughput parameters, None until something was seen.
        noise: squared norm and variance of the gradient when it last looked.
        versions: how often its knowledge has changed.
    """

    goodput: Goodput
    work: Work
    batch: int | None = None
    gpus: int | None = None
    seen: dict[tuple[int, int, int], tuple[float, float]] = field(default_factory=dict)
    fit: np.ndarray | None = None
    noise: tuple[float, float] = (0.0, 0.0)
    versions: int = 0
    turn: Turn | None = None

    @property
    def application(self) -> Application:
        """What it trains."""
        return self.goodput.application

    @property
    def most_gpus(self) -> int:
        """How many GPUs it may get now: at most twice as many as it has tried, one if it never ran."""
        tried = max((gpus for _, gpus, _ in self.seen), default=0)
        limit = self.application.largest_batch // self.application.smallest_local
        return min(max(2 * tried, 1), MOST_GPUS, limit, self.gpus or MOST_GPUS)

    def copy(self) -> Trainee:
        """Another one that knows the same."""
        return replace(self, seen=dict(self.seen))

    def look(self, stretch: int, now_s: float) -> None:
        """Take in what it saw since its last look, if it computed at all and was not stopped."""
        turn, self.turn = self.turn, None
        if turn is None or turn.stretch != stretch or now_s <= turn.since_s + SAME:
            return
        placement, local, _ = turn.configuration
        key = len(placement), sum(placement), local
        if key in self.seen and turn.noise == self.noise:
            return
        self.noise = turn.noise
        self.versions += 1
        if key not in self.seen:
            self.seen[key] = turn.seen
            self.fit = fit_throughput(self.seen)

    def choose(self, placement: tuple[int, ...]) -> Configuration:
        """The batch for its GPUs: its own, or the best that it knows; (placement, samples per pass, further passes)."""
        application, gpus = self.application, sum(placement)
        if self.batch is not None:
            return placement, *split_batch(application, self.batch, gpus)
        if self.fit is None:
            least = max(application.smallest_batch, application.smallest_local * gpus)
            return placement, *split_batch(application, least, gpus)
        return placement, *self.goodput.best_batch(self.fit, self.noise, gpus, len(placement))

    def run(self, stretch: int, since_s: float, configuration: Configuration, epoch: int) -> float:
        """Progress per second in an epoch, for real; remembered as what it will see."""
        placement, local, extra = configuration
        batch = sum(placement) * local * (extra + 1)
        step_s, sync_s = self.application.times_s(placement, local)
        noise = self.application.noise(batch, epoch)
        self.turn = Turn(stretch, since_s, configuration, (step_s, sync_s), noise)
        step = gain(noise, batch / self.application.smallest_batch)
        return float(step / (step_s + (step_s - sync_s) * extra))

    def goodputs(self, most: int) -> np.ndarray:
        """Predicted progress per second on 0 to `most` GPUs of one node, of more: (2, most + 1); ValueError: unseen."""
        if self.fit is None:
            raise ValueError("a job that never ran predicts nothing")
        table = np.zeros((2, most + 1))
        table[:, 1:] = self.goodput.table(self.fit, self.noise, slice(0, most), (1, 2))
        return table

    def fair_goodput(self, gpus: int) -> float:
        """Predicted progress per second on so many GPUs of one node."""
        assert self.fit is not None
        table = self.goodput.table(self.fit, self.noise, slice(gpus - 1, gpus), (1,))
        return float(table[0, 0])


class TrainingRates:
    """How fast the jobs of a workload train: a `RateProvider` (simulated.py), handed to a `Simulator`.

    The workload's `model` says what a job trains, its `iterations` and `batch_size` how much of it.

    Args:
        application_of: model name -> application (elastic/applications.py).
        tunes: True: jobs are elastic and pick their batch; False: each has the GPUs and the batch of the workload.
        interval_s: seconds, whole; jobs take up what they saw at its multiples. Take the scheduler's rounds.

    Attributes:
        elastic, restores_first: of the protocol; here the first start costs what every restart does.
    """

    restores_first = True

    def __init__(
        self, application_of: Callable[[str], Application], tunes: bool = True, interval_s: float = 60.0
    ) -> None:
        if not (interval_s >= 1.0 and interval_s == round(interval_s)):
            raise InputError(f"interval_s = {interval_s!r}: expected a whole number of seconds, at least 1")
        self.application_of = application_of
        self.elastic = tunes
        self.interval_s = float(interval_s)
        self._goodputs: dict[str, Goodput] = {}
        self._runs: WeakKeyDictionary[Simulated, tuple[int, dict[int, Trainee]]] = WeakKeyDictionary()

    def trainee(self, simulator: Simulated, job: int) -> Trainee:
        """What a job knows of itself in the present run; after `Simulator.restore` it has to learn it anew."""
        trainees = self._of_run(simulator)
        if job not in trainees:
            trainees[job] = self._arrive(simulator, job)
        return trainees[job]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.application_of, self.elastic, self.interval_s)

    def _of_run(self, simulator: Simulated) -> dict[int, Trainee]:
        run, trainees = self._runs.get(simulator, (-1, {}))
        if run != simulator.runs:
            trainees = {}
            self._runs[simulator] = simulator.runs, trainees
        return trainees

    def memory(self, simulator: Simulated) -> dict[int, Trainee]:
        """What the jobs of the present run know of themselves, for `recall`."""
        return {job: trainee.copy() for job, trainee in self._of_run(simulator).items()}

    def recall(self, simulator: Simulated, memory: dict[int, Trainee]) -> None:
        """A simulator now stands where one stood of whose run `memory` was remembered."""
        self._runs[simulator] = simulator.runs, {job: trainee.copy() for job, trainee in memory.items()}

    def _arrive(self, simulator: Simulated, job: int) -> Trainee:
        workload = simulator.workload
        model = str(workload.model[job])
        if model not in self._goodputs:
            self._goodputs[model] = Goodput(self.application_of(model), MOST_GPUS)
        goodput = self._goodputs[model]
        application, batch = goodput.application, int(workload.batch_size[job])
        if batch < 1:
            raise InputError(
                f"job {workload.job_id[job]} has no batch_size; expected one, which says how many iterations make a "
                f"whole training of {application.name}"
            )
        work = Work.of(application, float(workload.iterations[job]), batch)
        if self.elastic:
            pinned = PINNED.get(application.name)
            return Trainee(goodput, work, pinned, None if pinned is None else 1)
        if not application.smallest_batch <= batch <= application.largest_batch:
            raise InputError(
                f"job {workload.job_id[job]}: batch_size {batch}; expected {application.smallest_batch} to "
                f"{application.largest_batch}, what is known of {application.name}"
            )
        return Trainee(goodput, work, batch)

    def rate(self, simulator: Simulated, job: int) -> tuple[float, float]:
        """Seconds per iteration until the interval or the epoch ends, and the iterations that are left then."""
        s = simulator.state
        trainee, stretch = self.trainee(simulator, job), int(s.starts[job])
        trainee.look(stretch, float(s.now_s))
        since_s = max(float(s.now_s), float(s.since_s[job]))
        begin_s = round(since_s) if abs(since_s - round(since_s)) < SAME else since_s
        end_s = (begin_s // self.interval_s + 1.0) * self.interval_s
        ends, per_iteration = trainee.work.ends, trainee.work.per_iteration
        left = float(s.iterations_left[job])
        done = ends[-1] - left * per_iteration
        epoch = min(int(np.searchsorted(ends, done * (1.0 + WHOLE) + WHOLE, side="right")), len(ends) - 1)
        to_go = float(ends[epoch] - done)
        speed = trainee.run(stretch, since_s, trainee.choose(_placement(simulator, job)), epoch)
        if speed * (end_s - begin_s) < to_go:
            left_then = left - speed * (end_s - begin_s) / per_iteration
        else:
            left_then = float(ends[-1] - ends[epoch]) / per_iteration
            end_s = begin_s + round(to_go / speed)
        # An epoch that ends at once ends after the round's decision, as in that simulator; all else ends before one.
        took_s = end_s - BEFORE - since_s if end_s > begin_s else begin_s + BEFORE - since_s
        return max(took_s, BEFORE / 10.0) / (left - left_then), left_then


def _placement(simulator: Simulated, job: int) -> tuple[int, ...]:
    machine_of = simulator.topology.gpu_machine
    counts: dict[int, int] = {}
    for gpu in gpus_of(simulator.state, job):
        machine = int(machine_of[gpu])
        counts[machine] = counts.get(machine, 0) + 1
    return tuple(counts.values())
