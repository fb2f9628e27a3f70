"""Up and Down phases of one training iteration: when a job wants the network, how long, and how fast (paper cassini).

`Phases` is a job alone on its placement. The patterns are those of Figure 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.errors import InputError
from ..numerics.float_sums import sum_in_order

HYBRID_MINIBATCHES = 2  # of Figure 1(d), assumed: see `hybrid`
LOADING = 0.05  # near-zero demand between phases, as a part of the phase before: "a short period" in the text, assumed


@dataclass(frozen=True)
class Phases:
    """One iteration: Up phases, and Down (no demand) between them.

    Attributes:
        iteration_s: seconds of the whole iteration, > 0.
        start_s, duration_s: seconds, of each Up phase; ascending, apart from each other, inside the iteration.
        rate: bytes per second of each Up phase, > 0, on a link that the job's collective crosses once.

    Raises:
        InputError: numbers that are not so.
    """

    iteration_s: float
    start_s: tuple[float, ...] = ()
    duration_s: tuple[float, ...] = ()
    rate: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.iteration_s, *self.start_s, *self.duration_s, *self.rate)
        if not all(math.isfinite(number) for number in numbers) or self.iteration_s <= 0:
            raise InputError(f"{self}: expected finite numbers and an iteration of more than 0 seconds")
        if not len(self.start_s) == len(self.duration_s) == len(self.rate):
            raise InputError(f"{self}: expected as many starts as durations and rates")
        slack = 1e-9 * self.iteration_s
        before = -slack
        for start, duration, rate in zip(self.start_s, self.duration_s, self.rate, strict=True):
            if start < before - slack or duration <= 0 or rate <= 0:
                raise InputError(f"{self}: expected phases in order, without overlap, longer than 0 and with a rate")
            before = start + duration
        if before > self.iteration_s + slack:
            raise InputError(f"{self}: expected all phases inside the iteration")

    @property
    def up_s(self) -> float:
        """Seconds of all Up phases."""
        return sum_in_order(self.duration_s)

    @property
    def bytes(self) -> float:
        """Bytes of all Up phases."""
        return sum_in_order(duration * rate for duration, rate in zip(self.duration_s, self.rate, strict=True))

    @property
    def peak(self) -> float:
        """The highest rate, bytes per second; 0 without Up phases."""
        return max(self.rate, default=0.0)

    def rate_at(self, times_s: np.ndarray) -> np.ndarray:
        """Demand at times of the iteration, bytes per second, same shape; 0 in Down phases and after the iteration."""
        times = np.asarray(times_s, np.float64)
        found = np.zeros(times.shape)
        for start, duration, rate in zip(self.start_s, self.duration_s, self.rate, strict=True):
            found[(times >= start) & (times < start + duration)] = rate
        return found


def in_order(parts: Sequence[tuple[float, float]], iteration_s: float = 0.0) -> Phases:
    """Phases from consecutive (seconds, bytes per second), rate 0: Down; the rest of `iteration_s` is Down."""
    starts, durations, rates, now = [], [], [], 0.0
    for seconds, rate in parts:
        if seconds > 0 and rate > 0:
            starts.append(now)
            durations.append(seconds)
            rates.append(rate)
        now += seconds
    return Phases(max(now, iteration_s), tuple(starts), tuple(durations), tuple(rates))


def ring_bytes(gradient_bytes: float, members: int) -> float:
    """Bytes that each member of a ring all-reduce sends: 2 (n - 1) / n times the gradients."""
    return 2.0 * (members - 1) / members * gradient_bytes


def data_parallel(
    compute_s: float, gradient_bytes: float, workers: int, rate: float, shortest_up_s: float = 0.0
) -> Phases:
    """Figure 1(a): a Down phase of computing, then an Up phase that all-reduces the gradients in a ring.

    `rate`: bytes per second of the ring. `shortest_up_s`: the least length of the Up phase, at a lower rate then.
    Setting: cassini, Figure 1(a).
    """
    sent = ring_bytes(gradient_bytes, workers)
    if sent <= 0:
        return in_order([(compute_s, 0.0)])
    up_s = max(sent / rate, shortest_up_s)
    return in_order([(compute_s, 0.0), (up_s, sent / up_s)])


def pipeline(
    compute_s: float, activation_bytes: float, shared_bytes: float, rate: float, minibatches: int = 3
) -> Phases:
    """Figure 1(b): small peaks of activations during the forward pass, then the heavy all-reduce of the embeddings.

    The text has three peaks, for three minibatches, and "heavy communication demand following the peaks": read as after
    the backward pass. A peak overlaps the computing of the next minibatch. A third of compute is the forward pass.

    Args:
        compute_s: seconds of computing of one stage. activation_bytes: of one minibatch.
        shared_bytes: parameters of both the first and the last stage, all-reduced between the two.

    Setting: cassini, Figure 1(b).
    """
    peak_s = activation_bytes / rate
    step_s = max(compute_s / 3.0 / minibatches, peak_s)  # a stage cannot send faster than the link
    parts = [(step_s, 0.0)]
    for _ in range(minibatches - 1):
        parts += [(peak_s, rate), (step_s - peak_s, 0.0)]
    backward_s = max(2.0 / 3.0 * compute_s - peak_s, 0.0)
    return in_order([*parts, (peak_s, rate), (backward_s, 0.0), (ring_bytes(shared_bytes, 2) / rate, rate)])


def tensor_parallel(compute_s: float, rate: float) -> Phases:
    """Figure 1(c): forward and backward pass at one rate ("roughly 25 Gbps"), then data loading without demand.

    Setting: cassini, Figure 1(c).
    """
    return in_order([(compute_s, rate), (LOADING * compute_s, 0.0)])


def hybrid(
    compute_s: float,
    tensor_rate: float,
    activation_bytes: float,
    shared_bytes: float,
    gradient_bytes: float,
    replicas: int,
    rate: float,
) -> Phases:
    """Figure 1(d): data, pipeline and tensor parallelism together, six Up phases with different demands.

    Which phases they are is only in the picture. Assumed: forward and backward of two minibatches (the tensor traffic
    of Figure 1(c) plus the activations to the next stage or back), the all-reduce of the embeddings as in Figure 1(b),
    and that of the gradients between the replicas; a short Down phase after each. One replica has no sixth.

    Args:
        compute_s: seconds of computing of one server. activation_bytes: of one of the two minibatches.
        gradient_bytes: of one server. rate: of the all-reduces, and the most that a phase takes, bytes per second.

    Setting: cassini, Figure 1(d).
    """
    parts = []
    for share in (1 / 6, 1 / 6, 2 / 6, 2 / 6):  # forward passes, backward passes
        sent = tensor_rate * share * compute_s + activation_bytes
        seconds = max(share * compute_s, sent / rate)
        parts += [(seconds, sent / seconds), (LOADING * seconds, 0.0)]
    for sent in (ring_bytes(shared_bytes, 2), ring_bytes(gradient_bytes, replicas)):
        parts += [(sent / rate, rate), (LOADING * sent / rate, 0.0)]
    return in_order(parts)


def embeddings(compute_s: float, exchanged_bytes: float, gradient_bytes: float, workers: int, rate: float) -> Phases:
    """A recommendation model: embedding tables on all workers, the rest replicated (paper cassini, Sec. 5.1, DLRM).

    Forward, the samples' embeddings are exchanged all-to-all: of one worker's `exchanged_bytes` (n - 1) / n are sent.
    After computing, their gradients go back and the replicated part all-reduces. A third of compute is forward.
    Setting: cassini, Sec. 5.1.
    """
    exchange_s = exchanged_bytes * (workers - 1) / workers / rate
    back_s = exchange_s + ring_bytes(gradient_bytes, workers) / rate
    forward_s = compute_s / 3.0
    return in_order([(forward_s / 2, 0.0), (exchange_s, rate), (forward_s / 2 + 2 * forward_s, 0.0), (back_s, rate)])
