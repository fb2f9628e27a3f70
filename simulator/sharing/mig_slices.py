"""Instances of a GPU that is cut in equal parts for good: NVIDIA's Multi-Instance GPU (MIG) on an A100.

Source: NVIDIA MIG User Guide, supported profiles of the A100: 3g.20gb has 3/7 of the multiprocessors and 4/8 of the
memory and exists twice, 2g.10gb has 2/7 and 2/8 (three), 1g.5gb has 1/7 and 1/8 (seven). Cutting loses a part: two
3g.20gb leave 1/7 of the multiprocessors idle. Speed in proportion to the share is assumed: right for a computing-bound
job; caches and copy engines are cut too, and small jobs do not fill a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """One of `count` equal instances of a GPU, with NVIDIA's name (A100, 40 GB) and shares of compute and memory."""

    name: str
    count: int
    compute: float
    memory: float


SLICES: Mapping[int, Slice] = {
    2: Slice("3g.20gb", 2, 3 / 7, 1 / 2),
    3: Slice("2g.10gb", 3, 2 / 7, 1 / 4),
    7: Slice("1g.5gb", 7, 1 / 7, 1 / 8),
}
