"""The vocabulary of decisions that policies, environments and people share. Jobs and GPUs are indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Start:
    """Run a waiting or held job on these free GPUs, all at once, in this order."""

    job: int
    gpus: tuple[int, ...] = field(default=())

    def __init__(self, job: int, gpus: Sequence[int]) -> None:
        object.__setattr__(self, "job", int(job))
        object.__setattr__(self, "gpus", tuple(int(gpu) for gpu in gpus))


@dataclass(frozen=True)
class Hold:
    """Do not offer GPUs to a waiting job until `until_s` (None: until GPUs are freed at a later instant)."""

    job: int
    until_s: float | None = None


@dataclass(frozen=True)
class Preempt:
    """Stop a running job; it waits again, and its next start begins with a restore."""

    job: int


@dataclass(frozen=True)
class Migrate:
    """Move a running job to these GPUs (free ones, or its own); it restores there."""

    job: int
    gpus: tuple[int, ...] = field(default=())

    def __init__(self, job: int, gpus: Sequence[int]) -> None:
        object.__setattr__(self, "job", int(job))
        object.__setattr__(self, "gpus", tuple(int(gpu) for gpu in gpus))


@dataclass(frozen=True)
class Advance:
    """Nothing more at this instant."""


Decision = Start | Hold | Preempt | Migrate | Advance
