"""How long one iteration of a model takes on so many GPUs: Equations 3, 4 and 7 of paper sjf-bsbf, Sec. IV-A.

    t_comp(B) = a + b B                                          (Eq. 3; B samples on each GPU)
    t_comm    = ai + bi max(K - 2, 0)   in one machine           (Eq. 4; K GPUs)
              = an + bn max(K - 2, 0)   between machines
    t_iter    = (s - 1) t_comp(B/s) + (t_comp(B/s)^d + t_comm^d)^(1/d)    (Eq. 7; s accumulation steps)

The paper's alpha + beta M is one constant per model and tier; the term in K is Pollux's. One GPU exchanges nothing and
has a straight line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

GPU_TYPES = ("t4", "2080ti", "a100")
MIB = 2.0**20
# What jobs may fill together: the data sheets' 11 and 40 GB; of the T4's 16 GB its driver leaves 15,110 MiB (ECC).
GPU_MEMORY_BYTES: Mapping[str, float] = {"t4": 15_110 * MIB, "2080ti": 11_264 * MIB, "a100": 40_960 * MIB}
PARAMETERS = ("a", "b", "ai", "bi", "an", "bn", "d", "one_a", "one_b")


@dataclass(frozen=True)
class ThroughputFit:
    """The fitted parameters of one model on one GPU type.

    Attributes:
        a, b: of t_comp, seconds and seconds per sample on one GPU, on two GPUs and more.
        ai, bi: of t_comm in one machine, seconds and seconds per GPU; nan where it was not measured.
        an, bn: the same between machines.
        d: overlap of computation and communication, >= 1; 1 is none.
        one_a, one_b: the straight line of a single GPU.
        largest_batch: the largest number of samples that was measured in one pass on a GPU.
        source: where the measurements are from.
        error: of iteration times over all measured rows, percent: "mape", "median", "p95".
    """

    a: float
    b: float
    ai: float
    bi: float
    an: float
    bn: float
    d: float
    one_a: float
    one_b: float
    largest_batch: int
    source: str
    error: Mapping[str, float] = field(default_factory=dict)

    @property
    def in_machine(self) -> bool:
        """Whether several GPUs of one machine were measured."""
        return bool(np.isfinite(self.ai + self.bi))

    @property
    def between_machines(self) -> bool:
        """Whether GPUs of several machines were measured."""
        return bool(np.isfinite(self.an + self.bn))

    def row(self) -> np.ndarray:
        """The parameters as (9,) float64, in the order of `PARAMETERS`."""
        return np.array([getattr(self, name) for name in PARAMETERS], dtype=np.float64)

    def compute_s(self, batch: ArrayLike) -> np.ndarray:
        """Eq. 3: seconds of one pass over `batch` samples on each of several GPUs. Setting: sjf-bsbf, Eq. 3."""
        return self.a + self.b * np.asarray(batch, dtype=np.float64)

    def communication_s(self, gpus: ArrayLike, nodes: ArrayLike) -> np.ndarray:
        """Eq. 4: seconds to exchange the gradients of `gpus` GPUs on `nodes` machines; 0 for one GPU.

        Setting: sjf-bsbf, Eq. 4.
        """
        more = np.maximum(np.asarray(gpus, dtype=np.float64) - 2.0, 0.0)
        exchange_s = np.where(np.asarray(nodes) > 1, self.an + self.bn * more, self.ai + self.bi * more)
        return np.where(np.asarray(gpus) > 1, exchange_s, 0.0)

    def iteration_s(
        self, gpus: ArrayLike, nodes: ArrayLike, batch: ArrayLike, sub_batch: ArrayLike | None = None
    ) -> np.ndarray:
        """Eq. 7: seconds of one iteration. The arguments broadcast.

        Args:
            gpus, nodes: GPUs of the job, machines that they are on, >= 1 each.
            batch: samples per GPU and iteration, > 0.
            sub_batch: samples per GPU and pass at most; None: all of `batch` in one pass. The s = ceil(batch /
                sub_batch) passes are equal, batch / s samples each, as in Eq. 7.

        Setting: sjf-bsbf, Eq. 7.
        """
        batch = np.asarray(batch, dtype=np.float64)
        steps = np.ones_like(batch) if sub_batch is None else np.ceil(batch / np.asarray(sub_batch, dtype=np.float64))
        compute_s = self.compute_s(batch / steps)
        exchange_s = self.communication_s(gpus, nodes)
        # Both parts over their larger one, so that no power of a small number underflows.
        larger_s, smaller_s = np.maximum(compute_s, exchange_s), np.minimum(compute_s, exchange_s)
        last_s = larger_s * (1.0 + (smaller_s / larger_s) ** self.d) ** (1.0 / self.d)
        alone_s = steps * (self.one_a + self.one_b * (batch / steps))
        return np.where(np.asarray(gpus) > 1, (steps - 1.0) * compute_s + last_s, alone_s)
