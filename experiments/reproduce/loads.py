"""The load that the workloads of a reproduction offer, for a note under its table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...simulator.workloads import Workload, open_workload


def offered_load_note(workloads: Mapping[str, Iterable[Workload | str | Path]], gpus: int | Sequence[int]) -> str:
    """What the workloads that were played ask of their clusters (`Workload.offered_load`), in one line.

    Args:
        workloads: by a name, the workloads, or the words or paths that open them: their mean is told, and their range.
        gpus: of the cluster, or of each cluster that they are played on.

    Raises:
        InputError: a workload that cannot be opened.
    """
    sizes = [gpus] if isinstance(gpus, int) else list(gpus)
    told = "; ".join(f"{name} {_told([_busy(one) for one in some], sizes)}" for name, some in workloads.items())
    return f"offered load (durations x GPUs of what arrives in a second, over the GPUs): {told}"


def _busy(workload: Workload | str | Path) -> float:
    return open_workload(workload).offered_load(1)


def _told(busy: Sequence[float], sizes: Sequence[int]) -> str:
    if not all(map(math.isfinite, busy)):
        return "all jobs at once"
    return ", ".join(_on(busy, gpus) for gpus in sizes)


def _on(busy: Sequence[float], gpus: int) -> str:
    mean = f"{sum(busy) / len(busy) / gpus:.3g} of {gpus} GPUs"
    if len(busy) == 1:
        return mean
    return f"{mean} ({min(busy) / gpus:.3g} to {max(busy) / gpus:.3g} over {len(busy)} workloads)"
