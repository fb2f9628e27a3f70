"""The decisions of policies, environments and people. Jobs, GPUs (in regions also CPU machines), groups: indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Start:
    """Run a waiting or held job on these GPUs, all at once, in this order.

    Args:
        job: which.
        gpus: free ones; where GPUs are shared, also ones with room for another job. In a simulation of regions the
            units of the job's parts, part after part: each part in one cluster of its type, all in one region with a
            copy of every table that the job reads.
        sub_batch: samples in one pass on each GPU, the rest of the batch by gradient accumulation; None: the largest of
            batch, batch / 2, ..., 1 that the memory admits. Only where GPUs are shared.
        batch: samples of an iteration over all GPUs, of an elastic job; None: the workload's.
        time_shift: seconds, the `Shift` with which its first iteration begins; None: none.
    """

    job: int
    gpus: tuple[int, ...] = field(default=())
    sub_batch: int | None = None
    batch: int | None = None
    time_shift: float | None = None

    def __init__(
        self,
        job: int,
        gpus: Sequence[int],
        sub_batch: int | None = None,
        batch: int | None = None,
        time_shift: float | None = None,
    ) -> None:
        object.__setattr__(self, "job", int(job))
        object.__setattr__(self, "gpus", tuple(int(gpu) for gpu in gpus))
        object.__setattr__(self, "sub_batch", None if sub_batch is None else int(sub_batch))
        object.__setattr__(self, "batch", None if batch is None else int(batch))
        object.__setattr__(self, "time_shift", None if time_shift is None else float(time_shift))


@dataclass(frozen=True)
class Hold:
    """Do not offer GPUs to a waiting job for some time; with a tier: let it start by itself when that has room.

    Args:
        job: which.
        until_s: when it is back in the queue, seconds; None (or inf): when GPUs are freed at a later instant.
        tier: the worst tier at which it starts by itself until then and at that instant, the best one with room first:
            MACHINE, RACK or NETWORK of `simulator.tiers`; None: nothing starts by itself. The placer of the simulator's
            rule chooses the GPUs, at the instants of policies/passes/tier_holds.py.
    """

    job: int
    until_s: float | None = None
    tier: int | None = None

    def __post_init__(self) -> None:
        if self.until_s is not None:
            float(self.until_s)  # a value that is no number fails here, at its source


@dataclass(frozen=True)
class Preempt:
    """Stop a running job; it waits again, and its next start begins with a restore.

    Args:
        job: which; one in a group pauses at the end of its iteration.
    """

    job: int


@dataclass(frozen=True)
class Migrate:
    """Move a running job to other GPUs; it restores there.

    Args:
        job: which.
        gpus: free ones, or its own: as many as it holds.
    """

    job: int
    gpus: tuple[int, ...] = field(default=())

    def __init__(self, job: int, gpus: Sequence[int]) -> None:
        object.__setattr__(self, "job", int(job))
        object.__setattr__(self, "gpus", tuple(int(gpu) for gpu in gpus))


@dataclass(frozen=True)
class Resize:
    """Let a running job go on with more or fewer GPUs, another batch, or other passes.

    An elastic job takes any number of GPUs (free ones, ones with room, or its own) and any batch. Another job stays on
    its GPUs, and `sub_batch` changes its passes, e.g. to larger ones when a partner has left. That costs nothing: only
    the length of iterations changes, and, where a table of interference knows sub-batches, of its partners'.

    Args:
        job: which.
        gpus: all that it shall hold; other ones than before cost a restore. Under a lease: its own and more, or fewer.
        batch: samples of an iteration over all GPUs, of an elastic job; None: as many a GPU as before.
        sub_batch: samples in one pass on each GPU, of a job that is not elastic: its batch a GPU over a power of 2,
            that fits its GPUs beside its partners.
    """

    job: int
    gpus: tuple[int, ...] = field(default=())
    batch: int | None = None
    sub_batch: int | None = None

    def __init__(self, job: int, gpus: Sequence[int], batch: int | None = None, sub_batch: int | None = None) -> None:
        object.__setattr__(self, "job", int(job))
        object.__setattr__(self, "gpus", tuple(int(gpu) for gpu in gpus))
        object.__setattr__(self, "batch", None if batch is None else int(batch))
        object.__setattr__(self, "sub_batch", None if sub_batch is None else int(sub_batch))


@dataclass(frozen=True)
class Shift:
    """From its next iteration on, let a running job begin its iterations at certain times: network contention only.

    The times are `seconds` modulo its period, from time 0. The period is that of the common circle of all jobs that
    share links with it now, directly or not (`ClusterView.period_s`). The shift is lost with the GPUs.

    Args:
        job: one that sends over the network.
        seconds: at least 0; None: its iterations begin whenever the one before is over.
    """

    job: int
    seconds: float | None


@dataclass(frozen=True)
class Replicate:
    """Copy a table to a region, where it stays whatever becomes of the table's home.

    A copy takes room at once. It has the partitions that jobs read; a whole one has all, so it can replace a lost home.

    Args:
        table: index of the table.
        region: index of the region that gets the copy.
        whole: whether the copy is to have all partitions; also completes a partial copy that is there or on the way.
    """

    table: int
    region: int
    whole: bool = False


@dataclass(frozen=True)
class Move:
    """Give a table another home: all of it is copied there, then the copy at the old home is deleted.

    The old copy stays while it is read, and for good after a `Replicate`. Where all of the table lies already its home
    moves at once; while the slow path looks (`view.tables_due`) the old copy stays until the instant is over. A `Move`
    to the present home gives up one that is under way.

    Args:
        table: index of the table.
        region: index of the region that becomes its home.
    """

    table: int
    region: int


@dataclass(frozen=True)
class Drop:
    """Delete a copy of a table once it is not read any more, or do not copy it there.

    Args:
        table: index of the table.
        region: index of a region that is not its home.
    """

    table: int
    region: int


@dataclass(frozen=True)
class AssignGroup:
    """Let a job run in a group of jobs on parameter servers: it joins one, moves to another, or opens one.

    Args:
        job: which; a waiting or paused one goes at once, a running one when its iteration is over.
        group: one that has jobs or is about to; None: a new one.
        machines: free ones that a new group gets; None for a group that exists.
    """

    job: int
    group: int | None = None
    machines: int | None = None


@dataclass(frozen=True)
class SetMachines:
    """Let a group go on with more or fewer machines: more are free ones, and those that it loses are free.

    Args:
        group: number of the group.
        machines: how many it shall have, at least 1.
    """

    group: int
    machines: int


@dataclass(frozen=True)
class SetSpill:
    """Let a job keep a share of its input on disk, and read it from there in every pass.

    Args:
        job: one in a group.
        ratio: of its input, 0 to 1; None: as much as is best for its group, by hill climbing.
    """

    job: int
    ratio: float | None


@dataclass(frozen=True)
class Advance:
    """Nothing more at this instant."""


Decision = (
    Start
    | Hold
    | Preempt
    | Migrate
    | Resize
    | Shift
    | Replicate
    | Move
    | Drop
    | AssignGroup
    | SetMachines
    | SetSpill
    | Advance
)
TABLE_DECISIONS = (Replicate, Move, Drop)
GROUP_DECISIONS = (AssignGroup, SetMachines, SetSpill)
